"""What helm does before and after it deletes: the Jobs, the sweep, their accounts, the Lease."""

from __future__ import annotations

import pytest

from controller.settings import ControllerSettings
from dra_driver.config.loader import load, variable
from dra_driver.model.claim import Object
from dra_driver.uninstall.settings import CheckSettings, CleanupSettings, SweepSettings
from tests.chart.helm import NAMESPACE, Helm, Values, environment

CHECK, CLEANUP, SWEEP = "-uninstall", "-cleanup", "-sweep"
HOOK, POLICY = "helm.sh/hook", "helm.sh/hook-delete-policy"
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
WHERE: Values = {
    "nodeSelector": {"a": "b"},
    "affinity": {"nodeAffinity": {"x": 1}},
    "tolerations": [{"key": "c", "operator": "Exists"}],
}


def hooks(helm: Helm, when: str) -> list[Object]:
    return [each for each in helm.render() if _annotations(each).get(HOOK) == when]


def _component(each: Object) -> str:
    return str(each["metadata"]["labels"]["app.kubernetes.io/component"])


def _pod(workload: Object) -> Object:
    pod: Object = workload["spec"]["template"]["spec"]
    return pod


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
# Of the cleanup, in the release's namespace.
IN_NAMESPACE: list[Object] = [
    {
        "apiGroups": ["apps"],
        "resources": ["daemonsets"],
        "resourceNames": ["gcu-dra-driver-sweep"],
        "verbs": ["get"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
]


@pytest.mark.parametrize(("when", "rules"), JOBS.items(), ids=JOBS)
def test_a_job_has_an_account_of_its_own_while_it_runs(
    helm: Helm, when: str, rules: list[Object]
) -> None:
    component = "uninstall-check" if when == "pre-delete" else "uninstall-cleanup"
    made = {each["kind"]: each for each in hooks(helm, when) if _component(each) == component}
    role, binding = made.pop("Role", None), made.pop("RoleBinding", None)
    policies = [made.pop(kind) for kind in POLICIES if kind in made]
    assert len(policies) == (0 if when == "pre-delete" else 2)
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
    if when == "pre-delete":
        assert role is binding is None
        return
    assert role is not None
    assert binding is not None
    assert role["rules"] == IN_NAMESPACE
    assert binding["subjects"] == made["ClusterRoleBinding"]["subjects"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == NAMESPACE
    [condition] = policies[0]["spec"]["matchConditions"]
    assert f"system:serviceaccount:{NAMESPACE}:{account}" in condition["expression"]
    for each in (role, binding, *policies):
        assert int(_annotations(each)["helm.sh/hook-weight"]) < 0
        assert _annotations(each)[POLICY] == "before-hook-creation,hook-succeeded"


def test_the_cleanup_is_tried_again_and_its_output_reaches_the_user(helm: Helm) -> None:
    """Everything else is deleted by then: what it does not tell nobody does."""
    job = helm.render().one("Job", CLEANUP)
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["gcu-dra-uninstall-cleanup"]
    assert job["spec"]["backoffLimit"] > 0
    told = _annotations(job)["helm.sh/hook-output-log-policy"]
    assert set(told.split(",")) == {"hook-succeeded", "hook-failed"}
    found = load(CleanupSettings, [], environment(container), prog="cleanup", description="")
    sweep = helm.render().one("DaemonSet", SWEEP)["metadata"]
    assert (found.sweep, found.release_namespace) == (sweep["name"], sweep["namespace"])
    # A limit of its own, as helm and the Job say less when theirs is over.
    assert found.patience < job["spec"]["activeDeadlineSeconds"] - 30


def test_nodes_are_swept_before_the_cleanup_asks(helm: Helm) -> None:
    """Helm waits for no DaemonSet: it makes it, with its account, and goes on."""
    swept = [each for each in hooks(helm, "post-delete") if _component(each) == "uninstall-sweep"]
    assert {each["kind"] for each in swept} == {"ServiceAccount", "DaemonSet"}
    by_kind = {each["kind"]: _annotations(each) for each in swept}
    weights = {kind: int(each["helm.sh/hook-weight"]) for kind, each in by_kind.items()}
    assert weights["ServiceAccount"] < weights["DaemonSet"] < 0
    assert {each[POLICY] for each in by_kind.values()} == {"before-hook-creation,hook-succeeded"}
    assert "helm.sh/hook-weight" not in _annotations(helm.render().one("Job", CLEANUP))


ON_NODES: Values = {
    "agent": {**WHERE, "priorityClassName": "high"},
    "imagePullSecrets": [{"name": "s"}],
    "kubeletRootDir": "/data/kubelet",
    "cdiDir": "/etc/cdi",
}


@pytest.mark.parametrize("values", [{}, ON_NODES, {"simulation": {"enabled": True}}])
def test_nodes_are_swept_where_agents_can_run(helm: Helm, values: Values) -> None:
    rendered = helm.render(values)
    sweep, agent = _pod(rendered.one("DaemonSet", SWEEP)), rendered.agent
    placed = {"nodeSelector", "affinity", "tolerations", "priorityClassName", "imagePullSecrets"}
    for key in (*placed, "securityContext"):
        assert sweep.get(key) == agent.get(key), key
    paths = {each["name"]: each["hostPath"] for each in agent["volumes"] if "hostPath" in each}
    for volume in sweep["volumes"]:
        if volume["name"] in paths:
            assert volume["hostPath"] == paths[volume["name"]]
        else:
            parent = paths["plugin"]["path"].rpartition("/")[0]
            assert volume["hostPath"] == {"path": parent, "type": "Directory"}
    [container] = sweep["initContainers"]
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounted == {each["name"]: each["hostPath"]["path"] for each in sweep["volumes"]}
    found = load(SweepSettings, [], environment(container), prog="sweep", description="")
    assert f"{found.kubelet_root}/plugins" == mounted["plugins"]
    assert str(found.cdi_dir) == mounted["cdi"]
    [of_agent] = agent["containers"]
    for each in (container, *sweep["containers"]):
        for key in ("image", "imagePullPolicy", "resources"):
            assert each[key] == of_agent[key]


def test_who_sweeps_asks_nobody_and_sees_only_folders_of_ours(helm: Helm) -> None:
    """But for the plugins' folder, whose mounts come and go while it runs."""
    rendered = helm.render()
    sweep = _pod(rendered.one("DaemonSet", SWEEP))
    assert sweep["automountServiceAccountToken"] is False
    account = sweep["serviceAccountName"]
    bindings = rendered.of("ClusterRoleBinding") + rendered.of("RoleBinding")
    assert account not in {subject["name"] for each in bindings for subject in each["subjects"]}
    [container], [waiting] = sweep["initContainers"], sweep["containers"]
    propagated = {
        each["name"]: each["mountPropagation"]
        for each in container["volumeMounts"]
        if "mountPropagation" in each
    }
    assert propagated == {"plugins": "HostToContainer"}
    assert "volumeMounts" not in waiting
    for each in (container, waiting):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_an_agent_ends_before_the_sweep_loses_patience(helm: Helm) -> None:
    rendered = helm.render()
    [container] = _pod(rendered.one("DaemonSet", SWEEP))["initContainers"]
    found = load(SweepSettings, [], environment(container), prog="sweep", description="")
    assert rendered.agent["terminationGracePeriodSeconds"] + 30 < found.patience
    assert found.patience + 30 < CleanupSettings(release_namespace="n", sweep="s").patience


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
