"""A long life of the controller: pods come and go, nodes and slices change, some pods never fit.

`GCU_CHURN` is the number of minutes; ``make soak-controller`` sets two hours, and starts at most
one round every five seconds, so that a machine can do other work beside it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object, results
from dra_driver.model.names import CLASS_SHARED, CLASS_WHOLE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.cards import in_all_modes
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import pod_with, resource_slice

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

MINUTES: Final = float(os.environ.get("GCU_CHURN", "0.2"))
_LONG: Final = 60.0  # minutes after which a trend is more than noise
_MOST_GROWTH: Final = 4.0  # MiB an hour, of the second half: at first caches fill
_NODES: Final = 10
_CARDS: Final = range(4)
_SLICES: Final = 6
_COMING: Final = 12  # pods of one round; those of two rounds exist at a time, and all fit
_ROUND_SECONDS: Final = 5.0  # the shortest time between two rounds of a long run
_UNSERVABLE: Final = 20

Start = Callable[..., ControllerProcess]


class Churn:
    """What a round brings is drawn from a fixed seed."""

    def __init__(self, scene: Scene, nodes: Sequence[str]) -> None:
        self._scene = scene
        self._nodes = nodes
        self._draw = random.Random(17)
        self._rounds = itertools.count()
        self._labels: list[str] = []
        self._generation = 1

    def add_unservable(self) -> None:
        """Pods that ask for more cards than a node has."""
        for number in range(_UNSERVABLE):
            self._start(f"unservable-{number}", "unservable", _whole(len(_CARDS) + 1))

    def play(self) -> None:
        """New pods are served; those of the round before the last end, and a node changes."""
        label = f"round-{next(self._rounds)}"
        for number in range(_COMING):
            self._start(f"{label}-{number}", label, self._request(label))
        self._disturb()
        wait_until(lambda: len(self._bound(label)) == _COMING, PATIENCE, f"{label} bound")
        self._no_card_twice()
        self._labels.append(label)
        if len(self._labels) > 1:
            self.end(self._labels.pop(0))

    def end(self, label: str) -> None:
        """Pods at once, as there is no kubelet, then their claims."""
        for kind, *options in (("pods", "--grace-period=0", "--force"), ("resourceclaims",)):
            chosen = (f"--selector=round={label}", "--wait=false")
            self._scene.hands.kubectl("delete", kind, *chosen, *options)

    def end_all(self) -> None:
        for label in ("unservable", *self._labels):
            self.end(label)
        wait_until(
            lambda: (
                not self._scene.api.list(RESOURCE_CLAIMS, namespace=self._scene.namespace).items
            ),
            PATIENCE,
            "the claims gone",
        )

    def _request(self, label: str) -> Object:
        found = _whole(1) if self._draw.random() < 0.3 else _slices(self._draw.randint(1, _SLICES))
        if self._draw.random() < 0.5:  # one that nobody had before
            expression = f"device.driver != '{label}-{self._draw.random()}'"
            found["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
        return found

    def _start(self, name: str, label: str, request: Object) -> None:
        scope = {"namespace": self._scene.namespace, "labels": {"round": label}}
        claim = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": scope | {"name": name},
            "spec": {"devices": {"requests": [request]}},
        }
        made = pod_with(name, self._scene.namespace, name)
        made["metadata"] |= scope
        self._scene.api.create(RESOURCE_CLAIMS, claim)
        self._scene.api.create(PODS, made)

    def _disturb(self) -> None:
        node = self._draw.choice(self._nodes)
        flapping = {"metadata": {"labels": {"flaps": self._draw.choice(["yes", "no", None])}}}
        self._scene.api.patch(NODES, node, flapping)
        self._generation += 1
        again = resource_slice(node, in_all_modes(*_CARDS))
        again["spec"]["pool"]["generation"] = self._generation
        self._scene.api.patch(RESOURCE_SLICES, f"{node}-0", {"spec": again["spec"]})

    def _bound(self, label: str) -> list[Object]:
        return [
            pod
            for pod in self._scene.api.list(PODS, namespace=self._scene.namespace).items
            if pod["metadata"]["labels"]["round"] == label and pod["spec"].get("nodeName")
        ]

    def _no_card_twice(self) -> None:
        """A card is whole, or has as many slices as it may."""
        whole: Counter[tuple[str, str]] = Counter()
        slices: Counter[tuple[str, str]] = Counter()
        for claim in self._scene.api.list(RESOURCE_CLAIMS, namespace=self._scene.namespace).items:
            for result in results(claim):
                mode, _, card = result.device.partition("-")
                held = whole if mode == "whole" else slices
                held[result.pool, card] += int(result.consumed.get("slices", "1"))
        assert max(whole.values(), default=0) <= 1
        assert max(slices.values(), default=0) <= _SLICES
        assert not whole.keys() & slices.keys()


def _whole(count: int) -> Object:
    return {"name": "gcu", "exactly": {"deviceClassName": CLASS_WHOLE, "count": count}}


def _slices(count: int) -> Object:
    asked = {"requests": {"slices": str(count)}}
    return {"name": "gcu", "exactly": {"deviceClassName": CLASS_SHARED, "capacity": asked}}


def resident(process: ControllerProcess) -> float:
    """MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    [kibibytes] = re.findall(r"VmRSS:\s+(\d+) kB", status)
    return int(kibibytes) / 1024


def metrics(process: ControllerProcess) -> dict[str, float]:
    """The controller's own, without those of histograms."""
    _, text = process.probe("/metrics")
    return {
        name.removeprefix("gcu_controller_"): float(value)
        for name, value in re.findall(r"^(gcu_controller_[^ ]+) (\S+)$", text, re.MULTILINE)
    }


def entries(process: ControllerProcess) -> dict[str, float]:
    """What the queue keeps, by part."""
    return {
        name.partition('"')[2].partition('"')[0]: value
        for name, value in metrics(process).items()
        if name.startswith("queue_entries")
    }


def rounds(minutes: float) -> Iterator[float]:
    """The hours that have gone, once for each round; at least three."""
    begun = time.monotonic()
    for number in itertools.count():
        gone = time.monotonic() - begun
        if number >= 3 and gone > minutes * 60:
            return
        yield gone / 3600
        if minutes >= _LONG:
            time.sleep(max(0.0, (number + 1) * _ROUND_SECONDS - (time.monotonic() - begun)))


@pytest.mark.timeout(4 * 3600)
def test_a_long_life_leaves_nothing(
    scene: Scene, start_controller: Start, cluster_report: Callable[[str], None]
) -> None:
    nodes = scene.machines.add_many(_NODES, in_all_modes(*_CARDS))
    controller = start_controller()
    controller.wait_for_log("begins")
    churn = Churn(scene, nodes)
    churn.add_unservable()
    curve: list[tuple[float, float]] = []
    next_report = 0.0
    for hours in rounds(MINUTES):
        churn.play()
        curve.append((hours, resident(controller)))
        if hours >= next_report:
            next_report = hours + MINUTES / 60 / 50
            cluster_report(
                f"{60 * hours:6.1f} min {curve[-1][1]:7.2f} MiB {json.dumps(entries(controller))}"
            )
    assert entries(controller)["unschedulable"] == _UNSERVABLE
    churn.end_all()
    wait_until(
        lambda: not any(entries(controller).values()),
        PATIENCE,
        "the queue empty",
        seen=lambda: str(entries(controller)),
    )
    found = metrics(controller)
    assert found["faults_total"] == found["faulty_objects"] == found["waiting_pods"] == 0
    assert found["allocations_total"] >= _COMING * len(curve)
    if MINUTES >= _LONG:
        half = curve[len(curve) // 2 :]
        growth = statistics.linear_regression(*zip(*half, strict=True)).slope
        cluster_report(f"{growth:+.2f} MiB an hour")
        assert growth < _MOST_GROWTH
