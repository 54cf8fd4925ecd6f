"""What a seed of `make soak-chaos` lets happen."""

from __future__ import annotations

from itertools import pairwise

from tests.chaos.plan import Arrival, End, Fault, plan
from tests.chaos.workload import LABEL, SHAPES, Ending, Shape, Workload

SECONDS = 600.0


def test_a_seed_gives_the_same_steps_and_another_one_others() -> None:
    assert plan(1, SECONDS) == plan(1, SECONDS)
    assert plan(1, SECONDS) != plan(2, SECONDS)


def test_all_that_can_happen_happens() -> None:
    found = plan(3, SECONDS)
    arrivals = [step.workload for step in found.churn if isinstance(step, Arrival)]
    assert {each.shape for each in arrivals} == {*Shape} == SHAPES.keys()
    assert {each.ending for each in arrivals} == {*Ending}
    assert {each.fault for each in found.disturbances} == {*Fault}


def test_what_ends_has_begun() -> None:
    steps = plan(4, SECONDS).churn
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    begun: set[str] = set()
    for step in steps:
        if isinstance(step, End):
            assert step.workload.name in begun
        else:
            assert step.workload.name not in begun
            begun.add(step.workload.name)


def test_a_part_has_one_fault_at_a_time() -> None:
    for part in {fault.part for fault in Fault}:
        for node in (0, 1):
            found = [
                each
                for each in plan(5, 10 * SECONDS).disturbances
                if each.fault.part == part
                and (each.node == node or part in {"API server", "kube-scheduler", "watches"})
            ]
            assert all(one.at + one.seconds <= next_.at for one, next_ in pairwise(found))


def test_all_that_a_workload_makes_is_found_by_its_label() -> None:
    for shape, amounts in SHAPES.items():
        made = Workload("w1", shape, amounts[0], Ending.DELETED).objects("chaos")
        assert {each["metadata"]["labels"][LABEL] for each in made} == {"w1"}
        assert any(each["kind"] == "Pod" for each in made)
