"""What helm does before and after it deletes: the Jobs, their accounts, and the Lease."""

from __future__ import annotations

import pytest

from controller.settings import ControllerSettings
from dra_driver.config.loader import load, variable
from dra_driver.model.claim import Object
from dra_driver.uninstall.settings import CheckSettings
from tests.chart.helm import NAMESPACE, Helm, Values, environment

CHECK, CLEANUP = "-uninstall", "-cleanup"
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


JOBS: dict[str, list[Object]] = {
    "pre-delete": [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["list"]}
    ],
    "post-delete": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ],
}


@pytest.mark.parametrize(("when", "rules"), JOBS.items(), ids=JOBS)
def test_a_job_has_an_account_of_its_own_while_it_runs(
    helm: Helm, when: str, rules: list[Object]
) -> None:
    made = {each["kind"]: each for each in hooks(helm, when) if each["kind"] != "Lease"}
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
    assert made["ClusterRole"]["rules"] == rules


def test_the_cleanup_is_told_nothing_and_tried_again(helm: Helm) -> None:
    """Everything else is deleted by then."""
    job = helm.render().one("Job", CLEANUP)["spec"]
    [container] = job["template"]["spec"]["containers"]
    assert container["command"] == ["gcu-dra-uninstall-cleanup"]
    assert "env" not in container
    assert job["backoffLimit"] > 0


def test_where_pods_get_gcus_by_limits_it_looks_at_nodes_too(helm: Helm) -> None:
    rendered = helm.render({}, "--kube-version=1.30.14")
    assert rendered.one("ClusterRole", "uninstall-check")["rules"][1:] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
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


@pytest.mark.parametrize("name", [CHECK, CLEANUP])
def test_a_job_runs_where_the_controller_can_and_with_no_more_rights(helm: Helm, name: str) -> None:
    rendered = helm.render({"controller": WHERE, "imagePullSecrets": [{"name": "s"}]})
    job, controller = rendered.one("Job", name)["spec"]["template"]["spec"], rendered.controller
    for key in (*WHERE, "securityContext", "imagePullSecrets"):
        assert job[key] == controller[key]
    of_job, of_controller = job["containers"][0], controller["containers"][0]
    for key in ("image", "imagePullPolicy", "securityContext"):
        assert of_job[key] == of_controller[key]


def test_the_controllers_lease_goes_last(helm: Helm) -> None:
    [lease] = [each for each in hooks(helm, "post-delete") if each["kind"] == "Lease"]
    assert lease["kind"] == "Lease"
    assert lease["metadata"]["name"] == ControllerSettings().lease_name
    assert _annotations(lease)[POLICY] == "before-hook-creation,hook-succeeded"
