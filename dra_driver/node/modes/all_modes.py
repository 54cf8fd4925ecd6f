"""The drivers of all three modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.modes.driver import ModeDriver, SharedCard, WholeCard
from dra_driver.node.modes.drs import DrsCard


def all_modes(
    *,
    drs: Drs,
    tables: ProfileTables,
    journal: Journal,
    slice_count: Callable[[PciAddress], int],
) -> Mapping[Mode, ModeDriver]:
    """By mode; `slice_count` gives the number of slices of a card."""
    return {
        Mode.WHOLE: WholeCard(),
        Mode.SHARED: SharedCard(slice_count),
        Mode.DRS: DrsCard(drs, tables, journal.snapshot),
    }
