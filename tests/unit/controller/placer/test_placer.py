"""Where a pod is placed, or why nowhere: for the controller, the extender and kubectl gcu alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controller.allocator.allocate import FitError
from controller.allocator.packing.policy import BINPACK, Policy, SchedulerPolicy
from controller.cache.cache import ClusterCache
from controller.filter.node_filter import FeasibleNodes, NodeFilter
from controller.filter.predictions import Predictions
from controller.placer.candidates import Candidates
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.claims.packing import Packing
from dra_driver.model.errors import Refused
from dra_driver.model.names import CLASS_DRS, CLASS_SHARED, DRIVER
from dra_driver.selector.selector import Selectors
from tests.unit.controller.allocator.build import (
    ANY,
    ANY_CLASS,
    CLASSES,
    OTHER_CLASS,
    allocated,
    claim,
    device,
    first_available,
    pool,
    request,
    stripped,
)
from tests.unit.controller.allocator.decide import names
from tests.unit.controller.world import node, pod

SPREAD = Policy(Packing.SPREAD, Packing.SPREAD)
SLICES = [*pool("a", [device("whole", 0)]), *pool("b", [device("whole", bus) for bus in (0, 1)])]
SHARED = [*pool("a", [device("shared", 0)]), *pool("b", [device("shared", 0)])]
BOTH_OF_B = allocated("held", "b", *names("whole", 0, 1))


class Cluster:
    """Node a with a card and node b with two, or others, and these claims and pods."""

    def __init__(
        self,
        *objects: Object,
        slices: Sequence[Object] = SLICES,
        pod_slots: Sequence[int] = (),
        nodes: Sequence[str] = "ab",
    ) -> None:
        self.cache = ClusterCache(Selectors())
        self.numbers = self.cache.state().numbers
        given = [node(name) for name in nodes]
        for each, slots in zip(given, pod_slots, strict=False):
            each["status"]["allocatable"] = {"pods": str(slots)}
        for resource, items in (
            (RESOURCE_SLICES, slices),
            (DEVICE_CLASSES, (*CLASSES.values(), OTHER_CLASS, ANY_CLASS)),
            (NODES, given),
            (RESOURCE_CLAIMS, [each for each in objects if "devices" in each["spec"]]),
            (PODS, [each for each in objects if "containers" in each["spec"]]),
        ):
            for each in items:
                stored = {"uid": each["metadata"]["name"], "resourceVersion": "1"}
                self.cache.apply(
                    resource, Change.ADDED, each | {"metadata": stored | each["metadata"]}
                )

    def placer(self, policy: Policy = BINPACK, **rules: Any) -> Placer:
        allowance = self.cache.state().selectors.allowance
        nodes = NodeFilter(self.cache, self.numbers, allowance, Predictions(self.cache))
        return Placer(self.cache, nodes, policy, **rules)

    def place(
        self, user: Object, *claims: Object, policy: Policy = BINPACK, **given: Any
    ) -> Placed | Unplaced:
        placer = self.placer(policy)
        asked = placer.read(user, {each["metadata"]["name"]: each for each in claims})
        return placer.place(asked, Candidates(**given))


def chosen(outcome: Placed | Unplaced) -> str:
    """The node, or the reason."""
    return outcome.node if isinstance(outcome, Placed) else outcome.explain()


def on(name: str) -> Object:
    """A node selector."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    return {"nodeSelectorTerms": [{"matchFields": fields}]}


def theirs(name: str) -> Object:
    """Another driver's claim, allocated on that node."""
    allocation = {"devices": {"results": []}, "nodeSelector": on(name)}
    return claim("theirs", [request(cls="gpu.example.com")]) | {
        "status": {"allocation": allocation}
    }


def configured(**fields: Any) -> list[Object]:
    """The configuration of a claim."""
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **fields}
    return [{"opaque": {"driver": DRIVER, "parameters": parameters}}]


def saying(nodes: str) -> list[Object]:
    """How to pack."""
    return configured(packing={"nodes": nodes})


C, D = claim("c"), claim("d")
SAYS_SPREAD = saying("spread")
PACKED = claim("c", config=saying("binpack"))
SPREADING = claim("c", config=SAYS_SPREAD)


@pytest.mark.parametrize(
    ("policy", "claims", "more", "expected"),
    [
        pytest.param(BINPACK, [C], {}, "a", id="binpack: fewer cards"),
        pytest.param(SPREAD, [C], {}, "b", id="spread: the emptier one"),
        pytest.param(BINPACK, [SPREADING], {}, "b", id="the claim says spread"),
        pytest.param(SPREAD, [PACKED], {}, "a", id="the claim says binpack"),
        pytest.param(BINPACK, [C], {"nodeName": "b"}, "b", id="a bound pod"),
        pytest.param(BINPACK, [C, theirs("b")], {}, "b", id="another claim's node"),
        pytest.param(BINPACK, [C, D], {}, "b", id="two claims"),
    ],
)
def test_the_node(
    policy: Policy, claims: Sequence[Object], more: Mapping[str, Any], expected: str
) -> None:
    used = [each["metadata"]["name"] for each in claims]
    assert chosen(Cluster().place(pod("p", *used, **more), *claims, policy=policy)) == expected


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(Cluster(), "b", id="it has a card"),
        pytest.param(Cluster(BOTH_OF_B), "a", id="it has none"),
        # Pods are preempted there for this one.
        pytest.param(Cluster(pod_slots=(1, 0)), "b", id="it has no room"),
    ],
)
def test_the_nominated_node_comes_first(cluster: Cluster, expected: str) -> None:
    nominated = pod("p", "c", status={"nominatedNodeName": "b"})
    assert chosen(cluster.place(nominated, C)) == expected


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param((1, 1), "a", id="room on both"),
        pytest.param((0, 1), "b", id="none on the better one"),
        pytest.param((1, 0), "a", id="none on the other one"),
        pytest.param(
            (0, 0),
            "no node fits the pod: 2 nodes: 2 without a free place for a pod",
            id="none anywhere",
        ),
    ],
)
def test_no_node_without_room(places: tuple[int, int], expected: str) -> None:
    assert chosen(Cluster(pod_slots=places).place(pod("p", "c"), C)) == expected


def test_where_the_volumes_are() -> None:
    placer = Cluster().placer()
    asked = replace(placer.read(pod("p", "c"), {"c": C}), volumes=[on("b")])
    assert chosen(placer.place(asked)) == "b"
    nowhere = placer.place(replace(asked, volumes=[on("a"), on("b")]))
    assert chosen(nowhere) == "no node fits the pod: 2 nodes: 2 not where the pod's volumes are"


@pytest.mark.parametrize(
    ("excluded", "last", "expected"),
    [
        pytest.param({"a": "reserved"}, [], "b", id="excluded"),
        pytest.param({}, ["a"], "b", id="last"),
        pytest.param({}, ["ab"], "a", id="all are last"),
        pytest.param({}, ["b", "a"], "b", id="a later set after an earlier one"),
        pytest.param({"b": "reserved"}, ["a"], "a", id="the last one that is left"),
        pytest.param(
            {"a": "reserved", "b": "refused"},
            ["ab"],
            "no node fits the pod: 2 nodes: 1 refused, 1 reserved",
            id="last and excluded",
        ),
    ],
)
def test_nodes_that_are_not_tried_or_after_all_others(
    excluded: Mapping[str, str], last: Sequence[str], expected: str
) -> None:
    cluster = Cluster()
    sets = [cluster.numbers.set_of(names) for names in last]
    assert chosen(cluster.place(pod("p", "c"), C, excluded=excluded, last=sets)) == expected


@pytest.mark.parametrize(
    ("policy", "config"),
    [pytest.param(SPREAD, [], id="policy"), pytest.param(BINPACK, SAYS_SPREAD, id="claim")],
)
def test_replicas_keep_apart_where_something_spreads(policy: Policy, config: list[Object]) -> None:
    """A replica is on node a, and on node b somebody uses more."""
    held = [
        allocated(name, on_node, *names("shared", 0), consumed={"slices": amount})
        for name, on_node, amount in (("r", "a", "1"), ("o", "b", "2"))
    ]
    first, second = pod("first", "r"), pod("second", "c")
    for each in (first, second):
        each["metadata"]["ownerReferences"] = [{"uid": "rs", "controller": True}]
    cluster = Cluster(*held, first, slices=SHARED)
    asked = claim("c", [request(cls=CLASS_SHARED)], config=config)
    assert chosen(cluster.place(second, asked, policy=policy)) == "b"
    assert chosen(cluster.place(pod("stranger", "c"), asked, policy=policy)) == "a"


def alternatives(*modes: str) -> Object:
    """A claim as the webhook writes it where cards differ: two slices, or an instance."""
    forms = {
        "shared": request("slices-2", cls=CLASS_SHARED, capacity={"slices": "2"}),
        "drs": request("size-3", cls=CLASS_DRS, capacity={"size": "3"}),
    }
    return claim("c", [first_available("gcu", *(forms[mode] for mode in modes))])


def nodes_of(mode: str, names: Sequence[str]) -> list[Object]:
    return [each for name in names for each in pool(name, [device(mode, 0)])]


@pytest.mark.parametrize("count", [1, 20], ids=["few nodes", "more than are compared"])
@pytest.mark.parametrize("policy", [SchedulerPolicy(), BINPACK, SPREAD], ids=str)
def test_nodes_where_the_first_alternative_fits_come_first(policy: Policy, count: int) -> None:
    """As kube-scheduler's score has it, which does not count for a pod whose node is named. The
    other nodes are fuller, or emptier."""
    of_slices = [f"s{n}" for n in range(count)]
    of_sizes = [f"d{n}" for n in range(count)]
    slices = [*nodes_of("shared", of_slices), *nodes_of("drs", of_sizes)]
    held = [
        allocated(f"held-{name}", name, *names("drs", 0), consumed={"size": "1"})
        for name in of_sizes
    ]
    for claims in ([], held):
        cluster = Cluster(*claims, slices=slices, nodes=[*of_slices, *of_sizes])

        def node_of(*modes: str, within: Cluster = cluster) -> str:
            asked = alternatives(*modes)
            return chosen(within.place(pod("p", "c"), asked, policy=policy))[0]

        assert (node_of("shared", "drs"), node_of("drs", "shared")) == ("s", "d")
    full = [
        allocated(f"full-{name}", name, *names("shared", 0), consumed={"slices": "5"})
        for name in of_slices
    ]
    cluster = Cluster(*full, slices=slices, nodes=[*of_slices, *of_sizes])
    assert node_of("shared", "drs", within=cluster) == "d"


def test_the_claims_as_they_are_allocated() -> None:
    used = C | {"status": {"conditions": []}}
    cluster = Cluster()
    placed = cluster.place(pod("p", "c"), used)
    assert isinstance(placed, Placed)
    [written] = placed.claims(cluster.cache.state().classes, "2026-01-02T00:00:00Z")
    assert [each.device for each in results(written)] == names("whole", 0)
    assert written["status"]["conditions"] == []
    assert written["status"]["allocation"]["nodeSelector"] == on("a")
    assert "allocation" not in used["status"]


def test_which_claims_are_wanted() -> None:
    ours = allocated("ours", "a", *names("whole", 0))
    placer = Cluster().placer()
    given = {"c": C, "ours": ours, "theirs": theirs("a"), "free": claim("free", [request("x")])}
    asked = placer.read(pod("p", *given), given)
    assert [each.ref.name for each in asked.wanted] == ["c", "free"]
    assert list(asked.ours) == ["c", "ours", "free"]
    assert asked.allocated == [ours, given["theirs"]]
    assert placer.read(pod("p", "ours"), {"ours": ours}).wanted == []


DERIVED = claim("c", [request(derivedAttributes=[{"name": "x", "expression": "y"}])])
TWICE = pod("p", "c")
TWICE["spec"]["resourceClaims"].append({"name": "again", "resourceClaimName": "c"})
NAMED_TWICE = (
    "pod default/p names claim default/c 2 times in spec.resourceClaims ('c', 'again'), and "
    "kube-scheduler cannot reserve a claim twice for one pod; create the pod again with 'c' alone, "
    "and let all containers use that"
)


@pytest.mark.parametrize(
    ("user", "claims", "words"),
    [
        pytest.param(pod("p", "c"), {"c": DERIVED}, "field derivedAttributes", id="a field"),
        pytest.param(
            pod("p", "c", schedulerName="batch"),
            {"c": C},
            "has schedulerName batch",
            id="scheduler",
        ),
        pytest.param(TWICE, {"c": C, "again": C}, NAMED_TWICE, id="twice"),
    ],
)
def test_what_is_refused_whatever_is_free(
    user: Object, claims: Mapping[str, Object], words: str
) -> None:
    with pytest.raises(Refused, match=re.escape(words)):
        Cluster().placer(schedulers={"default-scheduler"}).read(user, claims)


BY_MEMORY = claim(
    "c", [request(cls=CLASS_SHARED)], config=configured(memory="7Gi", isolation="best-effort")
)


def test_what_kube_scheduler_does_not_read_is_refused() -> None:
    """A claim that was made before the webhook wrote such amounts."""
    cluster, user = Cluster(slices=SHARED), pod("p", "c")
    words = (
        "claim default/c, request gcu: its GcuConfig asks for memory 7168Mi and isolation "
        "best-effort, and kube-scheduler reads capacity.requests alone; delete the claim"
    )
    with pytest.raises(Refused, match=words):
        cluster.placer(SchedulerPolicy()).read(user, {"c": BY_MEMORY})
    assert chosen(cluster.place(user, BY_MEMORY)) == "a"


def test_a_field_that_is_ignored() -> None:
    placer = Cluster().placer(ignored_fields=frozenset({"derivedAttributes"}))
    assert chosen(placer.place(placer.read(pod("p", "c"), {"c": DERIVED}))) == "a"


# Of a server that drops shares, so that a request has one amount.
TWO_SIZES = pool("a", [stripped(device("drs", bus)) for bus in (0, 1)])
TWO_SIZES[0]["spec"]["devices"][1]["attributes"]["profiles"] = {"string": "2g.12gb,6g.40gb"}
TWO_OF_DRS = claim("c", [request(cls=CLASS_DRS, count=2)])
ADMIN = claim("c", [request(cls=ANY, adminAccess=True)])


@pytest.mark.parametrize(
    ("slices", "asked", "words", "depends"),
    [
        pytest.param(
            SLICES, claim("c", [request(count=3)]), "at most 2 on one node", False, id="few"
        ),
        pytest.param(SHARED, ADMIN, "of node a is a shared device", True, id="of a forbidden kind"),
        pytest.param(TWO_SIZES, TWO_OF_DRS, "would get size 1 of one card", True, id="two amounts"),
    ],
)
def test_why_it_is_not_placed(
    slices: Sequence[Object], asked: Object, words: str, *, depends: bool
) -> None:
    cluster = Cluster(slices=slices)
    outcome = cluster.place(pod("p", "c", containers=[]), asked)
    assert isinstance(outcome, Unplaced)
    assert words in outcome.explain()
    assert (outcome.depends_on_devices, outcome.was_stopped) == (depends, False)
    assert outcome.nodes.feasible == cluster.numbers.set_of("ab")


def test_devices_that_are_refused_are_not_looked_for_on_the_last_nodes() -> None:
    cards = [device("shared", bus) for bus in (0, 1)]
    cluster = Cluster(slices=[*pool("a", cards), *pool("b", [device("whole", 0)])])
    assert chosen(cluster.place(pod("p", "c"), ADMIN)) == "b"
    outcome = cluster.place(pod("p", "c"), ADMIN, last=[cluster.numbers.set_of("b")])
    assert isinstance(outcome, Unplaced)
    assert outcome.depends_on_devices


def test_a_search_that_was_stopped() -> None:
    state = Cluster().cache.state()
    stopped = FitError(state, [], 0, "the search was stopped on 1 node")
    assert Unplaced(FeasibleNodes(1, 0, ""), stopped).was_stopped


def test_the_nodes_that_serve_the_claims_and_the_reasons_of_the_others() -> None:
    cluster = Cluster(allocated("held", "a", *names("whole", 0)))
    placer = cluster.placer()
    asked = placer.read(pod("p", "c"), {"c": C})
    assert placer.serving(asked) == cluster.numbers.bit("b")
    assert placer.rank(asked) == ["b"]
    reasons = placer.reasons(asked, cluster.numbers.bit("a"))
    assert reasons == {"a": "1 card: 1 held; 1 requested"}
    cluster.cache.state().inventory.withhold(f"{DRIVER}/b", "one of them is lost")
    reasons = placer.reasons(asked, placer.serving(asked) | cluster.numbers.set_of("abc"))
    assert reasons == {
        "a": "1 card: 1 held; 1 requested",
        "b": "one of them is lost",
        "c": f"none of the 1 nodes that fit the pod publishes a device of {DRIVER}",
    }
    cluster.cache.state().inventory.withhold(f"{DRIVER}/b", "")
    elsewhere = pod("p", "c", nodeSelector={"zone": "x"})
    assert (placer.serving(replace(asked, pod=elsewhere)), placer.rank(asked)) == (0, ["b"])
