"""The decision's way into the ServiceAccount and into events."""

from __future__ import annotations

from typing import Final

import pytest

from controller.leaderelection.fence import Fence
from controller.legacy_resources.decision import DecisionRule
from controller.legacy_resources.decision_cache import TRANSLATE, DecisionCache
from controller.legacy_resources.foreign_resources import ForeignResources
from controller.legacy_resources.publisher import LEFT, TRANSLATED, DecisionPublisher
from controller.own_pod import OwnPod
from dra_driver.kube.api import Change
from dra_driver.kube.resources import PODS, SERVICE_ACCOUNTS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_SHARED
from tests.fake_api.api import FakeApi
from tests.unit.agent.recorder import ListRecorder
from tests.unit.controller.legacy_resources.test_decision import node

NAMESPACE: Final = "gcu"
ACCOUNT: Object = {"metadata": {"name": "limits", "namespace": NAMESPACE}}


class Accounts(FakeApi):
    """A server with the chart's ServiceAccount, and the pod of the controller."""

    def __init__(self) -> None:
        pod = {"metadata": {"name": "controller-1", "namespace": NAMESPACE}}
        super().__init__((SERVICE_ACCOUNTS, ACCOUNT), (PODS, pod))

    @property
    def account(self) -> Object:
        [found] = self.all(SERVICE_ACCOUNTS)
        return found

    @property
    def writes(self) -> int:
        return sum(each.verb == "patch" for each in self.faults.calls)


class Rig:
    """A publisher whose time is the test's; its replica leads."""

    def __init__(self) -> None:
        self.now = 0.0
        self.fence = Fence(lambda: 0.0)
        self.fence.open_until(1.0, "term")
        self.api = Accounts()
        self.recorder = ListRecorder()
        self.foreign = ForeignResources()
        self.cache = DecisionCache()
        self.publisher = DecisionPublisher(
            self.api,
            self.fence,
            OwnPod(self.api, self.recorder, namespace=NAMESPACE, name="controller-1"),
            namespace=NAMESPACE,
            name="limits",
            foreign=self.foreign,
            cache=self.cache,
            rule=DecisionRule(60.0, lambda: self.now),
            clock=lambda: self.now,
        )

    def listed(self, *nodes: Object) -> None:
        self.foreign.on_replace(nodes)
        self.cache.on_replace([self.api.account])

    def run_at(self, now: float) -> None:
        self.now = now
        self.publisher.run_once()

    @property
    def translate(self) -> str | None:
        value: str | None = self.api.account["metadata"].get("annotations", {}).get(TRANSLATE)
        return value

    @property
    def reasons(self) -> list[str]:
        return [each.partition(" ")[0] for each in self.recorder.lines]


@pytest.mark.parametrize(
    ("offered", "translate", "reason"),
    [({}, "true", TRANSLATED), ({RESOURCE_SHARED: "6"}, "false", LEFT)],
)
def test_the_first_decision_is_written_and_reported_once(
    offered: dict[str, str], translate: str, reason: str
) -> None:
    rig = Rig()
    rig.listed(node(offered))
    for now in range(10):
        rig.run_at(now)
    assert (rig.translate, rig.reasons, rig.api.writes) == (translate, [reason], 1)


def test_both_ways_while_it_runs() -> None:
    rig = Rig()
    rig.listed(node())
    rig.run_at(0)
    rig.foreign.on_event(Change.MODIFIED, node({RESOURCE_SHARED: "6"}))
    rig.run_at(1)
    assert rig.translate == "false"
    rig.foreign.on_event(Change.MODIFIED, node({RESOURCE_SHARED: "0"}))
    rig.run_at(2)
    rig.run_at(61)
    assert rig.translate == "false"
    rig.run_at(62)
    assert rig.translate == "true"
    assert rig.reasons == [TRANSLATED, LEFT, TRANSLATED]


def test_nothing_is_decided_before_all_is_read() -> None:
    rig = Rig()
    rig.run_at(0)
    rig.cache.on_replace([rig.api.account])
    rig.run_at(1)
    rig.foreign.on_replace([])
    rig.run_at(2)
    assert (rig.api.writes, rig.translate) == (1, "true")


def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    rig = Rig()
    rig.fence.close()
    rig.listed(node())
    rig.run_at(0)
    assert rig.api.writes == 0


def test_a_new_leader_says_nothing_again() -> None:
    rig = Rig()
    metadata = ACCOUNT["metadata"] | {"annotations": {TRANSLATE: "false"}}
    rig.api.put(SERVICE_ACCOUNTS, {"metadata": metadata})
    rig.listed(node({RESOURCE_SHARED: "6"}))
    rig.run_at(0)
    assert rig.translate == "false"
    assert rig.reasons == []


def test_what_somebody_deletes_is_written_again() -> None:
    rig = Rig()
    rig.listed(node())
    rig.run_at(0)
    rig.api.put(SERVICE_ACCOUNTS, ACCOUNT)
    rig.cache.on_event(Change.MODIFIED, rig.api.account)
    rig.run_at(1)
    assert rig.translate == "true"


def test_without_the_service_account_it_tries_again_from_time_to_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.listed(node())
    rig.api.remove(SERVICE_ACCOUNTS, "limits", NAMESPACE)
    for now in range(20):
        rig.run_at(now)
    assert caplog.text.count("ServiceAccount gcu/limits cannot be written") == 2
    assert rig.reasons == []
    rig.api.put(SERVICE_ACCOUNTS, ACCOUNT)
    rig.run_at(20)
    assert rig.reasons == [TRANSLATED]
