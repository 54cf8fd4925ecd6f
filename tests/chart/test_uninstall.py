"""The hooks of an uninstall: the check with its account before it, the Lease after it."""

from __future__ import annotations

import pytest

from controller.settings import ControllerSettings
from dra_driver.config.loader import load, variable
from dra_driver.model.claims.claim import Object
from dra_driver.uninstall.check import CheckSettings
from dra_driver.uninstall.cleanup import CleanupSettings
from tests.chart.helm import NAMESPACE, Helm, Rendered, Values, environment

HOOK, POLICY = "helm.sh/hook", "helm.sh/hook-delete-policy"
WHERE: Values = {
    "nodeSelector": {"a": "b"},
    "affinity": {"nodeAffinity": {"x": 1}},
    "tolerations": [{"key": "c", "operator": "Exists"}],
}


def hooks(helm: Helm, when: str) -> list[Object]:
    return [each for each in helm.render() if _annotations(each).get(HOOK) == when]


def _annotations(each: Object) -> dict[str, str]:
    found: dict[str, str] = each["metadata"].get("annotations", {})
    return found


def check(rendered: Rendered) -> Object:
    """The Job before an uninstall; another one may come after it."""
    [job] = [each for each in rendered.of("Job") if _annotations(each)[HOOK] == "pre-delete"]
    return job


def test_the_check_comes_first_and_its_output_reaches_the_user(helm: Helm) -> None:
    job = check(helm.render())
    assert _annotations(job)[HOOK] == "pre-delete"
    assert _annotations(job)["helm.sh/hook-output-log-policy"] == "hook-failed"
    assert job["spec"]["backoffLimit"] == 0


CLAIMS: Object = {
    "apiGroups": ["resource.k8s.io"],
    "resources": ["resourceclaims"],
    "verbs": ["list"],
}


def test_the_check_has_an_account_of_its_own_while_it_runs(helm: Helm) -> None:
    made = {each["kind"]: each for each in hooks(helm, "pre-delete")}
    assert set(made) == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"}
    job = made.pop("Job")
    for each in made.values():
        assert int(_annotations(each)["helm.sh/hook-weight"]) < 0
        assert _annotations(each)[POLICY] == "before-hook-creation,hook-succeeded"
    account = made["ServiceAccount"]["metadata"]["name"]
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == account
    [subject] = made["ClusterRoleBinding"]["subjects"]
    assert (subject["name"], subject["namespace"]) == (account, NAMESPACE)
    assert made["ClusterRoleBinding"]["roleRef"]["name"] == made["ClusterRole"]["metadata"]["name"]
    assert made["ClusterRole"]["rules"] == [CLAIMS]


def test_where_pods_get_gcus_by_limits_it_lists_nodes_and_pods_too(helm: Helm) -> None:
    rendered = helm.render({}, "--kube-version=1.30.14")
    assert rendered.one("ClusterRole", "uninstall-check")["rules"][1:] == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}
    ]
    [container] = check(rendered)["spec"]["template"]["spec"]["containers"]
    found = load(CheckSettings, [], environment(container), prog="check", description="")
    assert found.by_limits


def test_the_check_is_told_all_that_it_can_be_told(helm: Helm) -> None:
    [container] = check(helm.render(release="r"))["spec"]["template"]["spec"]["containers"]
    environ = environment(container)
    left = {"kubeconfig"}  # in a pod there is none
    assert set(environ) == {variable(each) for each in CheckSettings.model_fields} - {
        variable(each) for each in left
    }
    found = load(CheckSettings, [], environ, prog="check", description="")
    assert found == CheckSettings(release="r", release_namespace=NAMESPACE, revision=1)
    assert container["command"] == ["gcu-dra-uninstall-check"]


def test_it_runs_where_the_controller_can_and_with_no_more_rights(helm: Helm) -> None:
    rendered = helm.render({"controller": WHERE, "imagePullSecrets": [{"name": "s"}]})
    job, controller = check(rendered)["spec"]["template"]["spec"], rendered.controller
    for key in (*WHERE, "securityContext", "imagePullSecrets"):
        assert job[key] == controller[key]
    of_job, of_controller = job["containers"][0], controller["containers"][0]
    for key in ("image", "imagePullPolicy", "securityContext"):
        assert of_job[key] == of_controller[key]


def test_the_controllers_lease_goes_last(helm: Helm) -> None:
    [lease] = hooks(helm, "post-delete")
    assert lease["kind"] == "Lease"
    assert lease["metadata"]["name"] == ControllerSettings().lease_name
    assert _annotations(lease)[POLICY] == "before-hook-creation,hook-succeeded"


CLEANUP = "gcu-dra-driver-uninstall-cleanup"
LABELS: Values = {"nodeLabels": {"enabled": True}}
DELETES_SLICES: Object = {
    "apiGroups": ["resource.k8s.io"],
    "resources": ["resourceslices"],
    "verbs": ["list", "delete"],
}
CLEARS_NODES: list[Object] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
]


@pytest.mark.parametrize(
    ("values", "version", "slices", "nodes"),
    [
        ({}, "1.34.4", True, False),
        ({}, "1.36.3", False, False),
        ({"sliceForm": "hidden"}, "1.36.3", True, False),
        (LABELS, "1.34.4", True, True),
        (LABELS, "1.36.3", False, True),
        ({}, "1.30.14", False, True),
    ],
    ids=["hidden", "visible", "chosen", "hidden, labels", "labels", "no DRA"],
)
def test_what_agents_wrote_is_taken_back_in_the_end(
    helm: Helm, values: Values, version: str, slices: bool, nodes: bool
) -> None:
    rendered = helm.render(values, f"--kube-version={version}")
    jobs = [each for each in rendered.of("Job") if each["metadata"]["name"] == CLEANUP]
    assert len(jobs) == (slices or nodes)
    controller = rendered.one("ClusterRole", ":controller")["rules"]
    deleting = [each for each in controller if each["resources"] == ["resourceslices"]]
    assert [each["verbs"] for each in deleting] == ([["delete"]] if slices else [])
    policies = [each["metadata"]["name"] for each in rendered.of("ValidatingAdmissionPolicy")]
    assert ("controller-slices.gcu.enflame.com" in policies) is slices
    if jobs:
        assert jobs[0]["metadata"]["annotations"]["helm.sh/hook"] == "post-delete"
        [container] = jobs[0]["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["gcu-dra-uninstall-cleanup"]
        found = load(CleanupSettings, [], environment(container), prog="p", description="")
        assert (found.hidden_slices, found.nodes) == (slices, nodes)
        rights = rendered.one("ClusterRole", "uninstall-cleanup")["rules"]
        assert rights == [DELETES_SLICES] * slices + CLEARS_NODES * nodes
