"""The start of the agent: what it waits for, what it recovers before it serves. And its end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from prometheus_client.exposition import generate_latest

from dra_driver.agent.events import EventReporter
from dra_driver.model.effects import Point
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiError
from tests.cluster.waiting import wait_until
from tests.unit.agent.node import CARDS, Node
from tests.unit.agent.recorder import ListRecorder
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.kubelet_api.callers import Passing
from tests.unit.node.damage import append_torn
from tests.unit.node.journals import prepared

FILE = "gcu.enflame.com-claim-uid-one.json"


def test_nothing_is_served_before_recovery_is_over(node: Node) -> None:
    """After a reboot: CDI files gone, other minors; the first look at the cards comes before."""
    served: dict[Point, bool] = {}

    def look(point: Point) -> None:
        served.setdefault(point, node.sockets.service.exists())

    first = node.started()
    node.prepare(node.api.add("one", card=0))
    first.stop()
    (node.cdi / FILE).unlink()
    node.machine.reboot(order=tuple(reversed(CARDS)))
    effects = Passing(look)
    node.started(effects)
    assert '"ENFLAME_VISIBLE_DEVICES=1"' in node.files()[FILE]
    order = [Point.EFSMI_CALL, Point.JOURNAL_COMPACT_RENAME, Point.CDI_WRITE, Point.SOCKET_BIND]
    assert sorted(order, key=effects.seen.index) == order
    assert not any(served[point] for point in order)


def test_a_state_folder_that_cannot_be_used_is_waited_for(node: Node) -> None:
    """It is mended while the agent tries."""
    node.state.write_text("a file is in the way")
    agent = node.agent()
    agent.start()
    reason = f"the journal {node.state} cannot be used: Not a directory"
    wait_until(lambda: str(agent.ready()).startswith(reason), 60.0, "the reason")
    assert not node.sockets.service.exists()
    assert agent.live() is None
    node.state.unlink()
    assert agent._startup.done.wait(60)
    node.prepare(node.api.add("one", card=0))


def test_a_second_attempt_to_recover_knows_what_the_journal_lost(node: Node) -> None:
    """Its last record, that the claim is prepared, and the CDI files are not there at first: a
    container may be running with the claim, so it must not be taken for one never answered."""
    node.started()
    node.prepare(node.api.add("one", card=0))
    node.stop()
    journal = node.state / "journal"
    records = journal.read_bytes().rstrip(b"\0")
    journal.write_bytes(records[:-1] + b"?")
    folder = node.cdi.rename(node.root / "elsewhere")
    node.cdi.touch()
    agent = node.agent()
    agent._cards.refresh()
    with pytest.raises(CdiError):
        agent._recover()
    node.cdi.unlink()
    folder.rename(node.cdi)
    agent._recover()
    assert FILE in node.files()


@pytest.mark.parametrize(
    ("lost", "reported"),
    [
        (
            ("state",),
            ["GcuJournalRebuilt the journal was missing and was rebuilt from 1 CDI file"],
        ),
        (("state", "cdi"), []),
        (("cdi",), []),
        ((), []),
    ],
    ids=["the journal", "the journal and the CDI files", "the CDI files", "nothing"],
)
def test_a_journal_that_is_rebuilt_from_cdi_files_is_told(
    node: Node, lost: Sequence[str], reported: list[str]
) -> None:
    node.started()
    node.prepare(node.api.add("one", card=0))
    node.stop()
    for each in lost:
        shutil.rmtree({"state": node.state, "cdi": node.cdi}[each])
    agent, recorder = node.agent(), ListRecorder()
    agent._cards.refresh()
    agent._context.event_reporter = EventReporter(recorder, "n")
    agent._recover()
    assert [line.partition("; ")[0] for line in recorder.lines] == reported


def test_a_kubelet_whose_folders_come_late_is_waited_for(node: Node) -> None:
    node.sockets.registration.parent.rmdir()
    agent = node.agent()
    agent.start()
    wait_until(lambda: "plugins_registry" in str(agent.ready()), 60.0, "the reason")
    node.sockets.registration.parent.mkdir()
    assert agent._startup.done.wait(60)
    fake_kubelet.notify(node.sockets.registration, registered=True)


def test_a_boot_before_udev_is_done(node: Node) -> None:
    """A container that started without ``/dev/gcuctl`` would never get it."""
    node.started()
    node.stop()
    node.machine.reboot()
    control = node.machine.root / "dev/gcuctl"
    control.unlink()
    node.started()
    ref = node.api.add("one", card=0)
    refused = node.prepare(ref).error
    assert "card 0000:0d:00.0 has no /dev/gcuctl yet, as cards of model S60 have" in refused
    assert not (node.cdi / FILE).exists()
    control.touch()
    node.prepare(ref)
    assert "/dev/gcuctl" in node.files()[FILE]


def test_drs_mode_of_somebody_else_stays_where_the_last_record_was_not_written(node: Node) -> None:
    """Power was lost while a record was written: nobody was answered by it, so nothing is lost."""
    node.started()
    node.prepare(node.api.add("one", card=1))
    node.stop()
    node.machine.efsmi("-i", "0", "--drs", "on")
    append_torn(node.state, prepared(2))
    agent = node.started()
    assert node.machine.card(CARDS[0]).virtualization == "DRS"
    assert set(agent._cards.foreign) == {PciAddress.parse(CARDS[0])}
    assert FILE in node.files()


def test_a_scrape_before_recovery_hides_no_loss(node: Node) -> None:
    """The probes' port serves metrics before the journal is opened."""
    node.started()
    node.stop()
    node.machine.efsmi("-i", "0", "--drs", "on")
    (node.state / "journal").unlink()
    effects = Passing()
    agent = node.agent(effects)
    generate_latest(agent.registry)
    assert effects.seen == []
    agent.start()
    assert agent._startup.done.wait(60), agent.ready()
    assert node.machine.card(CARDS[0]).virtualization == "Disable"
    assert 'gcu_agent_claims{state="prepared"} 0.0' in generate_latest(agent.registry).decode()


def test_it_stops_in_time_though_a_call_does_not_end(node: Node) -> None:
    busy, over, came_back = (threading.Event() for _ in range(3))

    def hang(point: Point) -> None:
        if point is Point.CDI_WRITE:
            busy.set()
            over.wait(60)
            came_back.set()

    agent = node.started(Passing(hang))
    ref = node.api.add("one", card=0)
    with ThreadPoolExecutor(1) as kubelet:
        call = kubelet.submit(node.prepare, ref)
        assert busy.wait(60)
        agent.stop(within=0.5)
        assert not came_back.is_set(), "the call is still under way"
        over.set()
        assert isinstance(call.exception(60), grpc.RpcError)


def test_a_stopped_agent_leaves_no_socket_and_no_thread(node: Node) -> None:
    agent = node.started()
    agent.stop()
    assert not node.sockets.service.exists()
    assert not node.sockets.registration.exists()
    assert "ended unexpectedly" in str(agent.live())
    node.started()
    fake_kubelet.get_info(node.sockets.registration)
