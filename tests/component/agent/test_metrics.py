"""The metrics of a whole agent."""

from __future__ import annotations

from prometheus_client.exposition import generate_latest

from dra_driver.agent.agent import Agent
from tests.generated_docs import AGENT_METRICS
from tests.unit.agent.node import Node


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
