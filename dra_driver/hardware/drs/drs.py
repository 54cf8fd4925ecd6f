"""The DRS mode of cards and the instances on them, through ``efsmi``, which alone can change them.

Cards are named by PCI address here; which index the tool has for one is checked by the listing that
comes before every change. Create's output is never read: what was made is what is listed after
and was not before.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Final

from dra_driver.hardware.breaker import CardSilent, HungCardBreaker
from dra_driver.hardware.drs.locks import alone
from dra_driver.hardware.drs.rows import (
    parse_instances,
    parse_older_instances,
    parse_profiles,
    parse_summary_instances,
)
from dra_driver.hardware.efsmi.field_reader import last_line
from dra_driver.hardware.efsmi.join import row_of
from dra_driver.hardware.efsmi.listing import parse_list
from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiFailed, EfsmiHung
from dra_driver.hardware.efsmi.summary import parse_summary
from dra_driver.model.card import Virtualization
from dra_driver.model.errors import HardwareError
from dra_driver.model.instance import Instance
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import Profile, ProfileTable

logger = logging.getLogger(__name__)

Instances = tuple[Instance, ...]

_HEADER: Final = re.compile(r"^(?:GCU|DEV)\s.*\bUUID\s*$", re.MULTILINE)


class CardGone(HardwareError):
    """efsmi answers and does not list the card."""


class SwitchRefused(HardwareError):
    """DRS mode could not be switched."""


class DestroyFailed(HardwareError):
    """The instance is there still, or may be."""


class CreateUnclear(HardwareError):
    """Something may have been made."""


class CreateRefused(HardwareError):
    """efsmi made no instance, whether it reported failure or success."""


class CreateMadeOther(HardwareError):
    """efsmi reported success and made an instance of another profile, which is gone again."""


@dataclass(eq=False)
class Drs:
    """Every method may raise HardwareError.

    The caller holds a lock on the card for as long as what it has listed must stay true. Each call
    for a card waits for those that were given up (their locks are in `lock_directory`), and fails
    at once while the `breaker` is open for the card (CardSilent). `indexes` gives the index that a
    card probably has: a call for all cards, which would show it, hangs when one of them does.
    """

    tool: Efsmi
    lock_directory: Path
    _: KW_ONLY
    indexes: Callable[[PciAddress], int | None] = lambda _: None
    breaker: HungCardBreaker
    _known: dict[PciAddress, int] = field(init=False, default_factory=dict)
    # Whether ``-L`` of this tool shows instances: known once it has shown one.
    _lists_uuids: bool = field(init=False, default=False)

    def instances(self, address: PciAddress) -> Instances:
        """The card's instances, whoever made them; raises CardGone."""
        text = self._listing(address)
        index = self._index(address)
        found = parse_instances(text, index)
        if found or self._lists_uuids:
            self._lists_uuids = True
            return found
        return self._older_instances(address)

    def switch_on(self, address: PciAddress) -> None:
        """DRS mode on; nothing changes where it is on already."""
        try:
            self._change(address, "on")
        except EfsmiFailed as error:
            raise SwitchRefused(
                f"card {address} cannot be switched to DRS mode: {error}",
                remedy="a card that does not support DRS is used whole or shared only",
            ) from error

    def switch_off(self, address: PciAddress) -> None:
        """DRS mode off; the caller has seen that no instance is listed. Whether efsmi accepts that
        for a card whose DRS mode is off already is not public: if not, that is a success."""
        try:
            self._change(address, "off")
        except EfsmiFailed as error:
            if not self.is_on(address):
                return
            raise SwitchRefused(
                f"card {address} cannot be switched out of DRS mode: {error}",
                remedy="the agent retries by itself; check which program holds the card",
            ) from error

    def is_on(self, address: PciAddress) -> bool:
        """Whether the card is in DRS mode, as the summary tells."""
        rows = parse_summary(self._read_all())
        return row_of(address, self._index(address), rows).mode is Virtualization.DRS

    def profiles(self, address: PciAddress) -> ProfileTable:
        """The card's profile table; it must be in DRS mode."""
        text = self._read(address, "--drs", "--list-profile")
        table = parse_profiles(text, self._index(address))
        if table is None:
            raise HardwareError(f"card {address} offers no DRS profiles")
        return table

    def create(self, address: PciAddress, profile: Profile, before: Instances) -> Instance:
        """Make an instance on a card in DRS mode, on which `before` are listed.

        Raises CreateRefused when nothing was made, CreateMadeOther when what was made had another
        profile and has been destroyed, CreateUnclear when something may have been, which is then
        the caller's to undo. Where another card gets the index meanwhile, what is made there is
        foreign to the caller.
        """
        what = f"DRS instance {profile.name} on card {address}"
        failure: HardwareError | None = None
        try:
            self._change(address, "--create-instance", str(profile.id))
        except EfsmiHung as error:
            # Not listed: the caller does it, who undoes what was made.
            raise CreateUnclear(f"making {what} did not end: {error}") from error
        except EfsmiFailed as error:
            failure = error
        appeared = tuple(one for one in self.instances(address) if not one.is_in(before))
        new = tuple(one for one in appeared if one.profile == profile.name)
        if failure is not None and new:
            raise CreateUnclear(f"making {what} is reported as failed: {failure}") from failure
        if failure is not None:
            raise CreateRefused(f"{what} was not made: {failure}") from failure
        if not new and len(appeared) == 1:
            # Success was reported, and only this instance is new, so this create made it. It is
            # destroyed now: recovery looks for the size that was asked for, and would leave it.
            self.destroy(address, appeared[0])
            raise CreateMadeOther(
                f"`efsmi` made DRS instance {appeared[0]} where {what} was asked for by profile id "
                f"{profile.id}; it was destroyed",
                remedy="no action is needed if the card's firmware was changed: the next try uses "
                "its new profiles",
            )
        if not new:
            raise CreateRefused(f"`efsmi` reports success, but made no {what}")
        if len(new) > 1:
            raise CreateUnclear(
                f"{len(new)} instances appeared at once where one {what} was made",
                remedy="make sure that only this driver creates DRS instances on the node",
            )
        return new[0]

    def destroy(self, address: PciAddress, instance: Instance) -> None:
        """Take an instance away; one that is not listed is a success."""
        there = [one for one in self.instances(address) if one.is_same(instance)]
        if not there:
            return
        failure: HardwareError | None = None
        try:
            self._change(address, "--destroy-instance", str(there[0].id))
        except EfsmiHung as error:
            # Not listed once more, which may hang as long: the kubelet waits 45 s in all, and asks
            # again.
            raise DestroyFailed(
                f"destroying DRS instance {instance} of card {address} did not end: {error}"
            ) from error
        except EfsmiFailed as error:
            failure = error
        if instance.is_in(self.instances(address)):
            raise DestroyFailed(
                f"DRS instance {instance} of card {address} is still there after it was "
                f"destroyed: {failure or 'efsmi reported success'}",
                remedy="the agent retries by itself; check which program still uses the card",
            ) from failure

    def _listing(self, address: PciAddress) -> str:
        """``-i N -L`` of the index that the card has now."""
        index = self._known.get(address, self.indexes(address))
        if index is not None:
            self._known[address] = index
            # The index may be nobody's by now.
            with suppress(EfsmiFailed):
                text = self._read(address, "-L")
                if _index_in(text, address) is not None:
                    return text
        self._known[address] = self._find(address)
        text = self._read(address, "-L")
        # What does not show the card says nothing about its instances either.
        if _index_in(text, address) is None:
            raise HardwareError(
                f"`efsmi -i {self._known[address]} -L` does not show card {address} "
                f"(it printed: {last_line(text)})"
            )
        return text

    def _older_instances(self, address: PciAddress) -> Instances:
        """As a tool lists them that prints no uuid. An empty list proves nothing: it may have been
        read wrongly, and it is not public whether the call works with DRS off. So the summary
        confirms it. If the summary hangs because of another card, the empty list is accepted."""
        index = self._index(address)
        try:
            text = self._read(address, "--drs", "--list-instance")
        except EfsmiFailed as error:
            logger.debug("reading the summary instead: %s", error)
            text = None
        found = parse_older_instances(text or "", index)
        if found:
            return found
        try:
            summary = self._read_all()
        except (EfsmiHung, CardSilent) as error:
            if text is None:
                raise
            logger.warning("card %s is taken to have no DRS instance: %s", address, error)
            return ()
        row_of(address, index, parse_summary(summary))
        return parse_summary_instances(summary, index)

    def _find(self, address: PciAddress) -> int:
        text = self._read_all("-L")
        index = _index_in(text, address)
        if index is not None:
            return index
        self._known.pop(address, None)
        if not _HEADER.search(text):
            raise HardwareError(f"`efsmi -L` lists nothing (it printed: {last_line(text)})")
        raise CardGone(
            f"`efsmi` does not list card {address}",
            remedy="look at the kernel log; the card may have fallen off the bus",
        )

    def _read(self, address: PciAddress, *arguments: str) -> str:
        index = self._index(address)
        with self.breaker.read(address):
            return self._run(address, index, *arguments)

    def _change(self, address: PciAddress, *arguments: str) -> None:
        index = self._index(address)
        self.breaker.check(address)
        self._run(address, index, "--drs", *arguments)

    def _run(self, address: PciAddress, index: int, *arguments: str) -> str:
        with alone(self.lock_directory, address, patience=self.tool.timeout) as lock:
            return self.tool.run("-i", str(index), *arguments, inherit=(lock,))

    def _read_all(self, *arguments: str) -> str:
        with self.breaker.read(None):
            return self.tool.run(*arguments)

    def _index(self, address: PciAddress) -> int:
        if address not in self._known:
            self._known[address] = self._find(address)
        return self._known[address]


def _index_in(listing: str, address: PciAddress) -> int | None:
    """The card's index in an output of ``-L``; None if it is not there."""
    return next((card.index for card in parse_list(listing) if card.address == address), None)
