"""The agent as a whole, without an API server: the order of its start, and what it serves."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from prometheus_client.exposition import generate_latest

from dra_driver.agent.cards import node_hardware as hardware
from dra_driver.agent.events import DEVICE_FAILING
from dra_driver.hardware.vendor_files import VendorMounts
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.effects import Effects, Point
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiError
from dra_driver.node.claims.failures import TRIES
from tests.cluster.waiting import wait_until
from tests.unit.agent.node import CARDS, Node
from tests.unit.hanging import reads_that_hang, time_is_up_when
from tests.unit.kubelet_api import fake_kubelet
from tests.unit.node.damage import append_torn
from tests.unit.node.drs_world import instance, slices
from tests.unit.node.journals import prepared

FILE = "gcu.enflame.com-claim-uid-one.json"


class Watching(Effects):
    """Remembers each effect, and calls `look` before it."""

    def __init__(self, look: Callable[[Point], None] = lambda _: None) -> None:
        self.seen: list[Point] = []
        self._look = look

    def before(self, point: Point) -> None:
        self.seen.append(point)
        self._look(point)


def prepare(node: Node, claim: Object) -> str:
    """The error, empty for success."""
    ref = ClaimRef.of(claim)
    node.api.claims[ref.name] = claim
    return str(fake_kubelet.prepare_v1(node.sockets.service, ref).claims[ref.uid].error)


def test_a_claim_on_a_running_node(node: Node) -> None:
    agent = node.started()
    ref = node.api.add("one", card=0)
    reply = fake_kubelet.prepare_v1(node.sockets.service, ref)
    [device] = reply.claims[ref.uid].devices
    assert device.device_name == "whole-0000-0d-00-0"
    assert '"ENFLAME_VISIBLE_DEVICES=0"' in node.files()[FILE]
    assert agent.live() is None
    fake_kubelet.unprepare_v1(node.sockets.service, ref)
    assert node.files() == {}


def test_nothing_is_served_before_recovery_is_over(node: Node) -> None:
    """After a reboot: CDI files gone, other minors; the first look at the cards comes before."""
    served: dict[Point, bool] = {}

    def look(point: Point) -> None:
        served.setdefault(point, node.sockets.service.exists())

    first = node.started()
    fake_kubelet.prepare_v1(node.sockets.service, node.api.add("one", card=0))
    first.stop()
    (node.cdi / FILE).unlink()
    node.machine.reboot(order=tuple(reversed(CARDS)))
    effects = Watching(look)
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
    reason = f"the journal {node.state} cannot be used: File exists"
    wait_until(lambda: str(agent.ready()).startswith(reason), 60.0, "the reason")
    assert not node.sockets.service.exists()
    assert agent.live() is None
    node.state.unlink()
    assert agent._startup.done.wait(60)
    fake_kubelet.prepare_v1(node.sockets.service, node.api.add("one", card=0))


def test_a_second_attempt_to_recover_knows_what_the_journal_lost(node: Node) -> None:
    """Its last record, that the claim is prepared, and the CDI files are not there at first: a
    container may be running with the claim, so it must not be taken for one never answered."""
    node.started()
    fake_kubelet.prepare_v1(node.sockets.service, node.api.add("one", card=0))
    node.agents.pop().stop()
    journal = node.state / "journal"
    records = journal.read_bytes().rstrip(b"\0")
    journal.write_bytes(records[:-1] + b"?")
    folder = node.cdi.rename(node.root / "elsewhere")
    node.cdi.touch()
    agent = node.agent()
    agent._cards.refresh()
    with pytest.raises(CdiError):
        agent._bring_up.recover()
    node.cdi.unlink()
    folder.rename(node.cdi)
    agent._bring_up.recover()
    assert FILE in node.files()


def test_a_kubelet_whose_folders_come_late_is_waited_for(node: Node) -> None:
    node.sockets.registration.parent.rmdir()

    def look(point: Point) -> None:
        # The service's socket is taken back each time, as the other cannot be made.
        if point is Point.SOCKET_BIND and "plugins_registry" in str(agent.ready()):
            node.sockets.registration.parent.mkdir(exist_ok=True)

    agent = node.agent(Watching(look))
    agent.start()
    assert agent._startup.done.wait(60)
    fake_kubelet.notify(node.sockets.registration, registered=True)


def test_without_hardware_pods_can_still_end(node: Node) -> None:
    node.started()
    ref = node.api.add("one", card=0)
    fake_kubelet.prepare_v1(node.sockets.service, ref)
    node.agents.pop().stop()
    node.machine.set_machine(driverLoaded=False)
    agent = node.started()
    fake_kubelet.notify(node.sockets.registration, registered=True)
    assert "kernel driver is not loaded" in str(agent.ready())
    assert agent.live() is None
    new = node.api.add("two", card=1)
    refused = fake_kubelet.prepare_v1(node.sockets.service, new).claims[new.uid].error
    assert "no usable card 0000:0e:00.0: the GCU kernel driver is not loaded" in refused
    reply = fake_kubelet.unprepare_v1(node.sockets.service, ref)
    assert reply.claims[ref.uid].error == ""
    assert node.files() == {}


def test_without_an_api_server_running_pods_lack_nothing(node: Node) -> None:
    node.started()
    ref = node.api.add("one", card=0)
    first = fake_kubelet.prepare_v1(node.sockets.service, ref)
    node.agents.pop().stop()
    node.api.away = True
    agent = node.started()
    fake_kubelet.notify(node.sockets.registration, registered=True)
    assert fake_kubelet.prepare_v1(node.sockets.service, ref) == first
    new = node.api.add("two", card=1)
    refused = fake_kubelet.prepare_v1(node.sockets.service, new).claims[new.uid].error
    assert "the API server did not answer" in refused
    assert fake_kubelet.unprepare_v1(node.sockets.service, ref).claims[ref.uid].error == ""
    assert agent.live() is None


def test_readiness_names_what_is_still_missing(node: Node) -> None:
    agent = node.agent()
    assert agent.ready() == "the agent is starting"
    agent = node.started()
    assert agent.ready() == "waiting for the kubelet to register the driver"
    fake_kubelet.notify(node.sockets.registration, registered=False, error="another version")
    assert "the kubelet refused to register gcu.enflame.com: another version" in str(agent.ready())
    fake_kubelet.notify(node.sockets.registration, registered=True)
    assert "the API server did not answer" in str(agent.ready())


def test_the_kubelet_hears_of_a_lost_card_at_once(node: Node) -> None:
    """The list holds what a claim holds, whether the API server answers or not."""
    agent = node.started()
    fake_kubelet.prepare_v1(node.sockets.service, node.api.add("one", card=0))
    with fake_kubelet.watch_v1alpha1(node.sockets.service) as lists:
        [well] = next(lists).devices
        assert (well.device.device_name, well.health) == ("whole-0000-0d-00-0", 1)
        node.machine.lose_card(CARDS[0])
        agent._cards.tick()
        [lost] = next(lists).devices
        assert (lost.device, lost.health) == (well.device, 2)
        assert lost.message == "card 0000:0d:00.0: gone from the PCI bus"


def test_a_card_that_hangs_is_ill_and_the_agent_serves(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also an agent that starts while it hangs, which knows nothing of that card."""
    time_is_up_when(monkeypatch, reads_that_hang(node.machine))
    agent = node.started()
    ref = node.api.add("one", card=1)
    fake_kubelet.prepare_v1(node.sockets.service, ref)
    node.machine.set_fault("card-hangs", card=CARDS[1])
    with fake_kubelet.watch_v1alpha1(node.sockets.service) as lists:
        assert [each.health for each in next(lists).devices] == [1]
        agent._cards.refresh()
        [ill] = next(lists).devices
        assert (ill.device.device_name, ill.health) == ("whole-0000-0e-00-0", 2)
        assert "efsmi does not answer for it" in ill.message
    assert agent._cards.problem is None
    assert agent.live() is None
    agent.stop()
    agent = node.started()
    assert agent._cards.problem is None
    assert agent.live() is None
    other = node.api.add("two", card=0)
    for each in (other, ref):
        assert fake_kubelet.prepare_v1(node.sockets.service, each).claims[each.uid].error == ""
        reply = fake_kubelet.unprepare_v1(node.sockets.service, each)
        assert reply.claims[each.uid].error == ""
    assert node.files() == {}


def test_an_agent_whose_socket_is_gone_is_not_alive(node: Node) -> None:
    agent = node.started()
    node.sockets.service.unlink()
    assert agent.live() is None, "a probe does not wait for a call"
    agent._dra._plugin._self_check.check()
    assert f"the agent does not answer on {node.sockets.service}" in str(agent.live())


def test_a_device_on_which_nothing_can_be_made_is_told_on_the_node(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = node.started()
    told: list[str] = []

    def record(_: Object, *, reason: str, note: str, **__: object) -> float:
        if reason == DEVICE_FAILING:  # on a slow machine the node is told to serve nothing, too
            told.append(note)
        return 0.0

    monkeypatch.setattr(agent._recorder, "record", record)
    node.machine.set_fault("create-fails")
    failing = instance("one", 0, 1)
    for _ in range(TRIES):
        assert told == []
        assert "create-fails" in prepare(node, failing)
    [line] = told
    assert line.startswith("device drs-0000-0d-00-0 takes no new claim for now: ")
    assert "create-fails" in line


def test_slices_are_counted_by_what_stands_published(node: Node) -> None:
    """The rules say six: a card that is held keeps the number that its claims were given of."""
    agent = node.started()
    assert "of the 6 slices" in prepare(node, slices("one", 0, 8))
    shared = {"name": "shared-0000-0d-00-0", "capacity": {"slices": {"value": "8"}}}
    spec = {"nodeName": "n1", "pool": {"generation": 1}, "devices": [shared]}
    published = {"metadata": {"name": "s", "uid": "u"}, "spec": spec}
    agent._dra._publisher.published.on_replace([published])
    assert prepare(node, slices("one", 0, 8)) == ""


def test_slices_are_counted_by_what_was_promised_until_it_is_known_what_is_published(
    node: Node, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("sliceCount: 12")
    node.started(card_rules=rules)
    assert prepare(node, slices("one", 0, 8)) == ""
    node.agents.pop().stop()
    rules.write_text("sliceCount: 6")
    node.started(card_rules=rules)
    assert prepare(node, slices("two", 0, 4)) == ""
    assert "of the 12 slices" in prepare(node, slices("three", 0, 1))


def test_an_agent_without_one_of_its_threads_is_not_alive(node: Node) -> None:
    agent = node.started()
    dra = agent._dra

    def end_the_plugin(timeout: float) -> None:
        dra._plugin.stop(grace=0)
        dra._plugin._watcher.join(timeout)

    parts: dict[str, Callable[[float], None]] = {
        "the readiness reporter": agent._readiness.stop,
        "the writer of events": agent._recorder.stop,
        "the card cache": agent._cards.stop,
        "the reconcile loop": agent._reconcile_loop.stop,
        "the thread of the kubelet plugin": end_the_plugin,
        "the publisher": dra._publisher.stop,
        "the writer of claim statuses": dra._statuses.stop,
    }
    assert agent.live() is None
    for name, end in reversed(parts.items()):
        end(60)
        assert agent.live() == f"{name} ended unexpectedly; see the log"


def test_an_agent_that_sees_the_files_of_an_old_driver_is_started_anew(
    node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mountinfo = tmp_path / "mountinfo"
    line = f"63 43 254:0 {{}} {node.machine.root} rw - ext4 /dev/vda rw\n"
    mountinfo.write_text(line.format("/machine"))
    monkeypatch.setattr(
        hardware, "VendorMounts", functools.partial(VendorMounts, mountinfo=mountinfo)
    )
    agent = node.started()
    assert agent.live() is None
    mountinfo.write_text(line.format("/machine//deleted"))
    told = f"{node.machine.root} was replaced on the node, and this container still has the old one"
    assert (agent.live(), agent.ready()) == (told, told)


def test_drs_mode_that_a_damaged_journal_does_not_know_any_more_is_ended(node: Node) -> None:
    """It is taken for ours then: else the card would wait for a person."""
    node.started()
    node.agents.pop().stop()
    (node.state / "journal").write_bytes(b"not a journal at all")
    node.machine.efsmi("-i", "0", "--drs", "on")
    assert node.machine.card(CARDS[0]).virtualization == "DRS"
    agent = node.started()
    assert node.machine.card(CARDS[0]).virtualization == "Disable"
    assert agent._cards.foreign == {}


def test_drs_mode_of_somebody_else_stays_where_the_last_record_was_not_written(node: Node) -> None:
    """Power was lost while a record was written: nobody was answered by it, so nothing is lost."""
    node.started()
    fake_kubelet.prepare_v1(node.sockets.service, node.api.add("one", card=1))
    node.agents.pop().stop()
    node.machine.efsmi("-i", "0", "--drs", "on")
    append_torn(node.state, prepared(2))
    agent = node.started()
    assert node.machine.card(CARDS[0]).virtualization == "DRS"
    assert set(agent._cards.foreign) == {PciAddress.parse(CARDS[0])}
    assert FILE in node.files()


def test_a_scrape_before_recovery_hides_no_loss(node: Node) -> None:
    """The probes' port serves metrics before the journal is opened."""
    node.started()
    node.agents.pop().stop()
    node.machine.efsmi("-i", "0", "--drs", "on")
    (node.state / "journal").unlink()
    effects = Watching()
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

    agent = node.started(Watching(hang))
    ref = node.api.add("one", card=0)
    with ThreadPoolExecutor(1) as kubelet:
        call = kubelet.submit(fake_kubelet.prepare_v1, node.sockets.service, ref)
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
