"""docs/user/security.md names every mount, setting and right that helm renders, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest

from dra_driver.model.claims.claim import Object
from tests.chart.helm import CHECKOUT, Helm, Rendered, Values

PAGE: Final = (CHECKOUT / "docs/user/security.md").read_text(encoding="utf-8")
PROMISES: Final = (CHECKOUT / "docs/dev/promises.md").read_text(encoding="utf-8")
REAL: Final[Values] = {}
RUNTIME: Final[Values] = {"efsmi": {"runtimeClassName": "enflame"}}
SIMULATED: Final[Values] = {"simulation": {"enabled": True}}
LABELS: Final[Values] = {"nodeLabels": {"enabled": True}}
LOG_FILE: Final[Values] = {"agent": {"logFile": {"enabled": True}}}
DRA_ALONE: Final[Values] = {"mode": "dra", "legacyResources": {"enabled": False}}
WITHOUT_DRA: Final[Values] = {"extender": {"schedulerImage": "kube-scheduler:v1.30.14"}}
SCHEDULER: Final[Values] = {"allocator": "scheduler", "schedulerVersion": "1.37.1"}
OLD: Final = "--kube-version=1.30.14"
# When a row of the mounts holds.
WHEN: Final = {
    "always": (REAL, RUNTIME, SIMULATED, DRA_ALONE, LOG_FILE),
    "device plugin": (REAL, RUNTIME, SIMULATED, LOG_FILE),
    "agent.logFile": (LOG_FILE,),
    "on GCUs": (REAL, RUNTIME, DRA_ALONE, LOG_FILE),
    "without runtimeClassName": (REAL, DRA_ALONE, LOG_FILE),
    "simulated": (SIMULATED,),
}
# Of Kubernetes' own scheduler, whose account the chart's has where there is one.
SCHEDULERS: Final = {
    "system:kube-scheduler",
    "system:volume-scheduler",
    "extension-apiserver-authentication-reader",
}
WAYS: Final = pytest.mark.parametrize("way", ["DRA", "no DRA"])
SHARED: Final = {"hostNetwork", "hostPID", "hostIPC"}


@pytest.fixture
def rendered(helm: Helm, way: str) -> Rendered:
    return helm.render(SIMULATED) if way == "DRA" else helm.render(WITHOUT_DRA, OLD)


def table(*columns: str) -> list[dict[str, str]]:
    """The rows of the page's table whose head begins with these columns."""
    _, found, rest = PAGE.partition(f"| {' | '.join(columns)} |")
    assert found, columns
    head = [*columns, *_cells(rest.partition("\n")[0])]
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    rows = [dict(zip(head, _cells(line), strict=True)) for line in lines]
    assert all(row.get("why", "-") for row in rows)
    return rows


def test_what_stops_an_attacker_is_tested_or_nothing_does() -> None:
    attacks = PAGE.partition("## Who attacks")[2].partition("\n### The vendor's container")[0]
    shown = PROMISES.partition("## What stops an attacker")[2].partition("\n## ")[0]
    for attack, (*key, tests) in zip(_rows(attacks), _rows(shown), strict=True):
        assert attack[: len(key)] == key
        folder = CHECKOUT
        for named in tests.split(", "):
            if named == "–":
                assert "**nothing**" in " ".join(attack).lower(), attack
                continue
            path = CHECKOUT / named if named.startswith("tests/") else folder / named
            assert path.exists(), named
            folder = path.parent


def _rows(section: str) -> list[list[str]]:
    """The rows of its tables, without their heads."""
    found = re.findall(r"^\|(?:---\|)+\n((?:\|.*\n)+)", section, flags=re.MULTILINE)
    rows = [_cells(line) for table in found for line in table.splitlines()]
    assert len(rows) > 30
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|") if cell]


@pytest.mark.parametrize(
    "values",
    [REAL, RUNTIME, SIMULATED, DRA_ALONE, LOG_FILE],
    ids=["a real node", "the vendor's runtime", "simulated", "DRA alone", "a log file"],
)
def test_mounts(helm: Helm, values: Values) -> None:
    told = {
        (row["path"], row["access"])
        for row in table("path", "access", "when")
        if values in WHEN[row["when"]]
    }
    assert told == mounts(helm.render(values).agent["containers"])


def mounts(containers: list[Object]) -> set[tuple[str, str]]:
    """Path and access of those of the only container."""
    [container] = containers
    return {
        (mount["mountPath"], "read" if mount.get("readOnly") else "write")
        for mount in container["volumeMounts"]
    }


def test_containers(helm: Helm) -> None:
    real, runtime, simulated = map(helm.render, (REAL, RUNTIME, SIMULATED))
    old = helm.render(WITHOUT_DRA, OLD)
    ours, scheduler = ({**old.controller, "containers": [each]} for each in _beside(old))
    pods = {
        "agent": (runtime.agent, "containers"),
        "agent without runtimeClassName": (real.agent, "containers"),
        "simulated machine": (simulated.agent, "initContainers"),
        "controller": (real.controller, "containers"),
        "kube-scheduler of the chart": (scheduler, "containers"),
        "uninstall Job": (
            real.one("Job", "-uninstall")["spec"]["template"]["spec"],
            "containers",
        ),
    }
    others = (("controller", (ours, "containers")),)
    assert not any(SHARED & set(pod) for pod, _ in pods.values())
    rows = table("setting", *pods)
    for column, (pod, kind) in (*pods.items(), *others):
        [container] = pod[kind]
        assert {row["setting"]: row[column] for row in rows} == settings(pod, container), column


def _beside(rendered: Rendered) -> tuple[Object, Object]:
    """The controller and the scheduler, which share a pod."""
    first, second = rendered.controller["containers"]
    assert (first["name"], second["name"]) == ("controller", "kube-scheduler")
    return first, second


@WAYS
def test_tokens_of_the_programs_that_run_on_are_good_for_an_hour(rendered: Rendered) -> None:
    """Kubernetes' own, which it mounts by default, is extended to a year."""
    for pod in (rendered.agent, rendered.controller):
        assert pod["automountServiceAccountToken"] is False
        [token] = [
            source["serviceAccountToken"]
            for volume in pod["volumes"]
            for source in volume.get("projected", {}).get("sources", ())
            if "serviceAccountToken" in source
        ]
        assert token == {"path": "token", "expirationSeconds": 3600}


@WAYS
def test_the_controller_sees_no_folder_of_the_node(rendered: Rendered) -> None:
    kinds = {kind for volume in rendered.controller.get("volumes", ()) for kind in volume}
    assert kinds <= {"name", "configMap", "secret", "projected"}


def settings(pod: Object, container: Object) -> dict[str, str]:
    """What the page says of a container, in its words."""
    own = container["securityContext"]
    privileged = own.get("privileged", False)
    capabilities = own.get("capabilities", {})
    assert privileged or capabilities["drop"] == ["ALL"]
    return {
        "user": str(pod["securityContext"]["runAsUser"]),
        "privileged": "yes" if privileged else "no",
        "capabilities": "all" if privileged else ", ".join(capabilities.get("add", ["none"])),
        "may gain rights": "yes" if own.get("allowPrivilegeEscalation", True) else "no",
        "root file system": "read-only" if own["readOnlyRootFilesystem"] else "writable",
        "seccomp": pod["securityContext"]["seccompProfile"]["type"],
        "account's token": "yes" if has_token(pod, container) else "no",
    }


def has_token(pod: Object, container: Object) -> bool:
    """Whether Kubernetes mounts its own volume with the token, as it does by default, or the
    container mounts one of the pod's."""
    if pod.get("automountServiceAccountToken", True):
        return True
    tokens = {
        volume["name"]
        for volume in pod.get("volumes", ())
        for source in volume.get("projected", {}).get("sources", ())
        if "serviceAccountToken" in source
    }
    return any(mount["name"] in tokens for mount in container.get("volumeMounts", ()))


@WAYS
def test_no_other_pod_is_made(rendered: Rendered) -> None:
    """A new one would need a column of the page."""
    made = {each["kind"] for each in rendered if "template" in each.get("spec", {})}
    assert made == {"DaemonSet", "Deployment", "Job"}


@WAYS
def test_rights(rendered: Rendered, way: str) -> None:
    told = [
        (row["program"], frozenset(row["verbs"].split(", ")), row["on"])
        for row in table("program", "verbs", "on", "when")
        if {*row["when"].split("; ")}
        & {"always", way, "allocator: controller" if way == "DRA" else way}
    ]
    assert len(set(told)) == len(told)
    assert set(told) == set(rights(rendered))


def rights(rendered: Rendered) -> Iterator[tuple[str, frozenset[str], str]]:
    """(program, verbs, resource) of each rule."""
    for role in rendered.of("ClusterRole") + rendered.of("Role"):
        program = role["metadata"]["labels"]["app.kubernetes.io/component"]
        for rule in role["rules"]:
            assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
            named = f" named {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
            for resource in rule["resources"]:
                yield program, frozenset(rule["verbs"]), f"{resource}{named}"


@WAYS
def test_no_rule_takes_everything(rendered: Rendered) -> None:
    for role in rendered.of("ClusterRole") + rendered.of("Role"):
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


@WAYS
def test_every_account_is_bound_to_its_own_role_only(rendered: Rendered, way: str) -> None:
    programs: dict[str, str] = {}
    for binding in rendered.of("ClusterRoleBinding") + rendered.of("RoleBinding"):
        [subject] = binding["subjects"]
        assert subject["kind"] == "ServiceAccount"
        role = binding["roleRef"]["name"]
        assert role in {binding["metadata"]["name"], subject["name"]} | SCHEDULERS
        program = binding["metadata"]["labels"]["app.kubernetes.io/component"]
        assert programs.setdefault(subject["name"], program) == program
    assert len(set(programs.values())) == len(programs) == (3 if way == "DRA" else 4)


@WAYS
def test_policies(rendered: Rendered, way: str) -> None:
    rows = table("policy", "when", "refuses")
    listed = {row["policy"] for row in rows if {*row["when"].split("; ")} & {"always", way}}
    assert listed == {each["metadata"]["name"] for each in rendered.of("ValidatingAdmissionPolicy")}


@pytest.mark.parametrize(
    ("when", "values"),
    [
        ("vendorRuntime.policy", {"vendorRuntime": {"policy": True}}),
        ("allocator: scheduler", SCHEDULER),
        ("nodeLabels", LABELS),
    ],
)
def test_policies_that_a_value_adds(helm: Helm, when: str, values: Values) -> None:
    listed = {
        row["policy"]
        for row in table("policy", "when", "refuses")
        if when in row["when"].split("; ")
    }
    names = [
        {each["metadata"]["name"] for each in helm.render(found).of("ValidatingAdmissionPolicy")}
        for found in ({}, values)
    ]
    assert listed == names[1] - names[0]


def test_rights_of_each_allocator(helm: Helm) -> None:
    controller, scheduler = (
        {
            (row["program"], frozenset(row["verbs"].split(", ")), row["on"])
            for row in table("program", "verbs", "on", "when")
            if row["when"] == f"allocator: {allocator}"
        }
        for allocator in ("controller", "scheduler")
    )
    default, changed = ({*rights(helm.render(values))} for values in ({}, SCHEDULER))
    assert changed - default == scheduler
    assert default - changed == controller


def test_rights_for_labels(helm: Helm) -> None:
    default, changed = ({*rights(helm.render(values))} for values in ({}, LABELS))
    assert changed - default == {
        (row["program"], frozenset(row["verbs"].split(", ")), row["on"])
        for row in table("program", "verbs", "on", "when")
        if "nodeLabels" in row["when"].split("; ")
    }
    assert not default - changed


def test_a_server_before_them_gets_no_policy(helm: Helm) -> None:
    assert helm.render({}, "--kube-version=1.29.9").of("ValidatingAdmissionPolicy") == []
