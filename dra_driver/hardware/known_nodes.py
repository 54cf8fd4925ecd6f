"""Which device nodes cards of a kind have had, kept over restarts.

After a boot udev may not have made all of them when the agent starts: a container would run without
``/dev/gcuctl``, for example, and would not get it later.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Final

from dra_driver.hardware.cache_file import CacheFile
from dra_driver.model.card import Card

FILE: Final = "device-nodes.json"
_MINOR: Final = "{minor}"

_Nodes = dict[str, tuple[str, ...]]
"""By kind: paths, with ``{minor}`` in place of the card's minor."""


class KnownNodes:
    """Learns from every card of the node; all cards of one model under the same driver are alike.

    What is known stands in ``device-nodes.json`` of the state directory. Several threads may read
    while one learns.
    """

    def __init__(self, directory: Path) -> None:
        self._file = CacheFile(directory / FILE, _Nodes)

    def learn(self, cards: Iterable[Card]) -> None:
        """Keep which nodes the `cards` have."""
        known = dict(self._nodes)
        for card in cards:
            kind = _kind(card)
            paths = {_template(node.path, card.minor) for node in card.nodes}
            if not paths <= {*known.get(kind, ())}:
                known[kind] = tuple(sorted(paths.union(known.get(kind, ()))))
        if known != self._nodes:
            self._nodes = known
            self._file.write(known)

    def missing(self, card: Card) -> tuple[str, ...]:
        """The paths that other cards of the kind have, or cards had before, and `card` has not."""
        there = {node.path for node in card.nodes}
        wanted = (
            path.replace(_MINOR, str(card.minor)) for path in self._nodes.get(_kind(card), ())
        )
        return tuple(path for path in wanted if path not in there)

    @cached_property
    def _nodes(self) -> _Nodes:
        return self._file.read()


def _kind(card: Card) -> str:
    return f"{card.model}, driver {card.driver_version}"


def _template(path: str, minor: int) -> str:
    own = f"/dev/gcu{minor}"
    return f"/dev/gcu{_MINOR}{path.removeprefix(own)}" if path.startswith(own) else path
