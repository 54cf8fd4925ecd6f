"""docs/user/security.md names every mount, setting and right that helm renders, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from dra_driver.model.claim import Object
from tests.chart.helm import CHECKOUT, Helm, Rendered, Values

pytestmark = pytest.mark.control_plane

PAGE: Final = (CHECKOUT / "docs/user/security.md").read_text(encoding="utf-8")
REAL: Final[Values] = {}
RUNTIME: Final[Values] = {"efsmi": {"runtimeClassName": "enflame"}}
SIMULATED: Final[Values] = {"simulation": {"enabled": True}}
# When a row of the mounts holds.
WHEN: Final = {
    "always": (REAL, RUNTIME, SIMULATED),
    "on GCUs": (REAL, RUNTIME),
    "without runtimeClassName": (REAL,),
    "simulated": (SIMULATED,),
}
SHARED: Final = {"hostNetwork", "hostPID", "hostIPC"}


def table(*columns: str) -> list[dict[str, str]]:
    """The rows of the page's table whose head begins with these columns."""
    _, found, rest = PAGE.partition(f"| {' | '.join(columns)} |")
    assert found, columns
    head = [*columns, *_cells(rest.partition("\n")[0])]
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    rows = [dict(zip(head, _cells(line), strict=True)) for line in lines]
    assert all(row.get("why", "-") for row in rows)
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|") if cell]


@pytest.mark.parametrize(
    "values", [REAL, RUNTIME, SIMULATED], ids=["a real node", "the vendor's runtime", "simulated"]
)
def test_mounts(helm: Helm, values: Values) -> None:
    told = {
        (row["path"], row["access"])
        for row in table("path", "access", "when")
        if values in WHEN[row["when"]]
    }
    [container] = helm.render(values).agent["containers"]
    assert told == {
        (mount["mountPath"], "read" if mount.get("readOnly") else "write")
        for mount in container["volumeMounts"]
    }


def test_containers(helm: Helm) -> None:
    real, runtime, simulated = map(helm.render, (REAL, RUNTIME, SIMULATED))
    pods = {
        "agent": (runtime.agent, "containers"),
        "agent without runtimeClassName": (real.agent, "containers"),
        "simulated machine": (simulated.agent, "initContainers"),
        "controller": (real.controller, "containers"),
        "uninstall check": (_pod_of(real, "Job"), "containers"),
    }
    assert not any(SHARED & set(pod) for pod, _ in pods.values())
    rows = table("setting", *pods)
    for column, (pod, kind) in pods.items():
        [container] = pod[kind]
        assert {row["setting"]: row[column] for row in rows} == settings(pod, container), column


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
    }


def _pod_of(rendered: Rendered, kind: str) -> Object:
    pod: Object = rendered.one(kind)["spec"]["template"]["spec"]
    return pod


def test_no_other_pod_is_made(helm: Helm) -> None:
    """A new one would need a column of the page."""
    made = {each["kind"] for each in helm.render(SIMULATED) if "template" in each.get("spec", {})}
    assert made == {"DaemonSet", "Deployment", "Job"}


def test_rights(helm: Helm) -> None:
    rows = table("program", "verbs", "on")
    told = [(row["program"], frozenset(row["verbs"].split(", ")), row["on"]) for row in rows]
    assert len(set(told)) == len(told)
    assert set(told) == set(rights(helm.render()))


def rights(rendered: Rendered) -> Iterator[tuple[str, frozenset[str], str]]:
    """(program, verbs, resource) of each rule."""
    for role in rendered.of("ClusterRole") + rendered.of("Role"):
        program = role["metadata"]["labels"]["app.kubernetes.io/component"]
        for rule in role["rules"]:
            assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
            named = f" named {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
            for resource in rule["resources"]:
                yield program, frozenset(rule["verbs"]), f"{resource}{named}"


def test_no_rule_takes_everything(helm: Helm) -> None:
    for role in helm.render().of("ClusterRole") + helm.render().of("Role"):
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_every_account_is_bound_to_its_own_role_only(helm: Helm) -> None:
    rendered = helm.render()
    programs: dict[str, str] = {}
    for binding in rendered.of("ClusterRoleBinding") + rendered.of("RoleBinding"):
        [subject] = binding["subjects"]
        assert subject["kind"] == "ServiceAccount"
        assert binding["roleRef"]["name"] in {binding["metadata"]["name"], subject["name"]}
        program = binding["metadata"]["labels"]["app.kubernetes.io/component"]
        assert programs.setdefault(subject["name"], program) == program
    assert len(set(programs.values())) == len(programs) == 3


def test_policies(helm: Helm) -> None:
    told = {row["policy"] for row in table("policy", "refuses")}
    assert told == {
        each["metadata"]["name"] for each in helm.render().of("ValidatingAdmissionPolicy")
    }
