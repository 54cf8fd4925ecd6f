"""What a node without DRA has on record of what containers have: four records that must agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import grpc

from dra_driver.kubelet_api.generated import podresources_v1_pb2 as api
from dra_driver.kubelet_api.pod_resources import SERVICE
from dra_driver.kubelet_api.rpc import Stub
from dra_driver.model.claims.owner import ContainerAllocation, grant_uid
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER
from dra_driver.model.profile import profile_size
from dra_driver.node.checkpoint.records import ClaimStep
from tests.e2e.installation import Installation
from tests.unit.node.ledger_file import read_ledger

Devices = tuple[PluginDevice, ...]

_SECONDS = 10.0
_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
_STATE = f"/var/lib/kubelet/plugins/{DRIVER}"


@dataclass(frozen=True, slots=True)
class Records:
    """`granted` are the devices of each prepared holding of the journal, and `unfinished` what else
    it holds. `files` are CDI files; `instances` are card and size of each, ascending; `divided` are
    the cards in DRS mode."""

    granted: frozenset[Devices]
    unfinished: tuple[str, ...]
    files: frozenset[str]
    instances: tuple[tuple[str, int], ...]
    divided: frozenset[str]

    @classmethod
    def of(cls, granted: Iterable[Devices]) -> Records:
        """As they must be where containers have exactly this."""
        grants = frozenset(granted)
        drs = [each for each in grants if each[0].mode is Mode.DRS]
        return cls(
            granted=grants,
            unfinished=(),
            files=frozenset(f"{DRIVER}-claim-{grant_uid(each)}.json" for each in grants),
            instances=tuple(sorted((str(each[0].card), len(each)) for each in drs)),
            divided=frozenset(str(each[0].card) for each in drs),
        )

    @classmethod
    def read(cls, driver: Installation, node: str) -> Records:
        """As they are."""
        host = driver.cluster.node(node)
        holdings = read_ledger(host.host_path(_STATE)).claims.values()
        prepared = {
            each.owner.devices
            for each in holdings
            if isinstance(each.owner, ContainerAllocation)
            and each.state is ClaimStep.PREPARE_COMPLETED
        }
        machine = driver.machine(node).state()
        return cls(
            granted=frozenset(prepared),
            unfinished=tuple(
                str(each) for each in holdings if each.state is not ClaimStep.PREPARE_COMPLETED
            ),
            files=frozenset(driver.cdi_files(host)),
            instances=tuple(
                sorted(
                    (card.bdf, profile_size(one.profile))
                    for card in machine.cards
                    for one in card.instances
                )
            ),
            divided=frozenset(
                card.bdf for card in machine.cards if card.virtualization != "Disable"
            ),
        )


def recorded(driver: Installation, node: str) -> dict[str, Devices]:
    """What the kubelet's pod-resources API says that each pod, ``namespace/name``, has of ours."""
    socket = driver.cluster.node(node).host_path(_SOCKET)
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        kubelet = Stub(channel, SERVICE)
        answer: api.ListPodResourcesResponse = kubelet.List(
            api.ListPodResourcesRequest(), timeout=_SECONDS
        )
    ours = set(RESOURCES.values())
    found = {
        f"{pod.namespace}/{pod.name}": sorted(
            PluginDevice.parse(each)
            for container in pod.containers
            for devices in container.devices
            if devices.resource_name in ours
            for each in devices.device_ids
        )
        for pod in answer.pod_resources
    }
    return {pod: tuple(devices) for pod, devices in found.items() if devices}
