"""What `kubectl gcu doctor` holds against a cluster is what helm installs there."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from kubectl_gcu.checks import policies, rights
from kubectl_gcu.checks.installation import OF_CHART, WEBHOOKS
from kubectl_gcu.inventory.views import ServedBy
from tests.chart.helm import Helm, Values

OLD = "--kube-version=1.30.14"
LEAST: Values = {"legacyResources": {"enabled": False}}
WAYS = pytest.mark.parametrize(
    ("way", "flags", "more"),
    [
        (ServedBy.CLAIMS, (), set()),
        (ServedBy.CLAIMS, ("--kube-version=1.35.4",), {"controller-slices.gcu.enflame.com"}),
        (ServedBy.LIMITS, (OLD,), set()),
    ],
    ids=["DRA", "hidden slices", "no DRA"],
)


def granted(role: Object) -> set[rights.Right]:
    return {
        rights.Right(group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@WAYS
@pytest.mark.parametrize("component", ["agent", "controller"])
def test_rights(
    helm: Helm, way: ServedBy, flags: tuple[str, ...], more: set[str], component: str
) -> None:
    role = helm.render(LEAST, *flags).one("ClusterRole", f":{component}")
    needed = rights.NEEDED[component, way]
    assert needed <= granted(role)
    # Without DRA the agent may also do what it will need after an upgrade of the cluster, and
    # the controller may delete hidden slices.
    others = {right.group for right in granted(role) - needed}
    assert others <= ({"resource.k8s.io"} if more or way is ServedBy.LIMITS else set())


def test_what_labels_need(helm: Helm) -> None:
    labels = {"nodeLabels": {"enabled": True}}
    plain, found = helm.render(LEAST), helm.render(LEAST | labels)
    name = ":agent"
    more = granted(found.one("ClusterRole", name)) - granted(plain.one("ClusterRole", name))
    assert more == rights.NODE_LABELS
    kind = "ValidatingAdmissionPolicy"
    names = [{each["metadata"]["name"] for each in way.of(kind)} for way in (plain, found)]
    assert names[1] - names[0] == {f"{each}.gcu.enflame.com" for each in policies.NODE_LABELS}


@pytest.mark.parametrize("nominates", [True, False])
def test_rights_where_kube_scheduler_allocates(helm: Helm, nominates: bool) -> None:
    values = {
        "allocator": "scheduler",
        "schedulerVersion": "1.37.1",
        "nomination": {"enabled": nominates},
    }
    found = granted(helm.render(LEAST | values).one("ClusterRole", ":controller"))
    needed = rights.NEEDED["controller", ServedBy.CLAIMS] - rights.UNUSED_FOR_SCHEDULER
    of_names = {
        rights.Right("", "pods/status", "patch"),
        rights.Right("", "persistentvolumeclaims", "get"),
        rights.Right("", "persistentvolumes", "get"),
    }
    assert found == needed | (of_names if nominates else set())


@WAYS
def test_policies(helm: Helm, way: ServedBy, flags: tuple[str, ...], more: set[str]) -> None:
    found = helm.render(LEAST, *flags)
    needed = {f"{name}.gcu.enflame.com" for name in policies.NEEDED[way]}
    rendered = found.of("ValidatingAdmissionPolicy")
    assert {each["metadata"]["name"] for each in rendered} == needed | more
    bound = found.of("ValidatingAdmissionPolicyBinding")
    assert {each["spec"]["policyName"] for each in bound} == needed | more
    label, value = OF_CHART.split("=")
    assert {each["metadata"]["labels"][label] for each in (*rendered, *bound)} == {value}
    # The installer is who owns this label.
    assert all("helm.sh/chart" in each["metadata"]["labels"] for each in (*rendered, *bound))


@pytest.mark.parametrize(("version", "count"), [("1.30.14", 0), ("1.35.4", 1), ("1.36.3", 0)])
def test_the_webhook(helm: Helm, version: str, count: int) -> None:
    flag = f"--kube-version={version}"
    webhooks = helm.render(LEAST, flag).of(WEBHOOKS.kind)
    label, value = OF_CHART.split("=")
    assert [each["metadata"]["labels"][label] for each in webhooks] == [value] * count
