"""A node for tests: real journal, CDI directory and locks in a folder, and the rest in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import PODS, Resource
from dra_driver.model.card import Card, DeviceNode
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.devices.device import device_name
from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.model.errors import HardwareError
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER, pool_name
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiDirectory, MetadataDirectory
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.claims.device_ops import RecreatedInstance, SliceCount
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.locks import Locks, Take, take_lock
from dra_driver.node.ports import Hardware
from dra_driver.node.preparer import Preparer
from dra_driver.node.recovery.reconciler import Findings, recover_all

NODE = "node-1"
SLICES = 6
POOL = pool_name(NODE)
CARDS = tuple(PciAddress.parse(f"0000:{bus:02x}:00.0") for bus in (0x0D, 0x0E, 0x1D, 0x1E))


def card(address: PciAddress, minor: int) -> Card:
    return Card(
        address=address,
        index=minor,
        minor=minor,
        model="S60",
        uuid=f"TPUH{minor:08}",
        memory_mib=42976,
        driver_version="1.4.0",
        ecc=None,
        virtualization=None,
        numa_node=0,
        pcie_root=None,
        pcie_bridges=(),
        nodes=(
            DeviceNode(f"/dev/gcu{minor}", f"/host/dev/gcu{minor}"),
            DeviceNode("/dev/gcuctl", "/dev/gcuctl"),
        ),
    )


@dataclass
class Machine:
    """The cards of a node; their minors run against the order of their addresses."""

    minors: dict[PciAddress, int] = field(
        default_factory=lambda: {address: 3 - i for i, address in enumerate(CARDS)}
    )
    lost: set[PciAddress] = field(default_factory=set)

    def is_on_bus(self, address: PciAddress) -> bool:
        return address not in self.lost

    def card(self, address: PciAddress) -> Card:
        if address in self.lost:
            raise HardwareError(f"card {address} is lost")
        return card(address, self.minors[address])


@dataclass
class Api:
    """Claims and pods by (namespace, name); `reads` are the names in the order asked for, and
    `errors` are raised by the first reads; None lets one through."""

    claims: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    pods: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    errors: list[KubeError | None] = field(default_factory=list)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> dict[str, Any]:
        if resource is not PODS:
            return self.get_claim(namespace, name)
        self._read(f"pod {name}")
        return _found(self.pods, namespace, name)

    def get_claim(self, namespace: str, name: str) -> dict[str, Any]:
        self._read(f"claim {name}")
        return _found(self.claims, namespace, name)

    def _read(self, what: str) -> None:
        self.reads.append(what)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error

    def add(self, claim: dict[str, Any]) -> ClaimRef:
        ref = ClaimRef.of(claim)
        self.claims[ref.namespace, ref.name] = claim
        return ref


def _found(
    objects: Mapping[tuple[str, str], dict[str, Any]], namespace: str, name: str
) -> dict[str, Any]:
    try:
        return objects[namespace, name]
    except KeyError:
        raise NotFound(f"{namespace}/{name} not found", status=404, reason="NotFound") from None


def result(card: int | str, request: str = "gcu", **more: Any) -> dict[str, Any]:
    """An allocation result: `card` as a place in `CARDS`, or a device's name."""
    name = card if isinstance(card, str) else device_name(Mode.WHOLE, CARDS[card])
    entry = {"request": request, "driver": DRIVER, "pool": POOL, "device": name}
    return {**entry, **more}


def claim(
    name: str,
    *results: dict[str, Any],
    uid: str = "",
    pods: tuple[str, ...] = ("pod",),
    config: tuple[dict[str, Any], ...] = (),
    made_for: str = "",
) -> dict[str, Any]:
    """An allocated claim in namespace ``team``; the pods' UIDs are ``uid-<name>``. `config` is that
    of the allocation, to which an allocator copies the claim's own. `made_for` is the pod for which
    it was made from a template."""
    devices: dict[str, Any] = {"results": list(results)}
    if config:
        devices["config"] = list(config)
    own = [entry for entry in config if entry.get("source") == "FromClaim"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": made_for, "uid": f"uid-{made_for}"}
    owners = {"ownerReferences": [owner | {"controller": True}]} if made_for else {}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": uid or f"uid-{name}", **owners},
        "spec": {"devices": {"config": own}},
        "status": {
            "allocation": {"devices": devices},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods],
        },
    }


def gcu_config(source: str, **fields: object) -> dict[str, Any]:
    """An entry of an allocation's configuration with a GcuConfig of these fields."""
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **fields}
    return {"source": source, "opaque": {"driver": DRIVER, "parameters": parameters}}


def pod(
    claims: Mapping[str, str], *containers: tuple[str, ...], name: str = "pod", node: str = NODE
) -> dict[str, Any]:
    """A pod on `node`: `claims` maps its own names to ResourceClaims; a container is a tuple of
    ``<name>`` or ``<name>/<request>``."""
    return {
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}"},
        "spec": {
            "nodeName": node,
            "resourceClaims": [
                {"name": own, "resourceClaimName": claim} for own, claim in claims.items()
            ],
            "containers": [
                {"name": f"c{i}", "resources": {"claims": [_entry(use) for use in uses]}}
                for i, uses in enumerate(containers)
            ],
        },
    }


def _entry(use: str) -> dict[str, str]:
    name, _, request = use.partition("/")
    return {"name": name, "request": request} if request else {"name": name}


def hold(
    card: int, *, mode: Mode = Mode.WHOLE, request: str = "gcu", **more: Any
) -> PreparedDevice:
    return PreparedDevice(
        request, POOL, device_name(mode, CARDS[card]), **{"visible_cards": (CARDS[card],), **more}
    )


@dataclass
class World:
    """One node. `boot` starts an agent anew, as after a kill; `on_recreated` has the instances that
    were reported, `on_prepared` the names of claims that were, `pauses` those between reads that
    were repeated."""

    root: Path
    machine: Machine = field(default_factory=Machine)
    api: Api = field(default_factory=Api)
    injection: Injection = Injection.CDI
    failures: DeviceCircuitBreaker = field(default_factory=DeviceCircuitBreaker)
    take: Take = take_lock
    on_recreated: list[RecreatedInstance] = field(default_factory=list)
    on_prepared: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def boot(self, effects: Effects = NO_FAULTS) -> Agent:
        journal = Journal(self.root / "state", effects=effects, capacity=1 << 14)
        cdi = CdiDirectory(self.root / "cdi", effects=effects)
        metadata = MetadataDirectory(self.root / "metadata", effects=effects)
        locks = Locks(self.root / "state" / "locks", take=self.take)
        claim_manager = PreparedClaimManager(
            hardware=self.hardware(),
            journal=journal,
            cdi=cdi,
            metadata=metadata,
            locks=locks,
            injection=self.injection,
            drs=self.drs_card(journal, effects),
            slice_count=self.slice_count(journal),
            failures=self.failures,
            on_recreated=self.on_recreated.append,
        )
        preparer = Preparer(
            api=self.api,
            claim_manager=claim_manager,
            journal=journal,
            locks=locks,
            node_name=NODE,
            on_prepared=lambda claim: self.on_prepared.append(claim["metadata"]["name"]),
            clock=lambda: sum(self.pauses),
            pause=self.pauses.append,
        )
        return Agent(journal, preparer, locks)

    def hardware(self) -> Hardware:
        """What an agent sees of the cards."""
        return self.machine

    def drs_card(self, _journal: Journal, _effects: Effects) -> Any:
        """The `DrsCard` of an agent with that journal; here no card is in DRS mode."""
        return None

    def slice_count(self, _journal: Journal) -> SliceCount:
        """By the rule."""
        return lambda _card: SLICES

    def start(self, effects: Effects = NO_FAULTS) -> Agent:
        """Boot, open the journal and recover."""
        agent = self.boot(effects)
        agent.recover()
        return agent

    def files(self) -> dict[str, str]:
        """The CDI directory, by file name."""
        cdi = self.root / "cdi"
        return {path.name: path.read_text() for path in cdi.iterdir()} if cdi.exists() else {}

    def reboot(self) -> None:
        """The tmpfs with the CDI files is empty afterwards."""
        for path in (self.root / "cdi").iterdir():
            path.unlink()


@dataclass
class Agent:
    """What one process of the agent has."""

    journal: Journal
    preparer: Preparer
    locks: Locks

    def recover(self) -> Findings:
        self.journal.open()
        report = recover_all(self.preparer.claim_manager, self.journal)
        if not self.journal.is_complete:
            self.journal.mark_rebuilt(self.journal.losses)
        return report

    def held(self) -> dict[str, str]:
        """State by claim UID."""
        return {uid: held.state.value for uid, held in self.journal.snapshot().claims.items()}
