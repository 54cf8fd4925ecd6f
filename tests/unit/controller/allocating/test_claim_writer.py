"""What a command about claims writes, and what the deciding thread is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from controller.allocating.claim_writer import ClaimWriter
from controller.allocating.commands import FenceClaim, ReleaseAllocation, WriteAllocation
from controller.cache import pods
from controller.cache.keys import Key
from controller.leaderelection.fence import Fence, NotLeader
from controller.write.commands import Answer, Command, LiftGate
from controller.write.writer import Writer
from dra_driver.kube.errors import Conflict, Forbidden, KubeError, NotFound, Unavailable
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object, allocation, reserved_for
from dra_driver.model.names import ANNOTATION_TERM, FINALIZER, SCHEDULING_GATE
from tests.unit.controller.allocator.build import allocated, claim
from tests.unit.controller.fake_api import FakeApi
from tests.unit.controller.world import pod

GATED: Object = {"schedulingGates": [{"name": SCHEDULING_GATE}]}
CONFIG: Final = [{"opaque": {"driver": "other.example.com", "parameters": {"a": 1}}}]
REFUSED: Final = Forbidden("a policy refuses it", status=403)
CONFLICT: Final = Conflict("a webhook answers so", status=409)
LOST: Final = Unavailable("no answer")


class Leader:
    """The writer of a leader in term 7, and a server with the pod `p`, which is gated. `claims` are
    as they were read for a decision."""

    def __init__(self, *claims: Object, api: FakeApi | None = None) -> None:
        self.api = api or FakeApi()
        self.pod = self.api.put(PODS, pod("p", "c", **GATED))
        self.claims = tuple(self.store_claim(each) for each in claims or (claim("c"),))
        self.fence = Fence(lambda: 0.0)
        self.fence.open_until(1.0, "7")
        self.fence.accept()
        others = Writer(self.api, self.fence, self.api.server_version)
        self.writer = ClaimWriter(self.api, self.fence, others)

    def store_claim(self, obj: Object) -> Object:
        metadata = {"uid": f"uid-{obj['metadata']['name']}"} | obj["metadata"]
        return self.api.put(RESOURCE_CLAIMS, obj | {"metadata": metadata})

    def claim(self, name: str = "c") -> Object:
        return self.api.live[RESOURCE_CLAIMS, name]

    def allocate(self, *, read_pod: bool = False, lifts_gate: bool = False) -> Answer:
        """Execute the decision about the claims as they were stored first."""
        decided = tuple(
            each | {"status": allocated(each["metadata"]["name"], "a", "card")["status"]}
            for each in self.claims
        )
        return self.execute(
            WriteAllocation(
                key=pods.key_of(self.pod),
                pod=self.pod,
                claims=decided,
                read_pod=read_pod,
                lifts_gate=lifts_gate,
            )
        )

    def execute(self, command: Command) -> Answer:
        return self.writer.begin(command)()

    def release(self) -> Answer:
        key = Key.of_claim(self.claims[0])
        return self.execute(ReleaseAllocation(key=key, claims=self.claims, why="tried"))

    def fence_claim(self) -> Answer:
        return self.execute(FenceClaim(key=Key.of_claim(self.claims[0]), claims=self.claims))


def changed(obj: Object, **metadata: object) -> Object:
    return obj | {"metadata": obj["metadata"] | metadata}


def protected(name: str, **metadata: object) -> Object:
    return changed(claim(name), finalizers=[FINALIZER], **metadata)


def configured(name: str) -> Object:
    made = claim(name)
    made["spec"]["devices"]["config"] = CONFIG
    return made


def reserved(name: str) -> Object:
    made = allocated(name, "a", "card")
    made["status"]["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    return made


def term_of(found: Object) -> str | None:
    term: str | None = (found["metadata"].get("annotations") or {}).get(ANNOTATION_TERM)
    return term


@pytest.mark.parametrize(
    ("claims", "writes"),
    [
        pytest.param([claim("c")], ["c", "c status"], id="the finalizer first"),
        pytest.param([protected("c")], ["c status"], id="a finalizer that is there"),
        pytest.param([configured("c")], ["c exactly", "c status"], id="opaque parameters"),
        pytest.param(
            [claim("c"), claim("d")], ["c", "c status", "d", "d status"], id="one after the other"
        ),
    ],
)
def test_an_allocation(claims: list[Object], writes: list[str]) -> None:
    leader = Leader(*claims)
    answer = leader.allocate()
    assert leader.api.writes == writes
    names = [each["metadata"]["name"] for each in claims]
    assert answer == Answer(tuple(map(leader.claim, names)))
    for stored in answer.claims:
        assert allocation(stored) is not None
        assert stored["metadata"]["finalizers"] == [FINALIZER]


def test_the_finalizers_of_others_stay() -> None:
    leader = Leader(changed(claim("c"), finalizers=["other"]))
    leader.allocate()
    assert leader.claim()["metadata"]["finalizers"] == ["other", FINALIZER]


@pytest.mark.parametrize(
    ("is_gated", "lifts_gate", "writes"),
    [
        pytest.param(True, True, ["c status", "p patch"], id="the gate is lifted"),
        pytest.param(True, False, ["c status"], id="its gang waits"),
        pytest.param(False, True, ["c status"], id="it has none"),
    ],
)
def test_the_gate_is_lifted_after_the_allocation(
    is_gated: bool, lifts_gate: bool, writes: list[str]
) -> None:
    leader = Leader(protected("c"))
    if not is_gated:
        leader.pod = leader.api.put(PODS, pod("p", "c"))
    answer = leader.allocate(lifts_gate=lifts_gate)
    assert leader.api.writes == writes
    assert answer.pod == (leader.api.live[PODS, "p"] if "p patch" in writes else None)


def test_a_gate_that_cannot_be_lifted_leaves_the_allocation() -> None:
    leader = Leader(protected("c"))
    leader.api.faults.refuse(REFUSED, "patch")
    answer = leader.allocate(lifts_gate=True)
    assert answer == Answer((leader.claim(),), error=REFUSED)
    assert allocation(leader.claim()) is not None


@pytest.mark.parametrize(
    ("change", "writes", "is_there"),
    [
        pytest.param(lambda _: None, ["c status"], True, id="as it was"),
        pytest.param(
            lambda leader: leader.api.put(PODS, pod("p", "c", nodeName="a")), [], True, id="bound"
        ),
        pytest.param(
            lambda leader: leader.api.put(PODS, changed(pod("p", "c"), uid="uid-of-another")),
            [],
            False,
            id="another pod of its name",
        ),
        pytest.param(lambda leader: leader.api.remove(PODS, "p", "default"), [], False, id="gone"),
    ],
)
def test_the_pod_is_read_before(
    change: Callable[[Leader], object], writes: list[str], is_there: bool
) -> None:
    leader = Leader(protected("c"))
    change(leader)
    answer = leader.allocate(read_pod=True)
    assert (leader.api.reads, leader.api.writes) == (["pods p"], writes)
    assert answer.pod_changed is not bool(writes)
    if answer.pod_changed:
        assert answer == Answer(
            pod=leader.api.live[PODS, "p"] if is_there else None, pod_changed=True
        )


def test_a_pod_that_cannot_be_read_gets_nothing() -> None:
    leader = Leader()
    leader.api.read_errors = [LOST]
    assert leader.allocate(read_pod=True) == Answer(error=LOST)
    assert leader.api.writes == []


@pytest.mark.parametrize("found", [claim("c"), protected("c")], ids=["finalizer", "allocation"])
@pytest.mark.parametrize(
    ("error", "is_read"), [(CONFLICT, True), (REFUSED, False)], ids=["conflict", "refused"]
)
def test_an_allocation_that_the_server_refuses(
    found: Object, error: KubeError, *, is_read: bool
) -> None:
    """After a conflict the deciding thread gets the claim as it is. The gate stays."""
    leader = Leader(found)
    leader.api.write_errors = [error]
    answer = leader.allocate(lifts_gate=True)
    assert answer == Answer((leader.claim(),) if is_read else (), error=error)
    assert allocation(leader.claim()) is None
    assert pods.has_our_gate(leader.api.live[PODS, "p"])


def test_of_two_claims_the_first_stays_allocated() -> None:
    leader = Leader(protected("c"), claim("d"))
    leader.store_claim(protected("d"))
    answer = leader.allocate()
    assert leader.api.writes == ["c status", "d"]
    assert isinstance(answer.error, Conflict)
    assert answer.claims == (leader.claim("c"), leader.claim("d"))
    assert allocation(leader.claim("d")) is None


def test_a_claim_that_cannot_be_read_after_a_conflict() -> None:
    """Its watch brings it."""
    leader = Leader()
    leader.api.write_errors, leader.api.read_errors = [CONFLICT], [LOST]
    assert leader.allocate() == Answer(error=CONFLICT)


@pytest.mark.parametrize("has_arrived", [False, True])
def test_an_allocation_without_answer_is_fenced(*, has_arrived: bool) -> None:
    """So that it cannot arrive any more, if it has not."""
    leader = Leader(protected("c"))
    leader.api.faults.refuse(LOST, "replace", done=has_arrived)
    assert leader.allocate() == Answer((leader.claim(),), error=LOST)
    assert (allocation(leader.claim()) is not None) is has_arrived
    assert term_of(leader.claim()) == (None if has_arrived else "7.1")


class Losing(FakeApi):
    """No write of the status of claim `d` arrives."""

    def replace(self, resource: Resource, body: Object, *, subresource: str = "") -> Object:
        if (body["metadata"]["name"], subresource) == ("d", "status"):
            raise LOST
        return super().replace(resource, body, subresource=subresource)


def test_of_two_claims_the_second_is_fenced_and_the_first_stays_allocated() -> None:
    leader = Leader(claim("c"), claim("d"), api=Losing())
    answer = leader.allocate()
    assert answer == Answer((leader.claim("c"), leader.claim("d")), error=LOST)
    assert [allocation(each) is not None for each in answer.claims] == [True, False]
    assert term_of(leader.claim("d")) == "7.1"


def test_an_allocation_that_cannot_be_fenced_is_uncertain() -> None:
    leader = Leader(protected("c"), protected("d"))
    leader.api.faults.refuse(LOST, "replace", times=2)
    answer = leader.allocate()
    assert answer.error is LOST
    assert [each["metadata"]["name"] for each in answer.uncertain] == ["c"]
    assert leader.api.writes == ["c status", "c"]


def test_a_finalizer_without_answer_is_not_fenced() -> None:
    """Whether or not it arrives, nothing is allocated by it."""
    leader = Leader()
    leader.api.write_errors = [LOST]
    assert leader.allocate() == Answer(error=LOST)
    assert leader.api.reads == []


def test_after_an_unforeseen_error_all_claims_are_uncertain() -> None:
    leader = Leader(protected("c"), protected("d"))
    error = RuntimeError("a fault of ours")
    leader.api.write_errors = [error]
    answer = leader.allocate()
    assert answer.error is error
    assert [each["metadata"]["name"] for each in answer.uncertain] == ["c", "d"]


def test_a_release_clears_what_goes_with_the_allocation() -> None:
    found = allocated("c", "a", "card")
    found["status"] |= {"devices": [{"device": "card"}], "other": "stays"}
    leader = Leader(found)
    assert leader.release() == Answer((leader.claim(),))
    assert leader.api.writes == ["c status"]
    assert leader.claim()["status"] == {"other": "stays"}


def test_a_claim_that_is_gone_stops_no_release_of_others() -> None:
    leader = Leader(allocated("c", "a", "card"), allocated("d", "a", "card"))
    leader.api.remove(RESOURCE_CLAIMS, "c", "default")
    assert leader.release() == Answer((leader.claim("d"),))
    assert allocation(leader.claim("d")) is None


def test_a_reservation_in_the_meantime_wins() -> None:
    leader = Leader(allocated("c", "a", "card"), allocated("d", "a", "card"))
    leader.store_claim(reserved("c"))
    answer = leader.release()
    assert isinstance(answer.error, Conflict)
    assert answer.claims == (leader.claim("c"),)
    assert leader.api.writes == ["c status"]
    assert reserved_for(leader.claim("c"))
    assert allocation(leader.claim("d")) is not None


def test_a_claim_in_use_is_read_and_written_whole() -> None:
    """It was decoded in part."""
    leader = Leader(changed(reserved("c"), labels={"team": "a"}))
    [whole] = leader.claims
    metadata = {key: value for key, value in whole["metadata"].items() if key != "labels"}
    leader.claims = (whole | {"metadata": metadata},)
    assert leader.release() == Answer((leader.claim(),))
    assert leader.api.reads == ["resourceclaims c"]
    assert leader.claim()["metadata"]["labels"] == {"team": "a"}
    assert leader.claim()["status"] == {}


def test_a_claim_in_use_that_has_changed_is_not_released() -> None:
    leader = Leader(reserved("c"))
    leader.store_claim(changed(reserved("c"), labels={"team": "a"}))
    answer = leader.release()
    assert isinstance(answer.error, Conflict)
    assert answer.claims == (leader.claim(),)
    assert leader.api.writes == []


def test_a_release_without_answer_is_not_uncertain() -> None:
    """Devices that are free are no harm; it is tried again."""
    leader = Leader(allocated("c", "a", "card"))
    for error in (LOST, RuntimeError("a fault of ours")):
        leader.api.write_errors = [error]
        assert leader.release() == Answer(error=error)


def test_each_fence_is_a_new_write() -> None:
    leader = Leader(changed(claim("c"), annotations={"other": "stays"}))
    for term in ("7.1", "7.2"):
        assert leader.fence_claim() == Answer((leader.claim(),))
        assert term_of(leader.claim()) == term
    assert leader.claim()["metadata"]["annotations"]["other"] == "stays"
    assert leader.api.writes == ["c", "c"]


def test_a_fence_keeps_opaque_parameters_as_they_are() -> None:
    leader = Leader(configured("c"))
    assert leader.fence_claim() == Answer((leader.claim(),))
    assert leader.api.writes == ["c exactly"]
    assert term_of(leader.claim()) == "7.1"


@pytest.mark.parametrize(
    "present",
    [
        pytest.param(allocated("c", "a", "card"), id="allocated meanwhile"),
        pytest.param(changed(claim("c"), uid="uid-of-another"), id="another claim of its name"),
        pytest.param(None, id="gone"),
    ],
)
def test_what_needs_no_fence(present: Object | None) -> None:
    leader = Leader()
    leader.api.remove(RESOURCE_CLAIMS, "c", "default")
    answered = () if present is None else (leader.store_claim(present),)
    assert leader.fence_claim() == Answer(answered)
    assert leader.api.writes == []


def test_a_claim_that_changes_while_it_is_fenced_is_read_again() -> None:
    leader = Leader()
    leader.api.write_errors = [CONFLICT]
    leader.api.before_error = lambda: leader.store_claim(protected("c"))
    assert leader.fence_claim() == Answer((leader.claim(),))
    assert leader.api.writes == ["c", "c"]
    assert (leader.claim()["metadata"]["finalizers"], term_of(leader.claim())) == (
        [FINALIZER],
        "7.1",
    )


@pytest.mark.parametrize(
    "error",
    [CONFLICT, LOST, RuntimeError("a fault of ours")],
    ids=lambda error: type(error).__name__,
)
def test_a_claim_that_cannot_be_fenced_is_uncertain(error: Exception) -> None:
    """Of conflicts, an admission webhook may answer so each time."""
    leader = Leader()
    leader.api.write_errors = [error]
    assert leader.fence_claim() == Answer(error=error, uncertain=leader.claims)


def test_the_term_is_not_written_into_an_allocated_claim() -> None:
    leader = Leader(allocated("c", "a", "card"))
    [found] = leader.claims
    assert leader.writer.write_term(found, "7") is found
    assert leader.api.writes == []


def test_the_term_of_a_claim_that_is_gone() -> None:
    leader = Leader()
    leader.api.remove(RESOURCE_CLAIMS, "c", "default")
    with pytest.raises(NotFound):
        leader.writer.write_term(leader.claims[0], "7")


@pytest.mark.parametrize("execute", [Leader.allocate, Leader.fence_claim], ids=["write", "fence"])
def test_nothing_is_written_without_the_lease(execute: Callable[[Leader], Answer]) -> None:
    leader = Leader()
    leader.fence.close()
    answer = execute(leader)
    assert isinstance(answer.error, NotLeader)
    assert leader.api.writes == []


def test_nothing_is_released_without_the_lease() -> None:
    leader = Leader(allocated("c", "a", "card"))
    leader.fence.close()
    assert isinstance(leader.release().error, NotLeader)
    assert leader.api.writes == []


def test_other_commands_are_executed_by_the_other_writer() -> None:
    leader = Leader()
    answer = leader.execute(LiftGate(key=pods.key_of(leader.pod), pod=leader.pod))
    assert answer == Answer(pod=leader.api.live[PODS, "p"])
    assert leader.api.writes == ["p patch"]
