"""Turns the kubelet's Allocate into prepared devices, and into edits of the container."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from dra_driver.device_plugin.inventory import (
    NodeDevices,
    NodeViewSource,
    granted_total,
    offered_total,
)
from dra_driver.kubelet_api.device_plugin.service import ContainerEdits
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.devices.device import device_name
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.spec import device_id, environment
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice, PreparedDevices
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.ports import Hardware

TakesCdiNames = Callable[[], bool]
"""Whether a container gets its devices by the names of CDI devices, otherwise by variables and
device nodes (docs/dev/device-plugin.md). Raises GcuError while the kubelet's version is
unknown."""


RecordedDevices = Callable[[], Collection[frozenset[str]]]
"""The IDs of the devices of each container, init containers included, by the kubelet's record.
Raises GcuError if it is unknown."""


@dataclass(frozen=True, slots=True)
class Allocator:
    """Thread-safe."""

    view: NodeViewSource
    claim_manager: PreparedClaimManager
    hardware: Hardware
    recorded: RecordedDevices
    pool: str
    takes_cdi_names: TakesCdiNames

    def allocate(self, mode: Mode, ids: Sequence[str]) -> ContainerEdits:
        """Give a container these devices of `mode`. Raises GcuError; then the container has no
        device, or a journal record accounts for it."""
        asked = tuple(sorted({PluginDevice.parse(text) for text in ids}))
        view = self.view()
        grant = self._grant(view, mode, asked)
        devices = planned_devices(grant, self.pool)
        if mode is Mode.DRS:
            with self.claim_manager.attempt(grant, devices):
                self._release_predecessors(view.ledger, grant)
        return self._edits(grant, self.claim_manager.prepare(grant, devices))

    def _grant(
        self, view: NodeDevices, mode: Mode, devices: tuple[PluginDevice, ...]
    ) -> ContainerAllocation:
        if any(device.mode is not mode for device in devices):
            raise InvalidValue(f"{_text(devices)} are not all devices of {RESOURCES[mode]}")
        # Its constructor refuses devices of several cards.
        grant = ContainerAllocation(devices, 1, answer=uuid.uuid4().hex)
        known = view.ledger.claims.get(grant.uid)
        if (
            known is not None
            and isinstance(known.owner, ContainerAllocation)
            and known.state is ClaimStep.PREPARE_COMPLETED
        ):
            return replace(grant, total=known.owner.total)
        totals = [self._total(view, card, mode, len(devices)) for card in grant.cards]
        beyond = [device for device in devices if device.ordinal >= min(totals)]
        if beyond:
            raise Refused(
                f"card {beyond[0].card} has {min(totals)} devices of {RESOURCES[mode]}, and "
                f"{_text(beyond)} are none of them",
                remedy="its sliceCount or profiles have changed; delete and recreate the pod",
            )
        return replace(grant, total=min(totals))

    def _total(self, view: NodeDevices, address: PciAddress, mode: Mode, size: int) -> int:
        """How many devices the card has in the mode; raises Refused if it is not offered."""
        resource = RESOURCES[mode]
        if not view.active:
            raise Refused(
                f"{resource} is no longer offered: this node serves GCUs through DRA",
                remedy="request the GCU by a ResourceClaim",
            )
        card = self.hardware.card(address)
        for problem in card.problems:
            if problem.taint == TAINT_UNHEALTHY:
                raise Refused(f"card {address} must not be used: {problem.text}")
        offered = offered_total(view, card, mode)
        if offered is None:
            raise Refused(
                f"card {address} is not offered as {resource}",
                remedy="see the chart's value cards, and the events of the node",
            )
        table = view.table(card)
        if mode is Mode.DRS and table is not None:
            table.for_size(size)
        return granted_total(view.ledger, address, mode) or offered

    def _release_predecessors(self, ledger: Ledger, grant: ContainerAllocation) -> None:
        """Destroy the instances of ended containers, if the kubelet gives some of their devices to
        this container. Raises Refused if an init container of the same pod has such an instance."""
        for held, _ in ledger.holders_of(grant.cards[0]):
            former = held.owner
            if not isinstance(former, ContainerAllocation) or former.uid == grant.uid:
                continue
            if not set(former.devices) & set(grant.devices):
                continue
            if frozenset(map(str, former.devices)) in self.recorded():
                raise Refused(
                    f"a container requests {RESOURCES[Mode.DRS]} of another size than an init "
                    f"container of its pod, which has {_text(former.devices)}",
                    remedy="request the same size in both",
                )
            self.claim_manager.release(held)

    def _edits(self, grant: ContainerAllocation, devices: PreparedDevices) -> ContainerEdits:
        if self.takes_cdi_names():
            return ContainerEdits(cdi_names=tuple(device_id(grant, device) for device in devices))
        cards = {address: self.hardware.card(address) for address in grant.cards}
        variables = {key: value for device in devices for key, value in environment(device, cards)}
        nodes = {node.path: node for card in cards.values() for node in card.nodes}
        return ContainerEdits(variables, tuple(nodes.values()))


def planned_devices(grant: ContainerAllocation, pool: str) -> PreparedDevices:
    """The devices of a container: for each of its cards the device that a claim would have."""
    capacity = CAPACITY_OF_MODE.get(grant.mode)
    consumed = {capacity: str(len(grant.devices))} if capacity else {}
    return tuple(
        PreparedDevice(
            request=RESOURCES[grant.mode],
            pool=pool,
            device_name=device_name(grant.mode, card),
            consumed=consumed,
            visible_cards=grant.cards,
        )
        for card in grant.cards
    )


def _text(devices: Sequence[PluginDevice]) -> str:
    return ", ".join(map(str, devices))
