"""What `kubectl gcu plan` says about manifests."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import RESOURCE_DRS, RESOURCE_SHARED, RESOURCE_WHOLE
from kubectl_gcu import main
from kubectl_gcu.explain import objects_to_decide
from kubectl_gcu.main import FAILED, WAITS
from kubectl_gcu.plan import Planner
from tests.unit.controller.allocator.build import claim, request
from tests.unit.kubectl_gcu.test_explain import Server, cluster

TWO = request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})


def template(name: str, wanted: Object) -> Object:
    spec = {"devices": {"requests": [wanted]}}
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"spec": spec},
    }


def spec(**names: str) -> Object:
    """A pod with a claim `gcu`: of a template, or of that name."""
    return {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gcu", **names}]}


def limited(**limits: str) -> Object:
    return {"containers": [{"name": "main", "resources": {"limits": limits}}]}


def workload(kind: str, name: str, of: Object, **more: Any) -> Object:
    return {"kind": kind, "metadata": {"name": name}, "spec": {"template": {"spec": of}, **more}}


def plan(*manifests: Object, server: Any = None) -> tuple[list[str], Planner]:
    """On two nodes: the card of a is held as a whole, that of b has four free slices."""
    api = server or cluster()
    objects, _ = objects_to_decide(api)
    planner = Planner(api, objects, "default")
    return [str(each) for each in planner.plan(manifests)], planner


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


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({RESOURCE_SHARED: "4"}, "node b: shared-0000-02-00-0 (slices 4)"),
        ({RESOURCE_WHOLE: "1"}, "does not fit: 2 cards: 1 held, 1 in shared mode"),
        ({RESOURCE_DRS: "3"}, "does not fit: 4 devices, none selected by DeviceClass drs-gcu"),
        ({"cpu": "1"}, "does not fit: it asks for no GCU"),
    ],
    ids=["slices", "a card", "an instance", "none"],
)
def test_the_vendors_limits(limits: dict[str, str], words: str) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": limited(**limits)}
    [found], _ = plan(pod)
    assert found.startswith(f"pod default/p: {words}")


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("text", "a document that is no Kubernetes object"),
        (workload("DaemonSet", "d", limited()), "how many pods DaemonSet default/d makes"),
    ],
    ids=["no object", "a kind without a number"],
)
def test_what_cannot_be_planned_is_refused(manifest: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        plan(manifest)


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(
        f"kind: Pod\nmetadata: {{name: p}}\nspec: {json.dumps(limited(**{RESOURCE_SHARED: '2'}))}\n"
        "---\n"
    )

    def run(server: Any, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(main, "connect", lambda *_, **__: server)
        out, errors = io.StringIO(), io.StringIO()
        given = ["plan", "--namespace=default", *arguments]
        return main.run(given, {}, out, errors), out.getvalue(), errors.getvalue()

    code, out, _ = run(cluster(), f"--file={manifest}")
    assert (code, out.splitlines()) == (
        0,
        [
            "pod default/p: node b: shared-0000-02-00-0 (slices 2)",
            "then: 2 cards: 0 free, 1 whole, 1 shared (4 of 6 slices)",
        ],
    )
    manifest.write_text(manifest.read_text().replace('"2"', '"5"'))
    code, out, _ = run(cluster(), f"--file={manifest}", "--output=json")
    assert (code, json.loads(out)["pods"][0]["node"]) == (WAITS, "")
    code, _, errors = run(cluster(forbidden=[PODS]), f"--file={manifest}")
    assert (code, errors) == (
        FAILED,
        "error: you may not list pods in the whole cluster, and so nothing can be planned\n",
    )
    code, _, errors = run(cluster(), f"--file={tmp_path}/nowhere")
    assert (code, errors.startswith(f"error: {tmp_path}/nowhere cannot be read")) == (FAILED, True)
