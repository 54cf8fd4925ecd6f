"""Metrics of the node's cards, and of what prepared claims have of them, read on request."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dra_driver.agent import metric_specs as specs
from dra_driver.agent.context import AgentContext
from dra_driver.agent.slices.device_layout import Devices, DevicesSource, by_name, problem_taints
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.card import Card
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.errors import InvalidValue, JournalError
from dra_driver.model.mode import Mode
from dra_driver.model.names import ATTR_PROFILES, DRIVER, TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import profile_size
from dra_driver.node.checkpoint.ledger import STATES, Ledger, taken_of
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice

logger = logging.getLogger(__name__)

Sizes = Mapping[tuple[PciAddress, Mode], int]
"""What a card has in each mode: slices, its size, or 1."""

_WHOLE: Final = 1
_MEBIBYTE: Final = 1 << 20  # bytes


@dataclass(eq=False, kw_only=True)
class NodeCollector(Collector):
    """Reads at each request for metrics which cards and devices the node has, and which are in
    use. If the journal cannot be read, the metrics that need it are missing."""

    context: AgentContext
    devices: DevicesSource
    containers: Callable[[], Iterable[ContainerResources]]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        cards = (self.context.cards.latest or {}).values()
        yield about_cards(cards)
        yield from about_readings(cards)
        try:
            devices = self.devices()
            sizes = sizes_of(devices)
            yield _offered(devices)
            yield _tainted(devices)
            yield about_problems(devices)
            yield about_sizes(sizes)
            ledger = self.context.journal.snapshot()
        except JournalError as error:
            logger.warning("metrics are missing that the journal is needed for: %s", error)
            return
        yield _claims(ledger)
        yield _prepared(ledger)
        held = granted(ledger, cards)
        yield about_allocations(held, sizes)
        yield about_containers(held, self.containers() if ledger.claims else ())
        yield about_largest_request(devices, ledger, sizes)


def about_cards(cards: Iterable[Card]) -> GaugeMetricFamily:
    return specs.CARD_INFO.samples({(*_labels(each), str(each.index)): 1 for each in cards})


def about_readings(cards: Iterable[Card]) -> Iterator[GaugeMetricFamily]:
    """What efsmi printed of each card; a value that it did not print has no sample."""
    known = [(_labels(card), card.readings) for card in cards]
    for spec, unit, read in (
        (specs.CARD_TEMPERATURE, 1, attrgetter("temperature")),
        (specs.CARD_POWER, 1, attrgetter("power")),
        (specs.CARD_MEMORY_USED, _MEBIBYTE, attrgetter("memory_used_mib")),
    ):
        values = ((labels, read(readings)) for labels, readings in known)
        yield spec.samples({labels: value * unit for labels, value in values if value is not None})


def about_problems(devices: Devices) -> GaugeMetricFamily:
    return specs.CARD_PROBLEM.samples(
        {
            (str(card), taint["key"].removeprefix(f"{DRIVER}/"), taint.get("value", "")): 1
            for card, _, device in by_name(devices)
            for taint in problem_taints(device)
        }
    )


def sizes_of(devices: Devices) -> Sizes:
    """Of the devices that the node offers."""
    found: dict[tuple[PciAddress, Mode], int] = {}
    for card, mode, device in by_name(devices):
        name = CAPACITY_OF_MODE.get(mode)
        value = (device.get("capacity") or {}).get(name) if name else None
        found[card, mode] = int(value["value"]) if value else _WHOLE
    return found


def about_sizes(sizes: Sizes) -> GaugeMetricFamily:
    return specs.CARD_SIZE.samples(
        {(str(card), mode.value): float(size) for (card, mode), size in sizes.items()}
    )


Granted = Sequence[tuple[Owner, PreparedDevice, tuple[str, ...]]]
"""Devices that owners have, each with the labels of its card, mode and profile."""


def granted(ledger: Ledger, cards: Iterable[Card]) -> Granted:
    """What prepared claims have, but for administrators. A card that is not among the `cards` any
    more is named by its address alone."""
    known = {each.address: _labels(each) for each in cards}
    found = []
    for held in ledger.claims.values():
        for device in held.devices if held.state is ClaimStep.PREPARE_COMPLETED else ():
            if not device.admin_access:
                card = known.get(device.card, (str(device.card), "", "", ""))
                profile = device.instance.profile if device.instance else ""
                found.append((held.owner, device, (*card, device.mode.value, profile)))
    return found


def about_allocations(granted: Granted, sizes: Sizes) -> GaugeMetricFamily:
    found: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for owner, device, labels in granted:
        if isinstance(owner, ClaimRef):
            whose = owner.namespace, owner.name, ""
        else:
            whose = "", "", str(owner)
        found[*labels, *whose] += device.amount or sizes.get((device.card, device.mode), _WHOLE)
    return specs.CARD_ALLOCATED.samples(found)


def about_containers(
    granted: Granted, containers: Iterable[ContainerResources]
) -> GaugeMetricFamily:
    """`containers` are those of the node. A claim without a known container has one sample, with
    empty names of pod and container."""
    users = _Users(containers)
    return specs.CARD_CONTAINER.samples(
        {(*labels, *user): 1 for owner, _, labels in granted for user in users.of(owner)}
    )


class _Users:
    """Namespace, pod, container and claim of those that use what an owner has."""

    def __init__(self, containers: Iterable[ContainerResources]) -> None:
        self._found: defaultdict[object, list[tuple[str, str, str, str]]] = defaultdict(list)
        for container in containers:
            who = container.namespace, container.pod, container.container
            for claim in container.claims:
                self._found[container.namespace, claim].append((*who, claim))
            for devices in container.devices.values():
                self._found[devices].append((*who, ""))

    def of(self, owner: Owner) -> Iterable[tuple[str, str, str, str]]:
        if isinstance(owner, ContainerAllocation):
            return self._found.get(frozenset(map(str, owner.devices)), [("", "", "", "")])
        unknown = (owner.namespace, "", "", owner.name)
        return self._found.get((owner.namespace, owner.name), [unknown])


def about_largest_request(devices: Devices, ledger: Ledger, sizes: Sizes) -> GaugeMetricFamily:
    """Of those cards that have no problem: what is left on one that is free, or in that mode.
    `sizes` are of these devices."""
    ill = {card for card, _, device in by_name(devices) if problem_taints(device)}
    largest: dict[tuple[str, ...], float] = {(mode.value,): 0 for _, mode in sizes}
    for card, mode, published in by_name(devices):
        size, holders = sizes[card, mode], ledger.holders_of(card)
        if card in ill or any(device.mode is not mode for _, device in holders):
            continue
        left = size - taken_of(((held.owner, device) for held, device in holders), size)
        largest[mode.value,] = max(largest[mode.value,], _request_within(published, left))
    return specs.LARGEST_REQUEST.samples(largest)


def _request_within(device: Object, left: int) -> int:
    """Of a card in DRS mode the largest profile; a size between two is rounded up."""
    profiles = ((device.get("attributes") or {}).get(ATTR_PROFILES) or {}).get("string", "")
    try:
        sizes = [*map(profile_size, profiles.split(","))]
    except InvalidValue:  # it has none
        return left
    return max((size for size in sizes if size <= left), default=0)


def _labels(card: Card) -> tuple[str, str, str, str]:
    return str(card.address), card.uuid, f"gcu{card.minor}", card.model


def _offered(devices: Devices) -> GaugeMetricFamily:
    health = {True: "unhealthy", False: "healthy"}
    return specs.DEVICES.samples(
        Counter(
            (mode.value, health[any(t["key"] == TAINT_UNHEALTHY for t in problem_taints(device))])
            for _, mode, device in by_name(devices)
        )
    )


def _tainted(devices: Devices) -> GaugeMetricFamily:
    return specs.DEVICE_TAINTS.samples(
        Counter(
            (taint["key"], taint.get("value", ""), taint["effect"])
            for device in devices
            for taint in problem_taints(device)
        )
    )


def _claims(ledger: Ledger) -> GaugeMetricFamily:
    counted = Counter(
        (held.state.value,)
        for held in ledger.claims.values()
        if not isinstance(held.owner, ContainerAllocation)
    )
    return specs.CLAIMS.samples({(state.value,): counted[state.value,] for state in STATES})


def _prepared(ledger: Ledger) -> GaugeMetricFamily:
    return specs.PREPARED_DEVICES.samples(
        Counter(
            (device.mode.value,)
            for held in ledger.claims.values()
            if held.state is ClaimStep.PREPARE_COMPLETED
            for device in held.devices
        )
    )
