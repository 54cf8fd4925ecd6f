"""The objects for the Prometheus operator and Grafana. Each alert fires, by promtool."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from dra_driver.model.claims.claim import Object
from dra_driver.telemetry.metric_spec import BUILD_INFO, HistogramSpec
from tests.chart.helm import CHECKOUT, Helm, Values
from tests.cluster.packages import unpacked
from tests.cluster.processes import run
from tests.generated_docs import AGENT_METRICS, CONTROLLER_METRICS, exported_name

ON: Final[Values] = {
    "monitoring": {
        "podMonitor": {"enabled": True, "labels": {"team": "infra"}},
        "prometheusRule": {"enabled": True, "waitingSeconds": 600},
        "grafanaDashboard": {"enabled": True},
    },
    "vendorRuntime": {"allowedNamespaces": ["gcu-exporter", "kube-system"]},
}
KINDS: Final = ("PodMonitor", "PrometheusRule")
SPECS: Final = (*AGENT_METRICS, *CONTROLLER_METRICS, BUILD_INFO)
_LABEL: Final = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_METRIC: Final = re.compile(r"\bgcu_[a-z_]+")

Series = Mapping[str, str]


class Fires(NamedTuple):
    """Series as promtool writes them, a value a minute. After 80 minutes the alert fires with these
    labels (and the severity), and this summary."""

    series: Series
    labels: Mapping[str, str]
    summary: str


NODE: Final = {"node": "a"}
AGENT: Final = 'node="a",namespace="gcu-dra-driver",pod="agent-1"'
FIRES: Final[Mapping[str, Fires]] = {
    "GcuAgentGone": Fires(
        {'gcu_card_info{node="a"}': "1x30 stale", 'gcu_card_info{node="b"}': "1x90"},
        NODE,
        "No agent serves node a.",
    ),
    # The agent's own pod is among the labels of what it exports.
    "GcuCardProblem": Fires(
        {
            f"gcu_card_problem{{{AGENT},{labels}}}": "1x90"
            for labels in (
                'pci_bus_id="0000:01:00.0",problem="unhealthy",value="lost"',
                'pci_bus_id="0000:02:00.0",problem="changing",value=""',
                'pci_bus_id="0000:03:00.0",problem="foreign",value=""',
            )
        },
        NODE | {"pci_bus_id": "0000:01:00.0", "problem": "unhealthy", "value": "lost"},
        "Card 0000:01:00.0 of node a: unhealthy (lost).",
    ),
    "GcuCardForeign": Fires(
        {
            f"gcu_card_problem{{{AGENT},{labels}}}": "1x90"
            for labels in (
                'pci_bus_id="0000:01:00.0",problem="unhealthy",value="lost"',
                'pci_bus_id="0000:03:00.0",problem="foreign",value=""',
            )
        },
        NODE | {"pci_bus_id": "0000:03:00.0"},
        "Others use card 0000:03:00.0 of node a.",
    ),
    "GcuEfsmiFails": Fires(
        {
            'gcu_agent_efsmi_duration_seconds_count{node="a",outcome="hung"}': "0+1x90",
            'gcu_agent_efsmi_duration_seconds_count{node="b",outcome="ok"}': "0+9x90",
        },
        NODE,
        "efsmi fails or hangs on node a.",
    ),
    "GcuJournalDamaged": Fires(
        {'gcu_agent_journal_quarantines_total{node="a"}': "0x30 1x60"},
        NODE,
        "The agent of node a found its journal damaged, and rebuilt it.",
    ),
    "GcuClaimNotCleanedUp": Fires(
        {'gcu_agent_claims{node="a",state="unpreparing"}': "2x90"},
        NODE | {"state": "unpreparing"},
        "Node a: 2 claims are neither prepared nor gone (unpreparing).",
    ),
    "GcuPodWaits": Fires(
        {"gcu_controller_longest_wait_seconds": "0+60x90"},
        {},
        "A pod has waited for GCUs for 1h 20m 0s.",
    ),
    "GcuDecisionsLate": Fires(
        {
            f'gcu_controller_decision_wait_seconds_bucket{{le="{bound}"}}': f"0+{count}x90"
            for bound, count in (("2.0", 98), ("6.0", 100), ("+Inf", 100))
        },
        {},
        "One decision in a hundred comes 4s after it was due. The objective is two seconds.",
    ),
    "GcuNoLeader": Fires(
        {'gcu_controller_leading{pod="a"}': "0x90", 'gcu_controller_leading{pod="b"}': "1x30 0x60"},
        {},
        "No controller leads.",
    ),
    "GcuGatesUndecided": Fires(
        {
            'gcu_controller_undecided_gates{pod="a"}': "3x90",
            'gcu_controller_undecided_gates{pod="b"}': "3x90",
        },
        {},
        "3 pods are held back by the scheduling gate, and no controller decides about them.",
    ),
    "GcuPodsWithoutGate": Fires(
        {
            'gcu_controller_arrived_pods_total{gated="true"}': "0+1x90",
            'gcu_controller_arrived_pods_total{gated="false"}': "0+2x90",
        },
        {},
        "Most new pods with GCUs came without the scheduling gate in the last half hour, so "
        "nobody named their nodes.",
    ),
    "GcuNamesStopped": Fires(
        {"gcu_controller_names_stopped": "0x30 1x60"},
        {},
        "kube-scheduler followed fewer than half of the last 200 names of nodes, so the controller "
        "proposes nodes by preferred affinity.",
    ),
    "GcuControllerFault": Fires(
        {"gcu_controller_faulty_objects": "1x90"},
        {},
        "The controller failed on 1 objects, and leaves them alone.",
    ),
    "GcuForeignAllocation": Fires(
        {
            "gcu_controller_foreign_allocations": "1x90",
            "gcu_controller_conflicting_allocations": "0x90",
        },
        {},
        "1 claims have devices that another allocator gave them, or that are allocated twice.",
    ),
    "GcuPodsWithoutClaim": Fires(
        {
            f"gcu_controller_pods_without_claim{{{labels}}}": "2x90"
            for labels in (
                'node="a",namespace="team",pod="controller-1"',
                'node="a",namespace="team",pod="controller-2"',
                'node="a",namespace="gcu-exporter",pod="controller-1"',
            )
        },
        NODE | {"namespace": "team"},
        "2 pods of namespace team have cards of node a and no claim.",
    ),
    "GcuExtenderBypassed": Fires(
        {"gcu_extender_bypassed_pods": "2x90"},
        {},
        "2 pods with GCUs were placed without the scheduler extender.",
    ),
    "GcuExtenderFails": Fires(
        {'gcu_extender_calls_total{verb="filter",outcome="failed"}': "0+3x90"},
        {"verb": "filter"},
        "kube-scheduler's calls to filter fail.",
    ),
    "GcuCertificateExpires": Fires(
        {'gcu_webhook_certificate_expiration_timestamp_seconds{certificate="server"}': "90000x90"},
        {"certificate": "server"},
        "The certificate server ends in 23h 40m 0s.",
    ),
}
# Nothing is wrong: all alerts are silent.
QUIET: Final[Series] = {
    'gcu_card_info{node="a"}': "1x90",
    'gcu_card_problem{node="a",pci_bus_id="0000:02:00.0",problem="changing",value=""}': "1x90",
    'gcu_agent_efsmi_duration_seconds_count{node="a",outcome="ok"}': "0+9x90",
    'gcu_agent_journal_quarantines_total{node="a"}': "1x90",  # seen an hour ago
    'gcu_agent_claims{node="a",state="unpreparing"}': "0x90",
    'gcu_agent_claims{node="a",state="prepared"}': "4x90",
    "gcu_controller_longest_wait_seconds": "500x90",
    'gcu_controller_decision_wait_seconds_bucket{le="2.0"}': "0+100x90",
    'gcu_controller_decision_wait_seconds_bucket{le="+Inf"}': "0+100x90",
    'gcu_controller_leading{pod="a"}': "0x90",
    'gcu_controller_leading{pod="b"}': "1x90",
    'gcu_controller_undecided_gates{pod="a"}': "0x90",
    'gcu_controller_arrived_pods_total{gated="true"}': "0+3x90",
    'gcu_controller_arrived_pods_total{gated="false"}': "0+2x90",
    "gcu_controller_names_stopped": "0x90",
    "gcu_controller_faulty_objects": "0x90",
    "gcu_controller_foreign_allocations": "0x90",
    "gcu_controller_conflicting_allocations": "0x90",
    'gcu_controller_pods_without_claim{node="a",namespace="kube-system"}': "1x90",
    'gcu_webhook_certificate_expiration_timestamp_seconds{certificate="server"}': "9000000x90",
}


def test_nothing_by_default(helm: Helm) -> None:
    found = helm.render()
    assert not [each for each in found if each["kind"] in KINDS]
    assert not [each for each in found.of("ConfigMap") if "dashboards" in each["metadata"]["name"]]


def test_the_pod_monitor_selects_both_programs(helm: Helm) -> None:
    found = helm.render(ON)
    monitor = found.one("PodMonitor")
    assert monitor["metadata"]["labels"]["team"] == "infra"
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    for kind in ("DaemonSet", "Deployment"):
        pod = found.one(kind)["spec"]["template"]
        assert selected <= pod["metadata"]["labels"].items()
        ports = [
            port["name"] for each in pod["spec"]["containers"] for port in each.get("ports", ())
        ]
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in ports
        assert endpoint["honorLabels"]  # `pod` of a metric of cards is the holder's


def test_the_same_without_dra(helm: Helm) -> None:
    kinds = [each["kind"] for each in helm.render(ON, "--kube-version=1.30.14")]
    assert set(KINDS) <= set(kinds)


@pytest.fixture(scope="module")
def groups(helm: Helm) -> Any:
    return helm.render(ON).one("PrometheusRule")["spec"]["groups"]


def test_a_problem_without_a_value_is_named_alone(
    groups: Any, tmp_path: Path, cluster_report: Callable[[str], None]
) -> None:
    series = f'gcu_card_problem{{{AGENT},pci_bus_id="0000:01:00.0",problem="failing",value=""}}'
    fires = Fires(
        {series: "1x90"},
        NODE | {"pci_bus_id": "0000:01:00.0", "problem": "failing"},
        "Card 0000:01:00.0 of node a: failing.",
    )
    rule = rules(groups)["GcuCardProblem"]
    check(groups, [case(fires.series, "80m", [firing(rule, fires)])], tmp_path, cluster_report)


def test_an_agent_that_is_gone_is_reported_for_as_long_as_it_is(
    groups: Any, tmp_path: Path, cluster_report: Callable[[str], None]
) -> None:
    """Also after the hour for which Prometheus compares with the cards of before."""
    gone = Fires(
        {
            'gcu_card_info{node="a"}': "1x30 stale",
            'gcu_controller_nodes_without_agent{node="a",pod="c-1"}': "_x30 1x600",
            'gcu_controller_nodes_without_agent{node="a",pod="c-2"}': "_x30 1x600",
        },
        NODE,
        "No agent serves node a.",
    )
    rule = rules(groups)["GcuAgentGone"]
    check(groups, [case(gone.series, "600m", [firing(rule, gone)])], tmp_path, cluster_report)


def rules(groups: Any) -> dict[str, Any]:
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_each_alert_fires_and_else_is_silent(
    groups: Any, tmp_path: Path, cluster_report: Callable[[str], None]
) -> None:
    known = rules(groups)
    assert known.keys() == FIRES.keys()
    cases = [case(each.series, "80m", [firing(known[name], each)]) for name, each in FIRES.items()]
    cases.append(case(QUIET, "85m", [silent(name) for name in known]))
    check(groups, cases, tmp_path, cluster_report)


def check(
    groups: Any, cases: Sequence[Object], folder: Path, report: Callable[[str], None]
) -> None:
    """Raises unless promtool finds each case as it says."""
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    tests = {"rule_files": ["rules.yaml"], "tests": cases}
    (folder / "tests.yaml").write_text(yaml.safe_dump(tests))
    programs = unpacked("prometheus", report) / "usr/bin"
    run([programs / "promtool", "test", "rules", folder / "tests.yaml"])


EXPORTED: Final = (
    'enflame_gcu_usage{busid="0000:40:00.0",host="sse-lab",minor_number="2",name="Enflame T10",'
    'pod_name="",pod_namespace="",slot="PCIE3_GPU",uuid="GCU-U53000080105"}'
)
"""A line as the vendor's exporter writes it, with the labels of its document."""


def test_the_vendors_exporter_joins_by_the_query_of_the_page(
    groups: Any, tmp_path: Path, cluster_report: Callable[[str], None]
) -> None:
    """Each container has the load of its card; the exporter may be scraped by two jobs."""
    page = (CHECKOUT / "docs/user/monitoring.md").read_text()
    [query] = re.findall(r"```\n(gcu_card_container_info[^`]*enflame_gcu_usage[^`]*)```", page)
    labels = 'node="a",UUID="{}",device="gcu2",namespace="team",pod="{}",container="main"'
    queried = {
        "input_series": [
            {"series": f"gcu_card_container_info{{{labels.format(card, pod)}}}", "values": "1x9"}
            for card, pod in (
                ("U53000080105", "one"),
                ("U53000080105", "two"),
                ("U53000080105", ""),  # while the kubelet does not answer
                ("U53000080106", "other"),
            )
        ]
        + [
            {"series": EXPORTED.replace("{", f'{{job="{job}",'), "values": "80x9"}
            for job in ("gcu-exporter", "node")
        ],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": "5m",
                "exp_samples": [
                    {"labels": f"{{{labels.format('U53000080105', pod)}}}", "value": 80}
                    for pod in ("one", "two")
                ],
            }
        ],
    }
    check(groups, [queried], tmp_path, cluster_report)


def case(series: Series, at: str, alerts: Sequence[Object]) -> Object:
    """As promtool reads it."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": each} for name, each in series.items()],
        "alert_rule_test": [{"eval_time": at, **each} for each in alerts],
    }


def silent(name: str) -> Object:
    return {"alertname": name, "exp_alerts": []}


def firing(rule: Object, fires: Fires) -> Object:
    annotations = {
        key: _LABEL.sub(lambda match: fires.labels[match[1]], text)
        for key, text in rule["annotations"].items()
    }
    alert = {
        "exp_labels": rule["labels"] | fires.labels,
        "exp_annotations": annotations | {"summary": fires.summary},
    }
    return {"alertname": rule["alert"], "exp_alerts": [alert]}


def test_alerts_name_pages_and_metrics_that_exist(groups: Any) -> None:
    exported = names()
    for rule in rules(groups).values():
        assert (CHECKOUT / rule["annotations"]["page"]).is_file()
        assert set(_METRIC.findall(rule["expr"])) - {"gcu_"} <= exported


def test_dashboards_read_metrics_that_exist(helm: Helm) -> None:
    data = helm.render(ON).one("ConfigMap", "dashboards")["data"]
    assert sorted(data) == ["gcu-cluster.json", "gcu-node.json"]
    for text in data.values():
        queried = {
            name
            for panel in json.loads(text)["panels"]
            for target in panel["targets"]
            for name in _METRIC.findall(target["expr"])
        }
        assert queried
        assert queried <= names()


@pytest.mark.parametrize("file", sorted(CHECKOUT.glob("charts/*/files/dashboards/*.json")))
def test_panels_name_each_line_and_hide_columns_of_the_scrape(file: Path) -> None:
    of_scrape = {"Time", "__name__", "job", "instance", "endpoint"}
    for panel in json.loads(file.read_text())["panels"]:
        if panel["type"] == "timeseries":
            assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
            assert panel["fieldConfig"]["defaults"]["min"] == 0, panel["title"]
        elif panel["type"] == "table":
            [organize] = panel["transformations"]
            assert of_scrape <= organize["options"]["excludeByName"].keys(), panel["title"]


def names() -> set[str]:
    """All that the programs export, with the series of histograms."""
    found = set(map(exported_name, SPECS))
    for each in SPECS:
        if isinstance(each, HistogramSpec):
            found |= {f"{each.name}_{part}" for part in ("bucket", "count", "sum")}
    return found
