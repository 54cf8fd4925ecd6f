"""A claim that a running and an ended pod share: kube-controller-manager reserves it for the ended
pod, takes that back, and begins again (kubernetes#141274)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import allocation
from tests.component.controller.conftest import Start
from tests.component.controller.stage import PATIENCE, Stage
from tests.control_plane.objects import whole

WRITES = 177 * 10
"""As many as were counted in ten seconds of a cluster, and here as fast as they can be written."""


class Storm:
    """Writes the claim `WRITES` times, and then 177 times a second until `stop`."""

    def __init__(self, stage: Stage, claim: str, *pods: str) -> None:
        self.count = 0
        self.reached = threading.Event()
        self._stage = stage
        self._claim = claim
        self._pods = pods
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0 if self.count < WRITES else 1 / 177):
            users = self._pods[: 2 - self.count % 2]
            self._stage.reserve(self._stage.claim(self._claim), *users)
            self.count += 1
            if self.count == WRITES:
                self.reached.set()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()


def test_a_storm_of_writes_delays_no_other_pod(stage: Stage, start_controller: Start) -> None:
    """The controller adds no write to it, and decides on other pods within two seconds, which is
    the objective of the alert `GcuDecisionsLate`."""
    stage.add_node([whole(0), whole(1)])
    controller = start_controller()
    stage.start("both")
    stage.bind("both")
    stage.add_pod("ended", "both")
    stage.bind_to("ended", stage.node_of("both"))
    stage.set_status(PODS, "ended", {"phase": "Succeeded"})
    before = stage.claim("both")
    with closing_storm(Storm(stage, "both", "both", "ended")) as storm:
        for name in ("first", "second"):
            stage.start(name)
            stage.bind(name)
            stage.end(name)
            stage.released(name)
        assert storm.reached.wait(PATIENCE)
        stage.start("last")
        stage.bind("last")
    written = stage.writes_to("both", since=int(before["metadata"]["resourceVersion"]))
    assert len(written) == storm.count
    assert allocation(stage.claim("both")) == allocation(before)
    assert stage.events_about("both") == []
    assert controller.metric("gcu_controller_faulty_objects") == 0
    waits = "gcu_controller_decision_wait_seconds"
    assert controller.metric(f"{waits}_bucket", le="2.0") == controller.metric(f"{waits}_count")


@contextmanager
def closing_storm(storm: Storm) -> Iterator[Storm]:
    try:
        yield storm
    finally:
        storm.stop()
