"""A real agent on hardware that hangs, is missing, or comes back, and on a damaged disk."""

from __future__ import annotations

import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dra_driver.kube.resources import EVENTS
from dra_driver.model.names import TAINT_UNHEALTHY
from tests.cluster.waiting import wait_until
from tests.kill.grants import CARDS, DIVIDED, FOREIGN, FREE, TAKEN, Kind, wanted
from tests.kill.node import Node
from tests.kill.outside import await_published, check

pytestmark = pytest.mark.control_plane

_LOOKS = {"presence-interval": 0.5, "inventory-interval": 1, "reconcile-interval": 1}
_HUNG_AFTER = {"efsmi-timeout": 5}
_SECONDS = 60.0


def ills(node: Node) -> Counter[tuple[str, str, str]]:
    """Card, value and effect of the taint ``unhealthy``, and on how many devices it is."""
    return Counter(
        (device["attributes"]["card"]["string"], taint["value"], taint["effect"])
        for each in node.slices()
        for device in each["spec"].get("devices", ())
        for taint in device.get("taints", ())
        if taint["key"] == TAINT_UNHEALTHY
    )


def await_ills(node: Node, *expected: tuple[str, str, str]) -> None:
    """Return when these cards are ill, each on its three devices, and no other."""
    wanted_now = Counter(dict.fromkeys(expected, 3))
    wait_until(
        lambda: ills(node) == wanted_now,
        _SECONDS,
        f"{wanted_now}",
        seen=lambda: f"{ills(node)}\n{node.log()[-3000:]}",
    )


def events(node: Node, reason: str) -> list[str]:
    """What is told about the Node for that reason."""
    found = node.api.list(EVENTS, namespace="default").items
    return [
        each["note"]
        for each in found
        if (each["reason"], each["regarding"].get("name")) == (reason, node.name)
    ]


def await_event(node: Node, reason: str, text: str) -> None:
    """Return when that is told; events are written beside everything else."""
    wait_until(
        lambda: any(text in note for note in events(node, reason)),
        _SECONDS,
        f"an event {reason}",
        seen=lambda: f"{events(node, reason)}\n{node.log()[-3000:]}",
    )


def metrics(node: Node) -> str:
    """What the agent that was started last serves to Prometheus."""
    port = re.findall(r"probes on port (\d+)", node.log())[-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


@contextmanager
def without_efsmi(node: Node) -> Iterator[None]:
    away = node.machine.efsmi_path.with_name("away")
    node.machine.efsmi_path.rename(away)
    try:
        yield
    finally:
        away.rename(node.machine.efsmi_path)


def looking(node: Node, **flags: object) -> None:
    """Let an agent look at the hardware all the time."""
    node.down()
    node.up({**_LOOKS, **_HUNG_AFTER, **{k.replace("_", "-"): v for k, v in flags.items()}})


def await_examined(node: Node) -> None:
    """Return when the profiles, which were lost as well, are known again, and the free card that
    was switched to DRS mode to list them is switched back. What is published does not tell: devices
    keep their profiles meanwhile."""
    await_published(node)
    kept = node.state / "profiles.json"
    wait_until(kept.exists, _SECONDS, f"{kept.name} written again", seen=node.log)
    free = [str(card) for card in set(CARDS) - {grant.card for grant in node.held.values()}]
    wait_until(
        lambda: all(node.machine.card(card).virtualization == "Disable" for card in free),
        _SECONDS,
        f"none of {free} in DRS mode",
        seen=node.log,
    )


def test_one_card_that_hangs_costs_no_other(node: Node) -> None:
    """Nor the agent, also when that is started while it hangs; the card is well again by itself."""
    node.serve_others()
    looking(node)
    await_published(node)
    node.machine.set_fault("card-hangs", card=str(TAKEN))
    await_ills(node, (str(TAKEN), "efsmi", "NoSchedule"))
    await_event(node, "GcuCardUnhealthy", f"card {TAKEN}: efsmi does not answer for it")
    for kind in (Kind.WHOLE, Kind.SHARED, Kind.DRS_BESIDE):
        ref = node.add(wanted(kind))
        assert node.kubelet.prepare(ref) == "", kind
        check(node)
    looking(node)
    for ref in list(node.held)[-3:]:
        assert node.kubelet.prepare(ref) == ""
        assert node.kubelet.unprepare(ref) == ""
        del node.held[ref]
    check(node)
    told = metrics(node)
    assert 'gcu_agent_efsmi_duration_seconds_count{command="query",outcome="hung"}' in told
    node.machine.clear_faults()
    await_ills(node)
    await_published(node)


def test_a_tool_that_fails_altogether_is_a_taint_on_all_cards(node: Node) -> None:
    """For which pods are evicted here, as a setting says."""
    node.serve_others()
    looking(node, evict_on="efsmi")
    await_published(node)
    everyone = [(str(card), "efsmi", "NoExecute") for card in (*CARDS, FOREIGN)]
    with without_efsmi(node):
        await_ills(node, *everyone)
        ref = node.add(wanted(Kind.WHOLE))
        assert node.kubelet.prepare(ref) == "", "what needs no tool goes on"
        looking(node, evict_on="efsmi")
        await_ills(node, *everyone)
        assert node.kubelet.unprepare(ref) == ""
        del node.held[ref]
    await_ills(node)
    check(node)


def test_error_records_and_the_driver_gone(node: Node) -> None:
    node.serve_others()
    looking(node, error_limit=5)
    await_published(node)
    node.machine.set_card(str(FREE), errors={"SIP Error": 6})
    await_ills(node, (str(FREE), "errors", "NoSchedule"))
    await_event(node, "GcuCardErrors", "error records grew from 0 to 6")
    node.machine.set_card(str(FREE), errors={"SIP Error": 0})
    await_ills(node)
    node.machine.set_machine(driverLoaded=False)
    wait_until(lambda: len(ills(node)) == len(CARDS) + 1, _SECONDS, "all ill", seen=node.log)
    node.machine.set_machine(driverLoaded=True)
    await_ills(node)
    check(node)


def test_a_damaged_journal_is_told_and_counted(node: Node) -> None:
    node.serve_others()
    node.down()
    journal = node.state / "journal"
    content = bytearray(journal.read_bytes())
    content[100] ^= 0xFF
    journal.write_bytes(content)
    node.up()
    check(node)
    kept = node.state / "journal.damaged-000001"
    assert kept.read_bytes() == bytes(content)
    await_event(node, "GcuJournalDamaged", str(kept))
    assert "gcu_agent_journal_quarantines_total 1.0" in metrics(node)


def test_a_folder_that_is_lost_under_a_running_agent(node: Node) -> None:
    """And CDI files with it: the running agent knows all, the next one asks the claims."""
    node.serve_others()
    before = node.files()
    for path in node.state.iterdir():
        if path.is_file():
            path.unlink()
    ref = node.add(wanted(Kind.DRS))
    assert node.kubelet.prepare(ref) == ""
    assert node.kubelet.unprepare(ref) == ""
    del node.held[ref]
    assert node.files() == before
    check(node)


def test_all_records_lost_at_once(node: Node) -> None:
    """No pod waits for it; the instances are foreign, until a person does what the event says."""
    node.serve_others()
    node.down()
    for folder in (node.state, node.cdi):
        for path in folder.iterdir():
            if path.is_file():
                path.unlink()
    node.up(_LOOKS)
    index = node.machine.card(str(DIVIDED)).efsmi_index
    await_event(node, "GcuCardForeign", f"`efsmi -i {index} --drs --destroy-instance ID`")
    [divided] = [ref for ref, grant in node.held.items() if grant.card == DIVIDED]
    assert f"card {DIVIDED} " in node.kubelet.prepare(divided)
    for ref in list(node.held):
        assert node.kubelet.unprepare(ref) == ""
        del node.held[ref]
    [left] = node.machine.card(str(DIVIDED)).instances
    node.by_hand(DIVIDED, "--destroy-instance", str(left.id))
    node.by_hand(DIVIDED, "off")
    await_examined(node)
    check(node)
