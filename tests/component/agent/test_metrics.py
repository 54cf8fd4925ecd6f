"""What Prometheus is told: of calls, of the tool, of the journal, and of what is published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from dra_driver.agent.agent import Agent
from dra_driver.agent.card_metrics import NodeCollector
from dra_driver.agent.context import AgentContext
from dra_driver.agent.metrics import AgentMetrics
from dra_driver.agent.slices.device_layout import DevicesSource
from dra_driver.kubelet_api.dra.service import DraServicer
from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError, JournalError, Refused
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice, record
from tests.generated_docs import AGENT_METRICS
from tests.unit.agent.node import Node
from tests.unit.kubelet_api.callers import prepare, unprepare
from tests.unit.kubelet_api.dra.handler import Handler
from tests.unit.node.claims.counted import ref
from tests.unit.node.world import hold


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_calls_of_the_kubelet(registry: CollectorRegistry) -> None:
    answers = Handler({"uid-a": (), "uid-bad": Refused("no")}, {"uid-bad": GcuError("no")})
    claims = DraServicer(answers, AgentMetrics(registry).claims, Effects())
    prepare(claims, [ref("a"), ref("bad")])
    prepare(claims, [ref("a")])
    unprepare(claims, [ref("bad")])
    prepare(claims, [])  # the liveness probe

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"gcu_agent_{name}", labels)

    assert value("request_duration_seconds_count", operation="prepare") == 2
    assert value("request_duration_seconds_count", operation="unprepare") == 1
    assert value("requests_inflight", operation="prepare") == 0
    assert value("claim_errors_total", operation="prepare", error="Refused") == 1
    assert value("claim_errors_total", operation="unprepare", error="GcuError") == 1


def test_allocate(registry: CollectorRegistry) -> None:
    metrics = AgentMetrics(registry)
    with metrics.allocating("example.com/gcu"):
        pass
    with pytest.raises(Refused), metrics.allocating("example.com/gcu"):
        raise Refused("no")

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"gcu_agent_{name}", labels)

    assert value("request_duration_seconds_count", operation="allocate") == 2
    assert value("requests_inflight", operation="allocate") == 0
    assert value("allocate_errors_total", resource="example.com/gcu", error="Refused") == 1


def test_what_ends_with_an_error_is_not_in_flight(registry: CollectorRegistry) -> None:
    broken = Handler(JournalError("the disk is gone"))
    claims = DraServicer(broken, AgentMetrics(registry).claims, Effects())
    assert prepare(claims, [ref("a")]) == {"uid-a": "the disk is gone"}
    labels = {"operation": "prepare"}
    assert registry.get_sample_value("gcu_agent_requests_inflight", labels) == 0
    errors = {"operation": "prepare", "error": "JournalError"}
    assert registry.get_sample_value("gcu_agent_claim_errors_total", errors) == 1


def device(name: str, *taints: Mapping[str, str]) -> dict[str, Any]:
    ours = {"key": "gcu.enflame.com/allocated-by", "value": "controller", "effect": "NoSchedule"}
    return {"name": name, "taints": [ours, *taints]}


ILL = {"key": "gcu.enflame.com/unhealthy", "value": "rma", "effect": "NoExecute"}
CHANGING = {"key": "gcu.enflame.com/changing", "effect": "NoSchedule"}


def collector(devices: DevicesSource, ledger: Callable[[], Ledger]) -> NodeCollector:
    used = [ContainerResources("team", "p", "main", claims=frozenset({"a"}))]
    journal = SimpleNamespace(snapshot=ledger)
    context = cast(
        "AgentContext", SimpleNamespace(cards=SimpleNamespace(latest={}), journal=journal)
    )
    return NodeCollector(context=context, devices=devices, containers=lambda: used)


def test_what_is_published_and_held(registry: CollectorRegistry) -> None:
    ledger = Ledger()
    holds: list[tuple[ClaimStep, str, tuple[PreparedDevice, ...]]] = [
        (ClaimStep.PREPARE_COMPLETED, "a", (hold(0), hold(1))),
        (ClaimStep.PREPARE_STARTED, "b", (hold(2),)),
    ]
    for kind, name, held in holds:
        ledger = ledger.apply(record(kind, ref(name), held))
    devices = [
        device("whole-0000-0d-00-0"),
        device("whole-0000-0e-00-0", ILL),
        device("shared-0000-0e-00-0", ILL, CHANGING),
        device("of-another-version"),
    ]
    registry.register(collector(lambda: devices, lambda: ledger))
    assert samples(registry) == {
        'gcu_agent_devices{health="healthy",mode="whole"} 1.0',
        'gcu_agent_devices{health="unhealthy",mode="whole"} 1.0',
        'gcu_agent_devices{health="unhealthy",mode="shared"} 1.0',
        'gcu_agent_device_taints{effect="NoExecute",key="unhealthy",value="rma"} 2.0',
        'gcu_agent_device_taints{effect="NoSchedule",key="changing",value=""} 1.0',
        'gcu_agent_claims{state="prepared"} 1.0',
        'gcu_agent_claims{state="intent"} 1.0',
        'gcu_agent_claims{state="unpreparing"} 0.0',
        'gcu_agent_claims{state="released"} 0.0',
        'gcu_agent_prepared_devices{mode="whole"} 2.0',
        'gcu_card_problem{pci_bus_id="0000:0e:00.0",problem="changing",value=""} 1.0',
        'gcu_card_problem{pci_bus_id="0000:0e:00.0",problem="unhealthy",value="rma"} 1.0',
        'gcu_card_size{mode="shared",pci_bus_id="0000:0e:00.0"} 1.0',
        'gcu_card_size{mode="whole",pci_bus_id="0000:0d:00.0"} 1.0',
        'gcu_card_size{mode="whole",pci_bus_id="0000:0e:00.0"} 1.0',
        *(
            'gcu_card_allocated{UUID="",claim="a",claim_namespace="team",device="",holder="",mode="whole",modelName="",'
            f'pci_bus_id="{card}",profile=""}} 1.0'
            for card in ("0000:0d:00.0", "0000:0e:00.0")
        ),
        *(
            'gcu_card_container_info{UUID="",claim="a",container="main",device="",mode="whole",modelName="",'
            f'namespace="team",pci_bus_id="{card}",pod="p",profile=""}} 1.0'
            for card in ("0000:0d:00.0", "0000:0e:00.0")
        ),
        'gcu_node_largest_request{mode="shared"} 0.0',
        'gcu_node_largest_request{mode="whole"} 0.0',
    }


def samples(registry: CollectorRegistry) -> set[str]:
    text = generate_latest(registry).decode()
    lines = text.replace("gcu.enflame.com/", "").splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_a_journal_that_cannot_be_read_hides_only_what_is_in_it(
    registry: CollectorRegistry,
) -> None:
    def ledger() -> Ledger:
        raise JournalError("the disk is gone")

    registry.register(collector(lambda: [device("drs-0000-0d-00-0")], ledger))
    assert samples(registry) == {
        'gcu_agent_devices{health="healthy",mode="drs"} 1.0',
        'gcu_card_size{mode="drs",pci_bus_id="0000:0d:00.0"} 1.0',
    }


def test_what_is_offered_can_depend_on_the_journal_too(registry: CollectorRegistry) -> None:
    def fails() -> Any:
        raise JournalError("the disk is gone")

    registry.register(collector(fails, fails))
    assert samples(registry) == set()


def scraped(agent: Agent) -> str:
    return generate_latest(agent.registry).decode()


def test_a_whole_agent_tells_of_itself(node: Node) -> None:
    agent = node.started()
    node.prepare(node.api.add("one", card=0))
    told = scraped(agent)
    assert 'gcu_agent_claims{state="prepared"} 1.0' in told
    assert 'gcu_agent_request_duration_seconds_count{operation="prepare"} 1.0' in told
    assert 'gcu_agent_efsmi_duration_seconds_count{command="query",outcome="ok"}' in told
    assert 'gcu_agent_efsmi_duration_seconds_count{command="summary",outcome="ok"}' in told
    assert "gcu_agent_journal_quarantines_total 0.0" in told


def test_a_damaged_journal_is_counted_and_told(node: Node) -> None:
    node.started()
    node.prepare(node.api.add("one", card=0))
    node.stop()
    journal = node.state / "journal"
    journal.write_bytes(journal.read_bytes()[10:])
    agent = node.agent()
    told: list[str] = []
    agent._context.event_reporter.warning = lambda reason, note: told.append(f"{reason} {note}")  # type: ignore[method-assign]
    agent.start()
    assert agent._startup.done.wait(60)
    assert "gcu_agent_journal_quarantines_total 1.0" in scraped(agent)
    kept = node.state / "journal.damaged-000001"
    [line] = [each for each in told if each.startswith("GcuJournalDamaged")]
    assert line.endswith(f"the damaged file is {kept}")
    assert kept.exists()


def test_a_whole_agent_describes_all_its_metrics(node: Node) -> None:
    families = {
        line.split()[2].removesuffix("_total")
        for line in scraped(node.started()).splitlines()
        if line.startswith("# TYPE")
    }
    described = {each.name for each in AGENT_METRICS}
    assert {each for each in families if not each.endswith("_created")} == described
