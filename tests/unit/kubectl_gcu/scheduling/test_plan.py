"""What `kubectl gcu plan` says about manifests."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.resources import (
    NODES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import (
    CLASS_LIMIT_PREFIX,
    CLASS_SHARED,
    RESOURCE_DRS,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from kubectl_gcu.cluster.manifest import load_documents, parse_manifest
from kubectl_gcu.cluster.to_decide import objects_to_decide
from kubectl_gcu.scheduling.plan import Planner
from tests.unit.controller.allocator.build import allocated, claim, device, pool, request
from tests.unit.controller.world import node
from tests.unit.kubectl_gcu.manifests import TWO, limited, single, spec, template, workload
from tests.unit.kubectl_gcu.server import Server, cluster

FIVE = {"slices": "5"}
B = node("b")
B["status"]["allocatable"]["cpu"] = "4"
FOUR_CPUS = (NODES, B)


def plan(*manifests: Object, server: Any = None) -> tuple[list[str], Planner]:
    """On two nodes: the card of a is held as a whole, that of b has four free slices."""
    api = server or cluster()
    objects, _ = objects_to_decide(api)
    planner = Planner(
        objects,
        parse_manifest(manifests, "default"),
        lambda namespace, name: api.get(RESOURCE_CLAIM_TEMPLATES, name, namespace=namespace),
    )
    return [str(each) for each in planner.plan()], planner


def test_replicas_get_what_is_there_one_after_the_other() -> None:
    of = spec(resourceClaimTemplateName="two")
    found, planner = plan(template("two", TWO), workload("Deployment", "train", of, replicas=3))
    assert found[:2] == [
        "pod default/train-0: node b: shared-0000-02-00-0 (slices 2)",
        "pod default/train-1: node b: shared-0000-02-00-0 (slices 2)",
    ]
    assert found[2].startswith("pod default/train-2: does not fit: 2 cards: 1 held as a whole, 1 w")
    [_, b] = planner.left()
    assert (b.cards[0].used, b.cards[0].total) == (6, 6)


def generated(kind: str, of: Object) -> Object:
    found = workload(kind, "", of)
    return found | {"metadata": {"generateName": "train-"}}


def test_each_pod_counts_also_where_names_are_generated_or_those_of_two_workloads() -> None:
    """The card has room for two."""
    of = spec(resourceClaimTemplateName="two")
    jobs = [generated("Job", of) for _ in range(3)]
    found, planner = plan(template("two", TWO), *jobs)
    assert [each.partition(": ")[0] for each in found] == [
        f"pod default/train-{number}-0" for number in (2, 3, 4)
    ]
    assert ["does not fit" in each for each in found] == [False, False, True]
    assert planner.left()[1].cards[0].used == 6
    kinds = [workload(kind, "web", of) for kind in ("Deployment", "StatefulSet", "Job")]
    found, planner = plan(template("two", TWO), *kinds)
    assert [each.partition(": ")[0] for each in found] == [
        "pod default/web-0",
        "pod default/web-0-2",
        "pod default/web-0-3",
    ]
    assert ["does not fit" in each for each in found] == [False, False, True]
    assert planner.left()[1].cards[0].used == 6


@pytest.mark.parametrize(
    ("more", "pods"),
    [
        ({"parallelism": 2}, 2),
        ({"parallelism": 2, "completions": 1}, 1),
        ({"parallelism": 1, "completions": 2}, 1),
        ({"completions": 2}, 1),
    ],
    ids=str,
)
def test_the_pods_of_a_job_that_run_at_the_same_time(more: dict[str, int], pods: int) -> None:
    job = workload("Job", "train", spec(resourceClaimTemplateName="two"), **more)
    found, _ = plan(template("two", TWO), job)
    assert len(found) == pods


def test_pods_that_name_one_claim_share_it() -> None:
    found, planner = plan(
        {"kind": "ResourceClaim", **claim("c", [TWO])},
        *(
            {"kind": "Pod", "metadata": {"name": name}, "spec": spec(resourceClaimName="c")}
            for name in ("one", "two")
        ),
    )
    assert [each.partition(": ")[2] for each in found] == [
        "node b: shared-0000-02-00-0 (slices 2)"
    ] * 2
    assert planner.left()[1].cards[0].used == 4


def test_a_claim_that_exists_stays_as_it_is() -> None:
    """The manifest was applied before."""
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec(resourceClaimName="other")}
    found, planner = plan({"kind": "ResourceClaim", **claim("other", [TWO])}, pod)
    assert found == ["pod default/p: node b: shared-0000-02-00-0 (slices 2)"]
    assert planner.left()[1].cards[0].used == 2
    unknown = pod | {"spec": spec(resourceClaimName="nobody")}
    found, _ = plan(unknown)
    assert found == ["pod default/p: does not fit: there is no ResourceClaim default/nobody"]


def test_claims_and_templates_of_the_cluster() -> None:
    server: Server = cluster(
        (RESOURCE_CLAIM_TEMPLATES, template("two", TWO)), (RESOURCE_CLAIMS, claim("c", [TWO]))
    )
    found, _ = plan(
        workload("Job", "batch", spec(resourceClaimTemplateName="two"), parallelism=1),
        workload("StatefulSet", "set", spec(resourceClaimName="c")),
        workload("ReplicaSet", "lost", spec(resourceClaimTemplateName="nowhere")),
        server=server,
    )
    assert found == [
        "pod default/batch-0: node b: shared-0000-02-00-0 (slices 2)",
        "pod default/set-0: node b: shared-0000-02-00-0 (slices 2)",
        "pod default/lost-0: does not fit: no ResourceClaimTemplate nowhere",
    ]


def test_a_pod_with_a_claim_of_another_driver_alone_asks_for_no_gcu() -> None:
    wanted = request(cls="nic.example.com")
    found, _ = plan(template("nic", wanted), single(spec(resourceClaimTemplateName="nic")))
    assert found == ["pod default/p: asks for no GCU"]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({RESOURCE_SHARED: "4"}, "node b: shared-0000-02-00-0 (slices 4)"),
        ({RESOURCE_WHOLE: "1"}, "does not fit: 2 cards: 1 held, 1 in shared mode"),
        ({RESOURCE_DRS: "3"}, "does not fit: 4 devices, none selected by DeviceClass drs-gcu"),
        ({f"{CLASS_LIMIT_PREFIX}{CLASS_SHARED}": "1"}, "node b: shared-0000-02-00-0"),
        ({RESOURCE_SHARED: "two"}, "does not fit: container main: the limit enflame.com/shared"),
        (
            {RESOURCE_SHARED: "1", RESOURCE_DRS: "3"},
            "does not fit: the pod asks for enflame.com/shared-gcu and enflame.com/drs-gcu: a pod ",
        ),
        ({"cpu": "1"}, "asks for no GCU"),
    ],
    ids=["slices", "a card", "an instance", "a device of a class", "no number", "two", "none"],
)
def test_limits(limits: dict[str, str], words: str) -> None:
    [found], _ = plan(single(limited(**limits)))
    assert found.startswith(f"pod default/p: {words}")


@pytest.mark.parametrize("amount", ["2", 2], ids=["text", "number"])
def test_requests_beside_limits(amount: str | int) -> None:
    """API servers set the request of an extended resource to its limit, and users write both. No
    node has such a resource where limits become claims."""
    of = limited()
    both = {RESOURCE_SHARED: amount, "cpu": amount}
    of["containers"][0]["resources"] = {"limits": both, "requests": both}
    assert plan(single(of), server=cluster(FOUR_CPUS))[0] == [
        "pod default/p: node b: shared-0000-02-00-0 (slices 2)"
    ]


def test_an_init_container_and_the_vendors_label() -> None:
    of = limited(**{RESOURCE_SHARED: "2"}) | {"nodeSelector": {"enflame.com/gcushare": "true"}}
    of["initContainers"] = of.pop("containers")
    of["containers"] = [{"name": "main"}]
    assert plan(single(of))[0] == ["pod default/p: node b: shared-0000-02-00-0 (slices 2)"]


def test_the_slices_of_a_pods_containers_are_on_one_card() -> None:
    """Node b has four free slices on one card; node c one on each of two."""
    of = limited(**{RESOURCE_SHARED: "1"})
    of["containers"].append(of["containers"][0] | {"name": "second"})
    more = [
        (RESOURCE_SLICES, each) for each in pool("c", [device("shared", 3), device("shared", 4)])
    ]
    held = [
        (RESOURCE_CLAIMS, allocated(f"five-{n}", "c", f"shared-0000-0{n}-00-0", consumed=FIVE))
        for n in (3, 4)
    ]
    full = (
        RESOURCE_CLAIMS,
        allocated("four", "b", "shared-0000-02-00-0", consumed={"slices": "4"}),
    )
    server = cluster(*more, *held, full, (NODES, node("c")))
    [found], _ = plan(single(of), server=server)
    assert found.startswith("pod default/p: does not fit: ")


def test_amounts_may_be_numbers_wherever_an_api_server_takes_them() -> None:
    """Node b has 4 cpus."""
    wanted = deepcopy(TWO)
    wanted["exactly"]["capacity"]["requests"] = {"slices": 2}
    init = {"name": "init", "resources": {"requests": {"cpu": 1}, "limits": None}}
    of = spec(resourceClaimTemplateName="two") | {
        "initContainers": [init],
        "overhead": {"cpu": 0.5},
        "resources": {"requests": {"cpu": 2}, "limits": {"memory": 1e9}},
    }
    server = cluster(FOUR_CPUS)
    of["containers"][0]["resources"] = {"requests": {"cpu": 1}}
    found, _ = plan(template("two", wanted), single(of), server=server)
    assert found == ["pod default/p: node b: shared-0000-02-00-0 (slices 2)"]
    of["overhead"]["cpu"] = 3
    [found_now], _ = plan(template("two", wanted), single(of), server=server)
    assert "without free cpu" in found_now


def test_a_list() -> None:
    items = [template("two", TWO), single(spec(resourceClaimTemplateName="two"))]
    found, _ = plan({"kind": "List", "items": items})
    assert found == ["pod default/p: node b: shared-0000-02-00-0 (slices 2)"]


def test_replicas_that_are_not_given_are_one() -> None:
    of = workload("Deployment", "d", limited(**{RESOURCE_SHARED: "1"}), replicas=None)
    of["spec"]["template"]["metadata"] = {"labels": {"app": "d"}}
    parsed = parse_manifest([of], "default")
    [made] = parsed.pods
    assert made["metadata"]["labels"] == {"app": "d"}
    assert made["metadata"]["name"] == "d-0"


@pytest.mark.parametrize("text", ["at: 2026-02-30\n", "a: &a [*a]\n"], ids=["a date", "a circle"])
def test_yaml_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(f"kind: Pod\n{text}")
    with pytest.raises(InvalidValue, match=r"pods\.yaml cannot be read: "):
        parse_manifest(load_documents(str(manifest)), "default")


def test_an_empty_namespace_or_name_is_none() -> None:
    of = spec(resourceClaimTemplateName="two")
    empty = {"kind": "Pod", "metadata": {"name": None, "namespace": ""}, "spec": of}
    assert plan(template("two", TWO), empty)[0] == [
        "pod default/unnamed-2: node b: shared-0000-02-00-0 (slices 2)"
    ]


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("text", "a document that is no Kubernetes object"),
        (
            [
                single(spec(resourceClaimTemplateName="two")),
                template("two", TWO) | {"apiVersion": "resource.k8s.io/v1beta1"},
            ],
            "ResourceClaimTemplate two is of resource.k8s.io/v1beta1",
        ),
        (
            {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceClaim", **claim("c")},
            "ResourceClaim c is of resource.k8s.io/v1alpha3",
        ),
        (workload("DaemonSet", "d", limited()), "how many pods DaemonSet default/d makes"),
        (
            {
                "kind": "CronJob",
                "spec": {"jobTemplate": {"spec": {"template": {"spec": limited()}}}},
            },
            "how many pods CronJob default/unnamed-1 makes",
        ),
        ({"kind": "ConfigMap", "metadata": {"name": "c"}}, "no pod to plan"),
        (None, "no pod to plan"),
        ({"kind": "Pod", "metadata": "p"}, "Pod without a name is malformed"),
        ({"kind": "Pod", "metadata": {"name": "p"}}, "Pod p has no 'containers'"),
        ({"kind": "Pod", "metadata": {"name": "p"}, "spec": []}, "Pod p has no 'containers'"),
        (
            {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {}},
            "Deployment d has no 'template'",
        ),
        (workload("Job", "j", limited(), parallelism="x"), "Job j is malformed: invalid literal"),
        (single({"containers": [None]}), "Pod p is malformed"),
        (single({"containers": {}}), "Pod p is malformed: containers are no list"),
        (single({"containers": [], "resourceClaims": [{}]}), "Pod p has no 'name'"),
    ],
    ids=[
        "no object",
        "an old template",
        "an old claim",
        "a kind without a number",
        "a kind that nests pods",
        "no pod",
        "nothing",
        "metadata",
        "no containers",
        "a list as specification",
        "no template",
        "a number",
        "a container",
        "containers",
        "a claim without a name",
    ],
)
def test_what_cannot_be_planned_is_refused(manifest: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        plan(*manifest if isinstance(manifest, list) else [manifest])
