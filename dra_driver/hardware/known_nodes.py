"""Which device nodes cards of a kind have had, kept over restarts.

After a boot udev may not have made all of them when the agent starts: a container would run without
``/dev/gcuctl``, for example, and would not get it later.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.model.card import Card

logger = logging.getLogger(__name__)

FILE: Final = "device-nodes.json"
_MINOR: Final = "{minor}"
_MOST_KINDS: Final = 64
"""Far more than a node's models and versions of its driver."""

_Nodes = dict[str, tuple[str, ...]]
"""By kind: paths, with ``{minor}`` in place of the card's minor."""


class KnownNodes:
    """Learns from every card of the node; all cards of one model under the same driver are alike.

    The file ``device-nodes.json`` of the state directory is a cache: the log says when it cannot be
    read or written. Without a directory nothing is kept over restarts. Constructing has
    no effect. Several threads may read while one learns.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._path = None if directory is None else directory / FILE
        self._nodes: _Nodes | None = None

    def learn(self, cards: Iterable[Card]) -> None:
        """Keep which nodes the `cards` have."""
        known = dict(self._known())
        for card in cards:
            kind = _kind(card)
            paths = {_template(node.path, card.minor) for node in card.nodes}
            if not paths <= {*known.get(kind, ())}:
                known[kind] = tuple(sorted(paths.union(known.pop(kind, ()))))
        if known != self._nodes:
            self._nodes = dict([*known.items()][-_MOST_KINDS:])
            self._write(self._nodes)

    def missing(self, card: Card) -> tuple[str, ...]:
        """The paths that other cards of the kind have, or cards had before, and `card` has not."""
        there = {node.path for node in card.nodes}
        wanted = (
            path.replace(_MINOR, str(card.minor)) for path in self._known().get(_kind(card), ())
        )
        return tuple(path for path in wanted if path not in there)

    def _known(self) -> _Nodes:
        if self._nodes is None:
            self._nodes = self._read()
        return self._nodes

    def _read(self) -> _Nodes:
        if self._path is None:
            return {}
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Nodes)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError):
            logger.exception("%s cannot be read; it is written anew", self._path)
            return {}

    def _write(self, nodes: _Nodes) -> None:
        if self._path is None:
            return
        new = self._path.with_name(f"{FILE}.new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with new.open("wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(nodes)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError:
            logger.exception("%s cannot be written", self._path)


def _kind(card: Card) -> str:
    return f"{card.model}, driver {card.driver_version}"


def _template(path: str, minor: int) -> str:
    own = f"/dev/gcu{minor}"
    return f"/dev/gcu{_MINOR}{path.removeprefix(own)}" if path.startswith(own) else path
