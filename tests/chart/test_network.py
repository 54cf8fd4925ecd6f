"""What listens, who may connect, and what is called: the page, the pods and the NetworkPolicies."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dra_driver.model.claims.claim import Object
from tests.chart.helm import Helm, Rendered, Values, environment
from tests.chart.test_security_page import table

OLD: Final = "--kube-version=1.30.14"
PEERS: Final[Values] = {
    "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
    "schedulerFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}],
    "apiServerFrom": [{"ipBlock": {"cidr": "10.0.1.0/28"}}],
    "apiServerTo": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
}
# The value of the page's names of those who connect, and the name of the port.
NAMED: Final = {
    "metrics": ("metricsFrom", "probes"),
    "scheduler": ("schedulerFrom", "extender"),
    "API servers": ("apiServerFrom", "webhook"),
}
DRA: Final = "DRA"
WITHOUT: Final = "no DRA"
OWN: Final = "no DRA, the cluster's scheduler"
CHARTS: Final = "no DRA, the chart's scheduler"
WEBHOOK: Final = "DRA, before Kubernetes 1.36"
NAMED_NODES: Final = "allocator: scheduler"
LAYOUTS: Final = pytest.mark.parametrize("layout", [DRA, WEBHOOK, NAMED_NODES, OWN, CHARTS])
_VERSIONS: Final = {WEBHOOK: "--kube-version=1.34.4", OWN: OLD, CHARTS: OLD}


def rendered(helm: Helm, layout: str, **policy: Any) -> Rendered:
    values: Values = {"networkPolicy": {"enabled": True, **policy}}
    if layout == CHARTS:
        values["extender"] = {"schedulerImage": "kube-scheduler:v1.30.14"}
    if layout == NAMED_NODES:
        values |= {"allocator": "scheduler", "schedulerVersion": "1.37.2"}
    return helm.render(values, *([_VERSIONS[layout]] if layout in _VERSIONS else []))


def rows(layout: str) -> list[dict[str, str]]:
    """Those of the page's table of ports."""
    found = table("pod", "port", "when", "serves", "to")
    assert {row["when"] for row in found} == {"always", WEBHOOK, NAMED_NODES, WITHOUT, OWN, CHARTS}
    whens = ("always", layout, WITHOUT if layout in (OWN, CHARTS) else layout)
    return [row for row in found if row["when"] in whens]


def containers(found: Rendered) -> list[tuple[str, Object]]:
    pods = {"agent": found.agent, "controller": found.controller}
    return [(name, each) for name, pod in pods.items() for each in pod["containers"]]


def policies(found: Rendered) -> dict[str, Object]:
    """The specs, by the pods that they select."""
    label = "app.kubernetes.io/component"
    specs = [each["spec"] for each in found.of("NetworkPolicy")]
    return {each["podSelector"]["matchLabels"][label]: each for each in specs}


@LAYOUTS
def test_the_page_names_every_port_that_listens(helm: Helm, layout: str) -> None:
    listening: set[tuple[str, str]] = set()
    for pod, container in containers(rendered(helm, layout)):
        listening |= {(pod, str(each["containerPort"])) for each in container["ports"]}
        settings = environment({"env": [], **container})
        for name, value in settings.items():
            if name.endswith("_PORT"):
                host = settings.get(name.removesuffix("PORT") + "HOST")
                listening.add((pod, f"{value} at {host}" if host else value))
    assert {(row["pod"], row["port"]) for row in rows(layout)} == listening


@LAYOUTS
def test_every_probe_is_of_a_port_that_the_page_says_the_kubelet_calls(
    helm: Helm, layout: str
) -> None:
    probed = set()
    for pod, container in containers(rendered(helm, layout)):
        ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
        for name, probe in container.items():
            if name.endswith("Probe"):
                probed.add((pod, ports[probe["httpGet"]["port"]]))
    called = {(row["pod"], row["port"]) for row in rows(layout) if "kubelet" in row["to"]}
    assert probed == called


@LAYOUTS
def test_connections_come_from_the_peers_that_the_page_names(helm: Helm, layout: str) -> None:
    found = rendered(helm, layout, **PEERS)
    values = {row["to"]: row["value"] for row in table("to", "from whom", "value")}
    assert values == {"kubelet": "", **{to: f"networkPolicy.{NAMED[to][0]}" for to in NAMED}}
    names = {
        (pod, str(each["containerPort"])): each["name"]
        for pod, container in containers(found)
        for each in container["ports"]
    }
    told = {
        (row["pod"], names[row["pod"], row["port"]], to)
        for row in rows(layout)
        for to in row["to"].split(", ")
        if to in NAMED
    }
    rules = [
        (pod, port, rule["from"])
        for pod, spec in policies(found).items()
        for rule in spec["ingress"]
        for port in rule["ports"]
    ]
    assert all(port["protocol"] == "TCP" for _, port, _ in rules)
    allowed = {
        (pod, port["port"], to)
        for pod, port, peers in rules
        for to, (value, _) in NAMED.items()
        if peers == PEERS[value]
    }
    assert allowed == told
    assert len(rules) == len(told)


@LAYOUTS
def test_by_default_extender_and_webhook_alone_are_reached(helm: Helm, layout: str) -> None:
    found = policies(rendered(helm, layout))
    assert set(found) == {"agent", "controller"}
    assert found["agent"]["ingress"] == []
    webhook = ["webhook"]
    served = {CHARTS: webhook, WEBHOOK: webhook, NAMED_NODES: webhook}
    ports = {OWN: ["extender", *webhook], **served}.get(layout, [])
    rules = [{"ports": [{"protocol": "TCP", "port": port}]} for port in ports]
    assert found["controller"]["ingress"] == rules


@LAYOUTS
def test_the_api_server_alone_is_called(helm: Helm, layout: str) -> None:
    ports = [{"protocol": "TCP", "port": port} for port in (443, 6443)]
    for spec in policies(rendered(helm, layout)).values():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert spec["egress"] == [{"ports": ports}]
    named = rendered(helm, layout, apiServerPorts=[7443], apiServerTo=PEERS["apiServerTo"])
    for spec in policies(named).values():
        [rule] = spec["egress"]
        assert rule["ports"] == [{"protocol": "TCP", "port": 7443}]
        assert rule["to"] == PEERS["apiServerTo"]


@LAYOUTS
def test_a_policy_selects_the_pods_of_its_program(helm: Helm, layout: str) -> None:
    found = rendered(helm, layout)
    for program, kind in (("agent", "DaemonSet"), ("controller", "Deployment")):
        workload = found.one(kind, f"-{program}")["spec"]
        [policy] = [
            each for each in found.of("NetworkPolicy") if program in each["metadata"]["name"]
        ]
        assert policy["spec"]["podSelector"] == workload["selector"]


def test_without_the_value_there_is_none(helm: Helm) -> None:
    assert helm.render({}, OLD).of("NetworkPolicy") == []


def test_a_peer_that_is_none_is_refused(helm: Helm) -> None:
    wrong = {"networkPolicy": {"metricsFrom": [{"cidr": "10.0.0.0/8"}]}}
    assert "at '/networkPolicy/metricsFrom/0': additional properties" in helm.refusal(wrong)
