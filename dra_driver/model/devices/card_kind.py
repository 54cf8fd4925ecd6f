"""What cards can be divided into, by what agents report of them where there is no DRA. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from dra_driver.model.claims.measures import (
    Share,
    instance_shares,
    memory_per_slice,
    slice_shares,
)
from dra_driver.model.devices.device_shares import MAX_SLICES
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.mode import Mode


@dataclass(frozen=True, slots=True)
class CardKind:
    """Cards that are alike, with the fields of `NodeCard`. Cards of one model can be of several
    kinds, as by another number of slices."""

    model: str
    memory_mib: int
    slices: int
    profiles: tuple[str, ...]
    total: int

    @classmethod
    def of(cls, card: NodeCard) -> CardKind:
        return cls(card.model, card.memory_mib, card.slices, card.profiles, card.total)

    def shares(self, mode: Mode) -> tuple[Share, ...]:
        """What a container can get of a card in shared or in DRS mode, ascending. Nothing where the
        card is not offered so, or is gone. Raises InvalidValue for a malformed profile name."""
        if mode is Mode.DRS:
            return instance_shares(self.profiles, self.total) if self.total else ()
        if not self.memory_mib or not 1 <= self.slices <= MAX_SLICES:
            return ()
        return slice_shares(self.slices, self._memory_per_slice)

    def describe(self, mode: Mode) -> str:
        """``S60 (1g.6gb, 3g.20gb)``, or ``S60 (6 slices of 7162 MiB)``."""
        if mode is Mode.DRS:
            return f"{self.model} ({', '.join(self.profiles)})"
        return f"{self.model} ({self.slices} slices of {self._memory_per_slice} MiB)"

    @property
    def _memory_per_slice(self) -> int:
        return memory_per_slice(self.memory_mib, self.slices)
