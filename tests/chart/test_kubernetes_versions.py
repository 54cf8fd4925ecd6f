"""What differs by the version of Kubernetes."""

from __future__ import annotations

import pytest

from tests.chart.helm import Helm, Values, environment
from tests.cluster.errors import CommandError


@pytest.mark.parametrize(
    ("version", "update"),
    [
        pytest.param("1.36.3", {"maxSurge": "10%", "maxUnavailable": 0}, id="side by side"),
        pytest.param("1.33.0-gke.1", {"maxSurge": "10%", "maxUnavailable": 0}, id="the first such"),
        pytest.param("1.32.13", {"maxSurge": 0, "maxUnavailable": 1}, id="the last other"),
        pytest.param("1.30.14", {"maxSurge": 0, "maxUnavailable": 1}, id="one after the other"),
    ],
)
def test_a_new_agent_serves_before_the_old_one_ends_where_kubelets_know_both(
    helm: Helm, version: str, update: dict[str, object]
) -> None:
    rendered = helm.render({"agent": {"maxSurge": "10%"}}, f"--kube-version={version}")
    strategy = rendered.one("DaemonSet", "-agent")["spec"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": update}


@pytest.mark.parametrize(
    ("values", "version", "form"),
    [
        ({}, "1.34.4", "hidden"),
        ({}, "1.35.9", "hidden"),
        ({}, "1.36.3", "visible"),
        ({}, "1.37.1", "visible"),
        ({"sliceForm": "hidden"}, "1.36.3", "hidden"),
        ({"mode": "device-plugin"}, "1.34.4", "hidden"),
        ({"kubernetesVersion": "1.34.0"}, "1.37.1", "hidden"),
    ],
    ids=["1.34", "1.35", "1.36", "1.37", "chosen", "claims that end", "played by 1.37"],
)
def test_which_slices_are_published(helm: Helm, values: Values, version: str, form: str) -> None:
    rendered = helm.render(values, f"--kube-version={version}")
    assert environment(rendered.agent["containers"][0])["GCU_SLICE_FORM"] == form


@pytest.mark.parametrize(("version", "has_them"), [("1.35.9", False), ("1.36.3", True)])
def test_mutating_policies_are_for_servers_that_have_them(
    helm: Helm, version: str, has_them: bool
) -> None:
    values: Values = {"schedulingGate": {"policy": True}}
    rendered = helm.render(values, f"--kube-version={version}")
    assert bool(rendered.of("MutatingAdmissionPolicy")) is has_them


def test_a_server_that_plays_an_older_version_has_no_mutating_policies(helm: Helm) -> None:
    values: Values = {"kubernetesVersion": "1.35.0", "schedulingGate": {"policy": True}}
    rendered = helm.render(values, "--kube-version=1.37.1")
    assert not rendered.of("MutatingAdmissionPolicy")
    assert rendered.of("MutatingWebhookConfiguration")


def test_the_oldest_kubernetes(helm: Helm) -> None:
    assert helm.render({}, "--kube-version=1.25.0").agent
    with pytest.raises(CommandError, match=r"Kubernetes v?1.24.17, and this driver needs 1.25"):
        helm.render({}, "--kube-version=1.24.17")
