"""The hooks of an uninstall: the check with its account before it, the Lease after it."""

from __future__ import annotations

import pytest

from controller.settings import ControllerSettings
from dra_driver.config.loader import load, variable
from dra_driver.model.claims.claim import Object
from dra_driver.uninstall.check import CheckSettings
from tests.chart.helm import NAMESPACE, Helm, Values, environment

CHECK = "-uninstall"
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


def test_the_check_comes_first_and_its_output_reaches_the_user(helm: Helm) -> None:
    job = helm.render().one("Job", CHECK)
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
    [container] = rendered.one("Job", CHECK)["spec"]["template"]["spec"]["containers"]
    found = load(CheckSettings, [], environment(container), prog="check", description="")
    assert found.by_limits


def test_the_check_is_told_all_that_it_can_be_told(helm: Helm) -> None:
    [container] = helm.render(release="r").one("Job", CHECK)["spec"]["template"]["spec"][
        "containers"
    ]
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
    job, controller = rendered.one("Job", CHECK)["spec"]["template"]["spec"], rendered.controller
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


SLICES = "gcu-dra-driver-uninstall-slices"


@pytest.mark.parametrize(
    ("values", "version", "has_it"),
    [
        ({}, "1.34.4", True),
        ({}, "1.36.3", False),
        ({"sliceForm": "hidden"}, "1.36.3", True),
        ({}, "1.30.14", False),
    ],
    ids=["hidden", "visible", "chosen", "no DRA"],
)
def test_hidden_slices_are_deleted_in_the_end(
    helm: Helm, values: Values, version: str, has_it: bool
) -> None:
    rendered = helm.render(values, f"--kube-version={version}")
    jobs = [each for each in rendered.of("Job") if each["metadata"]["name"] == SLICES]
    assert len(jobs) == has_it
    controller = rendered.one("ClusterRole", ":controller")["rules"]
    deleting = [each for each in controller if each["resources"] == ["resourceslices"]]
    assert [each["verbs"] for each in deleting] == ([["delete"]] if has_it else [])
    policies = [each["metadata"]["name"] for each in rendered.of("ValidatingAdmissionPolicy")]
    assert ("controller-slices.gcu.enflame.com" in policies) is has_it
    if has_it:
        [job] = jobs
        assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-delete"
        [container] = job["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["gcu-dra-uninstall-slices"]
        rights = rendered.one("ClusterRole", "uninstall-slices")["rules"]
        assert rights == [
            {
                "apiGroups": ["resource.k8s.io"],
                "resources": ["resourceslices"],
                "verbs": ["list", "delete"],
            }
        ]
