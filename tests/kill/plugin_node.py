"""A node for kill tests whose cards are served as a device plugin."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from dra_driver.kube.client import Client
from dra_driver.kube.errors import NotFound
from dra_driver.kube.resources import NODES, PODS
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.claims.owner import ContainerAllocation as Holder
from dra_driver.model.claims.owner import grant_uid
from dra_driver.model.devices.plugin_device import RESOURCES, PluginDevice
from dra_driver.model.effects import Point
from dra_driver.model.errors import JournalError
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_CARDS, CDI_KIND, DRIVER
from dra_driver.node.checkpoint.records import ClaimStep
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import pod
from tests.kill.grants import CARDS, FOREIGN, Grant, bystanders
from tests.kill.kubelet import NoAnswer
from tests.kill.moments import Moment
from tests.kill.node import NOTHING, Node
from tests.kill.plugin_kubelet import PluginKubelet
from tests.kill.quick_efsmi import QuickEfsmi
from tests.unit.node.ledger_file import read_ledger

_SECONDS = 60.0
_KUBELET = "v1.30.14"
_AMOUNTS = {Mode.WHOLE: 1, Mode.SHARED: 6, Mode.DRS: 6}  # devices of a card


class PluginNode(Node):
    """As `Node`, but what is held is a container's, of a pod of that name; `prepare` is the
    kubelet's admission, `unprepare` the pod's end and what the agent makes of it.

    Nothing is released but in `unprepare` and `settle`. The journal is read there alone, to learn
    when that is over: the rest is judged by the CDI directory and what the kubelet was told.
    """

    def __init__(
        self,
        name: str,
        root: Path,
        *,
        api: Client,
        namespace: str,
        kubeconfig: Path,
        efsmi: QuickEfsmi | None = None,
    ) -> None:
        super().__init__(
            name,
            root,
            api=api,
            namespace=namespace,
            kubeconfig=kubeconfig,
            efsmi=efsmi,
        )
        told = {"status": {"nodeInfo": {"kubeletVersion": _KUBELET}}}
        api.patch(NODES, name, told, subresource="status")
        self._namespace = namespace
        self.pods = PluginKubelet(root / "kubelet", namespace)
        self.pods.start()

    def argv(self, flags: Mapping[str, object] = NOTHING) -> list[str]:
        return super().argv({"mode": "device-plugin", "release-interval": 0.2, **flags})

    def boot(self, order: Moment | None = None, flags: Mapping[str, object] = NOTHING) -> None:
        self.pods.expect()
        super().boot(order, flags)

    def is_served(self) -> bool:
        # A list that did not wait for the API server's answer has what is held alone.
        return self.pods.hears() and self.publishes()

    def add(self, grant: Grant, name: str = "") -> ClaimRef:
        """A pod of which the kubelet begins to know."""
        self._serial += 1
        made = self.api.create(PODS, self._pod(name or f"{self.name}-{self._serial}", grant))
        ref = ClaimRef.of(made)
        self.pods.uids[ref.name] = ref.uid
        self.held[ref] = grant
        return ref

    def prepare(self, ref: ClaimRef) -> str:
        # Again the same: what an agent had prepared when it was killed can fill a card by its own
        # count, which then prefers another.
        return self._begin(ref, self.pods.chosen.get(ref.name, frozenset()))

    def unprepare(self, ref: ClaimRef) -> str:
        self.forget(ref)
        self.settle()
        return ""

    def forget(self, ref: ClaimRef) -> None:
        """The pod ends, and the agent cannot see it yet."""
        self.pods.end(ref.name)
        with suppress(NotFound):
            self.api.delete(PODS, ref.name, namespace=ref.namespace)

    def successor(self, ref: ClaimRef, grant: Grant) -> ClaimRef:
        """Another pod, for which the kubelet has not called yet."""
        made = self.add(grant)
        del self.held[made]
        return made

    def succeed(self, ref: ClaimRef, successor: ClaimRef, *, refused: bool) -> None:
        """The kubelet gives it the devices of the pod that has ended, before the agent can see that
        end: never `refused`, as a claim would be. Raises AssertionError."""
        self.held[successor] = self.held.pop(ref)
        error = self._begin(successor, self.pods.chosen.get(ref.name, frozenset()))
        assert error == "", error

    def hand_on(self, ref: ClaimRef) -> None:
        """Let the first of its devices be on record for a pod that has ended since."""
        grant = self.held[ref]
        first = str(PluginDevice(grant.card, grant.mode, _AMOUNTS[grant.mode] - 1))
        former = self.add(Grant(grant.mode, grant.card, min(1, grant.amount)))
        assert self._begin(former, frozenset({first})) == ""
        # The kubelet has the reply before the agent has passed the moment after it, which an order
        # to die would find otherwise.
        wait_until(self._is_replied, _SECONDS, "the moment after a reply", seen=self.log)
        self.forget(former)
        del self.held[former]

    def settle(self) -> None:
        """The agent releases what no pod has."""
        with self.pods.opened():
            wait_until(self._is_settled, _SECONDS, "a release", seen=self.log, interval=0.05)

    def is_told(self, ref: ClaimRef) -> bool:
        return ref.uid in self._annotation()

    def serve_others(self) -> None:
        self.up()
        wait_until(self.publishes, _SECONDS, "all devices", seen=self.log)
        # Where they are is the test's choice, so that there is room for each kind.
        for grant in bystanders():
            ids = [PluginDevice(grant.card, grant.mode, n) for n in range(max(1, grant.amount))]
            assert self._begin(self.add(grant), frozenset(map(str, ids))) == ""
        wait_until(lambda: all(map(self.is_told, self.held)), _SECONDS, "told", seen=self.log)

    def publishes(self) -> bool:
        """Whether each card has devices of the mode that it is held in, or of all modes; none of
        the foreign card's is healthy; and the Node is told."""
        files = self.files()
        given = {
            device
            for devices in map(_parsed, self.pods.chosen.values())
            if _file_name(devices) in files
            for device in devices
        }
        wanted = {
            str(PluginDevice(card, mode, ordinal))
            for card in CARDS
            for mode in {each.mode for each in given if each.card == card} or set(Mode)
            for ordinal in range(_AMOUNTS[mode])
        }
        healthy = {each for name in RESOURCES.values() for each in self.pods.ids(name)}
        ill = {each for name in RESOURCES.values() for each in self.pods.ids(name, healthy=False)}
        listed = {each for each in healthy | ill if not each.startswith(str(FOREIGN))}
        foreign = {each for each in healthy if each.startswith(str(FOREIGN))}
        return listed == wanted and not foreign and bool(self._annotation())

    def file_of(self, ref: ClaimRef) -> Path:
        return self.cdi / _file_name(_parsed(self.pods.chosen.get(ref.name, frozenset())))

    def start_over(self) -> None:
        self.pods.stop()
        super().start_over()
        self.pods = PluginKubelet(self.root / "kubelet", self._namespace)
        self.pods.start()

    def close(self) -> None:
        super().close()
        self.pods.stop()

    def _begin(self, ref: ClaimRef, devices: frozenset[str] = frozenset()) -> str:
        grant = self.held[ref]
        error = self.pods.begin(ref.name, grant, devices)
        cards = {each.card for each in _parsed(self.pods.chosen[ref.name])}
        assert cards == {grant.card}, f"{ref.name} was given {cards}, and {grant.card} fits best"
        if not error:
            there = json.loads(self.file_of(ref).read_text())["devices"]
            names = {f"{CDI_KIND}={each['name']}" for each in there}
            told = self.pods.told(ref.name)
            assert told == names, f"the runtime is told {told}, and finds {names}"
        return error

    def _pod(self, name: str, grant: Grant) -> Object:
        """Bound to the node, as it is on the API server when the kubelet sees it."""
        limits = {RESOURCES[grant.mode]: str(max(1, grant.amount))}
        made = pod(name, self._namespace, nodeName=self.name, terminationGracePeriodSeconds=0)
        made["spec"]["containers"][0]["resources"] = {"limits": limits}
        return made

    def _is_replied(self) -> bool:
        seen = Counter(self.agent.trace())
        return seen[f"before {Point.REPLY_ALLOCATE}"] == seen[f"after {Point.REPLY_ALLOCATE}"]

    def _is_settled(self) -> bool:
        if self.agent.ended():
            raise NoAnswer("the agent has ended before it released anything")
        try:
            held = read_ledger(self.state).claims.values()
        except JournalError:  # the agent has not rebuilt a damaged one yet
            return False
        owners = {
            frozenset(map(str, each.owner.devices))
            for each in held
            if isinstance(each.owner, Holder) and each.state is ClaimStep.PREPARE_COMPLETED
        }
        return len(owners) == len(held) and owners == self.pods.recorded()

    def _annotation(self) -> str:
        told = self.api.get(NODES, self.name)["metadata"].get("annotations") or {}
        return str(told.get(ANNOTATION_CARDS, ""))


@cache
def _parsed(ids: frozenset[str]) -> tuple[PluginDevice, ...]:
    return tuple(sorted(map(PluginDevice.parse, ids)))


@cache
def _file_name(devices: tuple[PluginDevice, ...]) -> str:
    """Of the CDI file of the container that has these."""
    return f"{DRIVER}-claim-{grant_uid(devices)}.json"
