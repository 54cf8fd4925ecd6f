"""Which profiles a kind of card offers, kept over restarts.

A card lists its profiles only in DRS mode, so what was read once is kept for all cards of the same
model, ECC state and memory under the same driver: these four identify a table, unless new firmware
changes it. So what was kept is for publishing only, and an empty card is asked again before
anything is made on it (`dra_driver.node.claims.drs_card`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.model.card import Card
from dra_driver.model.effects import NO_FAULTS, Effects, Point
from dra_driver.model.errors import InvalidValue
from dra_driver.model.profile import Profile, ProfileTable
from dra_driver.util.files import write_synced

logger = logging.getLogger(__name__)

_FORMAT: Final = "gcu-dra-profiles"
_VERSION: Final = 2
_MOST_TABLES: Final = 64
"""Far more than a node's cards and versions of its driver need. A tool that tells another memory
or driver at each look would add one each time."""


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
    format: str
    version: int
    tables: tuple[_ProfileTable, ...]


class ProfileTables:
    """Tables in ``profiles.json`` of a state directory. Thread-safe; constructing has no effect.

    The file is a cache: one that cannot be read is put aside, and the cards are asked anew; one
    that cannot be written is told in the log, and the tables stay in memory.
    """

    def __init__(self, directory: Path, *, effects: Effects = NO_FAULTS) -> None:
        self._path = directory / "profiles.json"
        self._effects = effects
        self._mutex = threading.Lock()
        self._tables: dict[CardVariant, ProfileTable] | None = None

    def table(self, card: Card) -> ProfileTable | None:
        """The table of cards like this one, None while it is unknown."""
        with self._mutex:
            return self._known().get(CardVariant.of(card))

    def learn(self, card: Card, table: ProfileTable) -> None:
        """Keep what was read from `card`."""
        with self._mutex:
            if self._known().get(CardVariant.of(card)) == table:
                return
            # Another agent on the node may have learnt of other cards meanwhile.
            others = {**self._load(), **self._known()}
            others.pop(CardVariant.of(card), None)
            for oldest in list(others)[: 1 - _MOST_TABLES]:
                del others[oldest]
            self._tables = {**others, CardVariant.of(card): table}
            logger.info("profiles of %s: %s", CardVariant.of(card), table.text)
            try:
                self._write(self._tables)
            except OSError:
                logger.exception("%s cannot be written", self._path)

    def _known(self) -> dict[CardVariant, ProfileTable]:
        if self._tables is None:
            self._tables = self._load()
        return self._tables

    def _load(self) -> dict[CardVariant, ProfileTable]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError:
            logger.exception("%s cannot be read", self._path)
            return {}
        try:
            return _parse(content)
        except (ValueError, RecursionError, InvalidValue):
            aside = self._path.with_name("profiles.damaged.json")
            logger.exception(
                "%s is no profile file of this version, it is kept as %s", self._path, aside
            )
            self._set_aside(aside)
            return {}

    def _set_aside(self, aside: Path) -> None:
        try:
            self._path.replace(aside)
        except OSError:
            logger.exception("%s stays where it is", self._path)

    def _write(self, tables: Mapping[CardVariant, ProfileTable]) -> None:
        new = self._path.with_name("profiles.json.new")
        with self._effects(Point.PROFILES_WRITE):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_synced(new, _format(tables))
        with self._effects(Point.PROFILES_RENAME):
            new.replace(self._path)


def _format(tables: Mapping[CardVariant, ProfileTable]) -> bytes:
    entries = tuple(_ProfileTable(variant, table.profiles) for variant, table in tables.items())
    return msgspec.json.format(msgspec.json.encode(_TablesFile(_FORMAT, _VERSION, entries))) + b"\n"


def _parse(content: bytes) -> dict[CardVariant, ProfileTable]:
    found = msgspec.json.decode(content, type=_TablesFile)
    if (found.format, found.version) != (_FORMAT, _VERSION):
        raise InvalidValue(f"version {found.version} of {found.format}")
    return {each.variant: ProfileTable.of(each.profiles) for each in found.tables}
