"""When names stop, because kube-scheduler does not heed them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from controller.nominate.followed_names import FollowedNames
from controller.nominate.metrics import NominationMetrics
from controller.write.node_hint import NodeHint


class Names(FollowedNames):
    """Counts how often names were stopped."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.stops = 0
        super().__init__(NominationMetrics(self.registry), self._on_stopped)

    def _on_stopped(self) -> None:
        self.stops += 1

    def bound(self, followed: str) -> float | None:
        name = "gcu_controller_nominated_pods_bound_total"
        return self.registry.get_sample_value(name, {"followed": followed})


@pytest.mark.parametrize(
    ("followed", "hint"),
    [(199, NodeHint.NAME), (100, NodeHint.NAME), (99, NodeHint.AFFINITY), (0, NodeHint.AFFINITY)],
)
def test_of_200_names_half_are_followed(followed: int, hint: NodeHint) -> None:
    names = Names()
    for number in range(200):
        names.record(followed=number < followed)
    has_stopped = hint is NodeHint.AFFINITY
    assert (names.hint, names.stops) == (hint, has_stopped)
    assert names.registry.get_sample_value("gcu_controller_names_stopped") == has_stopped
    assert (names.bound("true"), names.bound("false")) == (followed, 200 - followed)


def test_a_few_names_prove_nothing() -> None:
    names = Names()
    for _ in range(199):
        names.record(followed=False)
    assert (names.hint, names.stops) == (NodeHint.NAME, 0)


def test_affinity_stays() -> None:
    names = Names()
    for number in range(600):
        names.record(followed=number >= 200)
    assert (names.hint, names.stops) == (NodeHint.AFFINITY, 1)
