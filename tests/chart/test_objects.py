"""The rest of the chart: names, labels, the controller, classes and notes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from dra_driver.model import names
from dra_driver.model.claims.claim import Object
from tests.chart.helm import CHECKOUT, NAMESPACE, Helm, Values

CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "DeviceClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
SIMULATED: Values = {"simulation": {"enabled": True}, "schedulingGate": {"policy": True}}


def test_names_carry_the_release_but_for_cluster_scoped_ones(helm: Helm) -> None:
    for release, start in (("gcu-dra-driver", "gcu-dra-driver"), ("a", "a-gcu-dra-driver")):
        for each in helm.render(SIMULATED, release=release):
            metadata = each["metadata"]
            if each["kind"] in CLUSTER_SCOPED:
                assert names.DRIVER in metadata["name"]
                assert "namespace" not in metadata
            else:
                # The Lease that the controllers of a cluster agree on is named by the program.
                assert metadata["name"].startswith(f"{start}-") or each["kind"] == "Lease"
                assert metadata["namespace"] == NAMESPACE


@pytest.mark.parametrize("version", ["1.36.3", "1.34.4", "1.30.14"])
def test_a_long_release_name_leaves_room(helm: Helm, version: str) -> None:
    """Secrets, accounts and bindings may have longer names."""
    rendered = helm.render({}, f"--kube-version={version}", release="r" * 53)
    kinds = ("DaemonSet", "Deployment", "Job", "Pod", "Service")
    longest = max(len(each["metadata"]["name"]) for kind in kinds for each in rendered.of(kind))
    assert longest <= 63


@pytest.mark.parametrize("release", ["1gcu", "123", "1e3", "true", "a.b", "r" * 51 + ".b"])
def test_whatever_name_helm_takes_for_a_release_is_taken(helm: Helm, release: str) -> None:
    for each in helm.render(SIMULATED, release=release):
        metadata = each["metadata"]
        assert metadata["labels"]["app.kubernetes.io/instance"] == release
        if each["kind"] not in CLUSTER_SCOPED:
            assert re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", metadata["name"])


@pytest.mark.parametrize("version", ["1.36.3", "1.30.14"])
def test_a_namespace_of_digits_is_a_name(helm: Helm, version: str) -> None:
    values = {"extender": {"schedulerImage": "kube-scheduler:v1.30.14"}}
    rendered = helm.render(values, f"--kube-version={version}", "--namespace=123")
    told = {
        each
        for one in rendered
        for each in _namespaces([one, *map(yaml.safe_load, one.get("data", {}).values())])
    }
    assert told <= {"123", "kube-system", ""}
    assert "123" in told


def _namespaces(value: object) -> Iterator[object]:
    match value:
        case dict():
            for key, inner in value.items():
                if key in {"namespace", "resourceNamespace"} and not isinstance(inner, dict):
                    yield inner
                yield from _namespaces(inner)
        case list():
            for inner in value:
                yield from _namespaces(inner)


def test_every_object_says_what_it_belongs_to(helm: Helm) -> None:
    for each in helm.render(SIMULATED):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "gcu-dra-driver"
        assert labels["app.kubernetes.io/instance"] == "gcu-dra-driver"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"


def test_selectors_find_their_own_pods_only(helm: Helm) -> None:
    rendered = helm.render()
    workloads = [*rendered.of("DaemonSet"), *rendered.of("Deployment")]
    assert len(workloads) == 2
    for workload in workloads:
        wanted = workload["spec"]["selector"]["matchLabels"].items()
        assert [wanted <= _labels(each).items() for each in workloads].count(True) == 1
    budget = rendered.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items()
    assert budget <= _labels(rendered.one("Deployment")).items()
    assert not budget <= _labels(rendered.one("DaemonSet", "-agent")).items()


def _labels(workload: Object) -> dict[str, str]:
    labels: dict[str, str] = workload["spec"]["template"]["metadata"]["labels"]
    return labels


def test_the_controller_has_no_rights_on_its_node(helm: Helm) -> None:
    pod = helm.render().controller
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [volume["name"] for volume in pod["volumes"]] == ["token"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


def test_the_controllers_memory_has_the_limit_that_the_page_names(helm: Helm) -> None:
    """And that is twice what it takes in a cluster of the size that the page names."""
    [container] = helm.render().controller["containers"]
    limit = container["resources"]["limits"]["memory"]
    install = (CHECKOUT / "docs/user/install.md").read_text(encoding="utf-8")
    [(nodes, takes)] = re.findall(rf"\| ([0-9,]+) \| ([0-9,]+) \| {limit}, the default \|", install)
    assert limit == "1Gi"
    assert 2 * int(takes.replace(",", "")) <= 1024
    assert f"is for up to {nodes} nodes" in install


@pytest.mark.parametrize(("replicas", "together"), [(1, False), (2, True)])
def test_replicas_are_kept_apart_and_drained_in_turn(
    helm: Helm, replicas: int, together: bool
) -> None:
    rendered = helm.render({"controller": {"replicas": replicas}})
    assert rendered.one("Deployment")["spec"]["replicas"] == replicas
    assert bool(rendered.of("PodDisruptionBudget")) is together
    assert ("topologySpreadConstraints" in rendered.controller) is together


def test_the_classes_are_those_of_the_checkout(helm: Helm) -> None:
    files = sorted((CHECKOUT / "resourceclasses").glob("*.yaml"))
    assert all(each.is_symlink() for each in files)
    wanted = [yaml.safe_load(each.read_text()) for each in files]
    classes = helm.render().of("DeviceClass")
    found = [each for each in classes if each["metadata"]["name"] != names.CLASS_ADMIN]
    assert [each["spec"] for each in found] == [each["spec"] for each in wanted]
    assert {each["metadata"]["name"] for each in found} == set(names.DEVICE_CLASSES)


def test_claim_templates_ask_for_a_class_of_the_chart(helm: Helm) -> None:
    classes = {each["metadata"]["name"] for each in helm.render().of("DeviceClass")}
    files = sorted((CHECKOUT / "resourceclasses/claim-templates").glob("*.yaml"))
    assert files
    for file in files:
        template = yaml.safe_load(file.read_text())
        assert template["metadata"]["name"] == file.stem
        for request in template["spec"]["spec"]["devices"]["requests"]:
            assert request["exactly"]["deviceClassName"] in classes


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (SIMULATED, "simulated GCUs"),
        ({}, "Node Feature Discovery"),
        ({"agent": {"nodeSelector": {"gcu": "yes"}}}, "agent.nodeSelector and agent.affinity"),
    ],
    ids=["a simulation", "a real cluster", "nodes that were chosen"],
)
def test_the_notes_say_what_to_do_next(helm: Helm, values: Values, text: str) -> None:
    notes = helm.notes(values)
    assert text in notes
    install = (CHECKOUT / "docs/user/install.md").read_text(encoding="utf-8")
    [command] = re.findall("kubectl get resourceslices --field-selector .*", install)
    assert f"\n{command}\n" in notes
    example = notes.partition("<<'EOF'\n")[2].partition("EOF\n")[0]
    template, pod = yaml.safe_load_all(example)
    assert pod["spec"]["resourceClaims"] == [
        {"name": "gcu", "resourceClaimTemplateName": template["metadata"]["name"]}
    ]


@pytest.mark.parametrize(
    ("extender", "scheduler"),
    [({}, None), ({"schedulerImage": "scheduler:1"}, "gcushare-scheduler")],
    ids=["the cluster's scheduler", "the chart's"],
)
def test_the_notes_without_dra_have_a_pod_with_a_limit(
    helm: Helm, extender: dict[str, str], scheduler: str | None
) -> None:
    notes = helm.notes({"mode": "device-plugin", "extender": extender})
    assert "resourceslices" not in notes
    pod = yaml.safe_load(notes.partition("<<'EOF'\n")[2].partition("EOF\n")[0])
    [container] = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {names.RESOURCE_WHOLE: 1}
    assert pod["spec"].get("schedulerName") == scheduler


@pytest.mark.parametrize(
    ("modes", "one", "class_name", "limit"),
    [
        (["drs", "whole"], "one card", names.CLASS_WHOLE, names.RESOURCE_WHOLE),
        (["shared", "drs"], "a slice", names.CLASS_SHARED, names.RESOURCE_SHARED),
        (["drs"], "a DRS instance", names.CLASS_DRS, names.RESOURCE_DRS),
    ],
    ids=["a card", "a slice", "an instance"],
)
def test_the_notes_ask_for_what_cards_are_offered_as(
    helm: Helm, modes: list[str], one: str, class_name: str, limit: str
) -> None:
    cards = {"cards": {"modes": modes}}
    notes = helm.notes(cards)
    assert f"2. Run a pod with {one}, and" in notes
    assert f"{{deviceClassName: {class_name}}}" in notes
    assert f"limits: {{{limit}: 1}}" in helm.notes(cards | {"mode": "device-plugin"})


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, False),
        ({"mode": "device-plugin"}, True),
        ({"mode": "device-plugin", "extender": {"schedulerImage": "scheduler:1"}}, False),
    ],
    ids=["claims", "the cluster's scheduler", "the chart's"],
)
def test_the_notes_say_that_kube_scheduler_must_be_configured(
    helm: Helm, values: Values, shown: bool
) -> None:
    page = "docs/user/scheduler-extender.md#the-clusters-own-scheduler"
    assert (page in helm.notes(values)) == shown


@pytest.mark.parametrize(
    ("allocator", "controller", "nominates", "ignored"),
    [
        ("scheduler", {"packCards": "spread", "packNodes": "spread"}, True, ["packCards"]),
        ("scheduler", {"packNodes": "spread"}, False, ["packNodes"]),
        ("scheduler", {}, False, []),
        ("controller", {"packCards": "spread", "packNodes": "spread"}, True, []),
    ],
    ids=["cards", "nodes without names", "the defaults", "the controller allocates"],
)
def test_the_notes_say_which_packing_is_ignored(
    helm: Helm, allocator: str, controller: Values, nominates: bool, ignored: list[str]
) -> None:
    values = {
        "allocator": allocator,
        "schedulerVersion": "1.37.1",
        "controller": controller,
        "nomination": {"enabled": nominates},
    }
    said = re.findall(r"^WARNING: controller\.(\w+) is spread", helm.notes(values), re.MULTILINE)
    assert said == ignored


@pytest.mark.parametrize("allocator", ["controller", "scheduler"])
def test_the_notes_name_the_check_before_a_switch(helm: Helm, allocator: str) -> None:
    notes = helm.notes({"allocator": allocator, "schedulerVersion": "1.37.1"})
    assert ("kubectl gcu doctor --allocator scheduler" in notes) == (allocator == "scheduler")


@pytest.mark.parametrize(
    ("allocator", "kind"), [("controller", "whole"), ("scheduler", names.TYPE_ADMIN)]
)
def test_the_class_of_devices_for_administrators(helm: Helm, allocator: str, kind: str) -> None:
    rendered = helm.render({"allocator": allocator, "schedulerVersion": "1.37.1"})
    [selector] = rendered.one("DeviceClass", names.CLASS_ADMIN)["spec"]["selectors"]
    assert selector["cel"]["expression"].endswith(f'.type == "{kind}"')


def test_administrative_access_is_refused_to_all_classes_of_parts(helm: Helm) -> None:
    rendered = helm.render({"allocator": "scheduler", "schedulerVersion": "1.37.1"})
    policy = rendered.one("ValidatingAdmissionPolicy", f"admin-access.{names.DRIVER}")
    rules = policy["spec"]["validations"]
    [rule] = [each for each in rules if each["message"].startswith("adminAccess")]
    listed = set(json.loads(re.findall(r"in (\[.*?\])\)", rule["expression"])[-1]))
    assert listed == set(names.DEVICE_CLASSES) - {names.CLASS_WHOLE}


def test_the_administrators_class_opens_no_way_past_the_taint(helm: Helm) -> None:
    policy = helm.render({}).one("ValidatingAdmissionPolicy", f"request-tolerations.{names.DRIVER}")
    expressions = [each["expression"] for each in policy["spec"]["matchConditions"]]
    assert all(f'"{names.CLASS_ADMIN}"' in each for each in expressions)
