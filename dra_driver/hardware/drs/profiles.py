"""Which profiles a kind of card offers, kept over restarts.

A card lists its profiles only in DRS mode, so what was read once is kept for all cards of the same
model, ECC state and memory under the same driver: these four identify a table, unless new firmware
changes it. So what was kept is for publishing only, and an empty card is asked again before
anything is made on it (`dra_driver.node.claims.drs_card`).
"""

from __future__ import annotations

import logging
import threading
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from dra_driver.hardware.cache_file import CacheFile
from dra_driver.model.card import Card
from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.model.errors import InvalidValue
from dra_driver.model.profile import Profile, ProfileTable

logger = logging.getLogger(__name__)


class CardVariant(msgspec.Struct, frozen=True):
    """What decides about a card's profile table. `ecc` is None where the card has none."""

    model: str
    ecc: bool | None
    memory_mib: int
    driver: str

    @classmethod
    def of(cls, card: Card) -> CardVariant:
        ecc = None if card.ecc is None else card.ecc.current
        return cls(card.model, ecc, card.memory_mib, card.driver_version)

    def __str__(self) -> str:
        ecc = {True: " with ECC", False: " without ECC", None: ""}[self.ecc]
        return f"{self.model}{ecc}, {self.memory_mib} MiB, driver {self.driver}"


class _ProfileTable(msgspec.Struct, frozen=True):
    variant: CardVariant
    profiles: tuple[Profile, ...]


class _TablesFile(msgspec.Struct, frozen=True):
    tables: tuple[_ProfileTable, ...] = ()
    format: Literal["gcu-dra-profiles"] = "gcu-dra-profiles"
    version: Literal[2] = 2


class ProfileTables:
    """Tables in ``profiles.json`` of a state directory. Thread-safe; constructing has no effect."""

    def __init__(self, directory: Path, *, effects: Effects = NO_FAULTS) -> None:
        self._file = CacheFile(directory / "profiles.json", _TablesFile, effects=effects)
        self._mutex = threading.Lock()

    def table(self, card: Card) -> ProfileTable | None:
        """The table of cards like this one, None while it is unknown."""
        with self._mutex:
            return self._tables.get(CardVariant.of(card))

    def learn(self, card: Card, table: ProfileTable) -> None:
        """Keep what was read from `card`."""
        with self._mutex:
            if self._tables.get(CardVariant.of(card)) == table:
                return
            # Another agent on the node may have learnt of other cards meanwhile.
            self._tables = {**self._load(), **self._tables, CardVariant.of(card): table}
            logger.info("profiles of %s: %s", CardVariant.of(card), table.text)
            entries = [_ProfileTable(kind, each.profiles) for kind, each in self._tables.items()]
            self._file.write(_TablesFile(tuple(entries)))

    @cached_property
    def _tables(self) -> dict[CardVariant, ProfileTable]:
        return self._load()

    def _load(self) -> dict[CardVariant, ProfileTable]:
        tables = self._file.read().tables
        try:
            return {each.variant: ProfileTable.of(each.profiles) for each in tables}
        except InvalidValue:
            logger.exception("the known profiles make no table; they are read again")
            return {}
