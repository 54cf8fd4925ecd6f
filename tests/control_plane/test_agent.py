"""The agent beside a real API server: as a process of its own, and its requests when idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from dra_driver.agent.agent import Agent
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.slices.slices import own_slices
from dra_driver.kube.api import Api
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import EVENTS, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import ClaimRef, Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.agent_node import Place, register
from tests.control_plane.driver import Driver
from tests.control_plane.objects import claim
from tests.control_plane.program_process import ProgramProcess
from tests.control_plane.tapped import Tapped
from tests.unit.kubelet_api import fake_kubelet

pytestmark = pytest.mark.control_plane

CARDS = ("0000:0d:00.0", "0000:0e:00.0")


@pytest.fixture
def place(
    control_plane: Cluster,
    driver: Driver,
    api: Client,
    short_folder: Path,
) -> Iterator[Place]:
    found = Place.make(control_plane, driver, short_folder, CARDS)
    yield found
    for each in api.list(RESOURCE_SLICES, field_selector=own_slices(found.node)).items:
        api.delete(RESOURCE_SLICES, each["metadata"]["name"])
    api.delete(NODES, found.node)


@pytest.fixture
def start(place: Place) -> Iterator[Callable[[], ProgramProcess]]:
    started: list[ProgramProcess] = []

    def begin() -> ProgramProcess:
        started.append(place.process())
        return started[-1]

    yield begin
    for process in started:
        process.end()
    print((place.root / "agent.log").read_text())  # shown by pytest when the test failed


def slices(api: Client, place: Place) -> tuple[Object, ...]:
    return api.list(RESOURCE_SLICES, field_selector=own_slices(place.node)).items


def allocated(api: Client, place: Place, namespace: str, name: str) -> ClaimRef:
    """A claim that has the first card, as our controller would have written it."""
    made = api.create(RESOURCE_CLAIMS, claim(name, namespace))
    result = {
        "request": "gcu",
        "driver": DRIVER,
        "pool": f"{DRIVER}/{place.node}",
        "device": "whole-0000-0d-00-0",
    }
    made["status"] = {"allocation": {"devices": {"results": [result]}}}
    api.replace(RESOURCE_CLAIMS, made, subresource="status")
    return ClaimRef(namespace, name, made["metadata"]["uid"])


def test_from_start_to_end(
    place: Place, api: Client, start: Callable[[], ProgramProcess], namespace: str
) -> None:
    process = start()
    process.wait_for_log("serving on")
    register(place, process)
    assert process.probe("/healthz") == (200, "ok")
    [published] = slices(api, place)
    names = [device["name"] for device in published["spec"]["devices"]]
    assert {"whole-0000-0d-00-0", "whole-0000-0e-00-0"} <= set(names)
    ref = allocated(api, place, namespace, "one")
    reply = fake_kubelet.prepare_v1(place.sockets.service, ref)
    assert reply.claims[ref.uid].error == ""
    assert process.stop() == 0
    assert not place.sockets.service.exists()
    assert not place.sockets.registration.exists()
    assert process.log().rstrip().endswith("stopped")
    assert slices(api, place) == (published,)
    again = start()
    register(place, again)
    assert fake_kubelet.prepare_v1(place.sockets.service, ref) == reply
    # Not even an empty write: that would show in managedFields.
    assert slices(api, place) == (published,)
    unprepared = fake_kubelet.unprepare_v1(place.sockets.service, ref)
    assert unprepared.claims[ref.uid].error == ""
    assert again.stop() == 0


def test_readiness_tells_the_truth(
    place: Place, api: Client, start: Callable[[], ProgramProcess]
) -> None:
    place.machine.set_machine(driverLoaded=False)
    process = start()

    def wait_unready(text: str) -> None:
        def told() -> bool:
            status, body = process.probe("/readyz")
            return status == 503 and text in body

        wait_until(told, PATIENCE, f"not ready: {text}", seen=process.log)

    process.wait_for_log("probes on port")
    wait_unready("the GCU kernel driver is not loaded")
    assert slices(api, place) == ()
    place.machine.set_machine(driverLoaded=True)
    wait_unready("waiting for the kubelet to register the driver")
    fake_kubelet.notify(place.sockets.registration, registered=False, error="too new")
    wait_unready("the kubelet refused to register gcu.enflame.com: too new")
    register(place, process)
    assert process.probe("/healthz") == (200, "ok")
    wait_until(lambda: slices(api, place), PATIENCE, "the slices")


def test_a_node_that_does_not_serve_is_told_on_the_node(
    place: Place, api: Client, start: Callable[[], ProgramProcess]
) -> None:
    place.machine.set_machine(driverLoaded=False)
    start()

    def told() -> list[str]:
        return [
            each["note"]
            for each in api.list(EVENTS, namespace="default").items
            if each["reason"] == "GcuNotServing" and each["regarding"]["name"] == place.node
        ]

    [note] = wait_until(told, PATIENCE, "an event on the node")
    assert "kernel driver is not loaded" in note


def test_a_tool_that_hangs_does_not_hold_up_the_end(
    place: Place, start: Callable[[], ProgramProcess]
) -> None:
    called = place.root / "called"
    place.machine.efsmi_path.write_text(f"#!/bin/sh\ntouch {called}\nexec sleep 600\n")
    process = start()
    wait_until(called.exists, PATIENCE, "a call of efsmi", seen=process.log)
    assert "the agent is starting" in process.probe("/readyz")[1]
    assert process.probe("/healthz") == (200, "ok")
    assert process.stop() == 0


def test_an_idle_agent_has_one_watch_and_nothing_else(place: Place, api: Client) -> None:
    """While it looks at its cards all the time; then a change costs what it must."""
    client = connect(place.kubeconfig, effects=Effects(), user_agent="tests/1")
    tapped = Tapped(client)
    looks = {"presence_interval": 0.05, "inventory_interval": 0.1, "reconcile_interval": 0.2}
    settings = AgentSettings.model_validate({**place.settings, **looks})
    agent = Agent(settings, cast("Api", tapped), effects=Effects())
    agent.start()
    try:
        wait_until(place.sockets.registration.exists, PATIENCE, "the registration socket")
        fake_kubelet.notify(place.sockets.registration, registered=True)
        wait_until(
            lambda: agent.ready() is None, PATIENCE, "ready", seen=lambda: str(agent.ready())
        )
        wait_until(lambda: "create events" in tapped.requests, PATIENCE, "the event")
        assert sorted(tapped.requests) == [
            "create events",  # the serving mode
            "create resourceslices",
            "create resourceslices",  # after a dry run
            "get nodes",  # its container runtime
            "get nodes",
            "list resourceslices",
            "list resourceslices",  # slices of the hidden form, once
            "server_version",
            "watch resourceslices",
        ]
        tapped.requests.clear()
        before = len(place.machine.record())
        wait_until(
            lambda: len(place.machine.record()) > before + 12, PATIENCE, "looks at the cards"
        )
        assert tapped.requests == []
        place.machine.set_card(CARDS[0], health=False)
        wait_until(lambda: "unhealthy" in str(slices(api, place)), PATIENCE, "the taint")
        wait_until(lambda: "create events" in tapped.requests, PATIENCE, "the event")
        assert sorted(tapped.requests) == ["create events", "get nodes", "replace resourceslices"]
    finally:
        agent.stop()
        client.close()
