"""What the driver has on a node, and its removal where nothing of it accounts for anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_driver.kubelet_api.leavings import all_sockets
from dra_driver.kubelet_api.siblings import is_heard
from dra_driver.model.errors import GcuError, InvalidValue
from dra_driver.model.names import DRIVER
from dra_driver.node.cdi import read_record
from dra_driver.node.cdi_directory import CdiDirectory
from dra_driver.node.peek import peek
from dra_driver.node.residence import alone

_MOST: Final = 5  # of what is held; the kubelet hands on 4096 bytes of a container's last words


class InUse(Exception):
    """An agent runs on the node."""


@dataclass(frozen=True, slots=True)
class Traces:
    """The places that agents write to."""

    kubelet_root: Path
    cdi_dir: Path

    @property
    def state(self) -> Path:
        """The folder of this driver's own."""
        return self.kubelet_root / "plugins" / DRIVER

    def remove(self) -> str:
        """Remove all that is this driver's; gives why it stays, or nothing.

        It stays as it is, for a later install to take over, where it accounts for something: a
        claim, a container, an instance or a mode of a card. It can be killed at any moment: the
        journal is the last file to go. Raises InUse while there is an agent; of any release.
        """
        try:
            with alone(self.state) as is_alone:
                if not is_alone or any(map(is_heard, all_sockets(self.kubelet_root))):
                    raise InUse("an agent of the driver runs on the node")
                held = list(self._held())
                if held:
                    return f"{self.state} stays: it accounts for {_brief(held)}"
                self._remove_all()
        except OSError as error:
            return f"{error.filename or self.state} cannot be removed: {error.strerror or error}"
        except GcuError as error:
            return f"{self.state} stays: {error}"
        return ""

    def _held(self) -> Iterator[str]:
        """What a later install must know of. What damage has cost is not among it: agents rebuild
        that from the CDI files, and so these are looked at as well."""
        ledger = peek(self.state)
        for holding in ledger.holdings.values():
            yield _of(holding.owner.title, *map(str, sorted(holding.cards)))
        cards = {card for holding in ledger.holdings.values() for card in holding.cards}
        for card in sorted(ledger.switched - cards):
            yield f"the DRS mode of card {card}"
        if ledger.unknown:
            yield "what a newer version wrote"
        cdi = CdiDirectory(self.cdi_dir)
        for uid in sorted(cdi.claims()[0] - ledger.holdings.keys()):
            try:
                owner, holds = read_record(cdi.read(uid) or b"", uid)
            except InvalidValue:
                continue  # no runtime can read it either
            yield _of(owner.title, *sorted({str(hold.card) for hold in holds}))

    def _remove_all(self) -> None:
        cdi = CdiDirectory(self.cdi_dir)
        for uids in cdi.claims():
            for uid in uids:
                cdi.remove(uid)
        for path in all_sockets(self.kubelet_root):
            path.unlink(missing_ok=True)
        for path in sorted(self.state.iterdir(), key=lambda path: path.name == "journal"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self.state.rmdir()


def _of(title: str, *cards: str) -> str:
    plural = "" if len(cards) == 1 else "s"
    return f"{title} (card{plural} {', '.join(cards)})" if cards else title


def _brief(held: list[str]) -> str:
    more = [f"{len(held) - _MOST} more"] if len(held) > _MOST else []
    return ", ".join([*held[:_MOST], *more])
