"""Which worker gets which test of the clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from tests.cluster.side_by_side import TierScheduling, left_tier, tier_of


@pytest.mark.parametrize(
    ("nodeid", "tier"),
    [
        ("tests/control_plane/test_client.py::test_a", "control_plane"),
        ("tests/kill/test_disk.py::test_a[drs]", "control_plane"),
        ("tests/cluster/test_control_plane.py::test_a", "control_plane"),
        ("tests/control_plane/without_dra/test_extender.py::test_a", "control_plane"),
        ("tests/control_plane/without_taints/test_hidden_slices.py::test_a", "control_plane"),
        ("tests/control_plane/without_taints/", "control_plane"),
        ("tests/control_plane/groups/test_controller_groups.py::test_a", "control_plane"),
        ("tests/cluster/test_teardown.py::test_a", "own"),
        ("tests/e2e/test_hidden_slices.py::test_a", "own"),
        ("tests/cluster/test_nodes.py::test_a", "cluster"),
        ("tests/e2e/test_claims.py::test_a", "cluster"),
        ("tests/e2e/test_by_limits.py::test_a[with DRA-one]", "cluster"),
        ("tests/e2e/test_by_limits.py::test_a[without DRA-one]", "old_cluster"),
        ("tests/e2e/test_without_dra.py::test_a", "old_cluster"),
        ("tests/e2e/test_without_dra_cpus.py::test_a[cdi]", "old_cluster"),
        ("tests/unit/model/test_pci.py::test_a", "own"),
    ],
)
def test_the_name_says_the_tier(nodeid: str, tier: str) -> None:
    assert tier_of(nodeid) == tier


@dataclass(eq=False)
class Worker:
    """A worker as the scheduler sees one: it notes what it is sent."""

    name: str
    sent: list[int] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> SimpleNamespace:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        assert not self.shutting_down
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def names(kind: str, count: int) -> Iterator[str]:
    return (f"tests/{kind}/test_x.py::test_{number}" for number in range(count))


def play(tests: Sequence[str], workers: Sequence[Worker]) -> None:
    """Every worker does what it was sent, in turn, until all is done."""
    options = {"tx": [f"{len(workers)}*popen"], "loadscopereorder": False}
    config = SimpleNamespace(
        getvalue=options.__getitem__,
        getoption=options.__getitem__,
        option=SimpleNamespace(**options),
    )
    scheduler = TierScheduling(config, Producer("tests"))  # type: ignore[arg-type]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    done = dict.fromkeys(workers, 0)
    while any(done[worker] < len(worker.sent) for worker in workers):
        for worker in workers:
            if done[worker] < len(worker.sent):
                scheduler.mark_test_complete(worker, worker.sent[done[worker]])
                done[worker] += 1
    assert not scheduler.has_pending


def test_each_test_is_dealt_out_once_and_workers_keep_to_a_tier() -> None:
    tests = [*names("kill", 12), *names("e2e", 12)]
    workers = [Worker(f"gw{number}") for number in range(4)]
    play(tests, workers)
    assert sorted(index for worker in workers for index in worker.sent) == list(range(24))
    for worker in workers:
        assert len({tier_of(tests[index]) for index in worker.sent}) == 1
    assert all(worker.shutting_down for worker in workers)


def test_a_worker_helps_where_much_is_left() -> None:
    tests = [*names("kill", 2), *names("e2e", 40)]
    workers = [Worker(f"gw{number}") for number in range(2)]
    play(tests, workers)
    tiers = [{tier_of(tests[index]) for index in worker.sent} for worker in workers]
    assert sorted(map(len, tiers)) == [1, 2]
    assert min(len(worker.sent) for worker in workers) > 10


def test_a_cluster_with_kubelets_is_started_for_many_tests_alone() -> None:
    tests = [*names("kill", 2), *names("e2e", 10), *names("control_plane", 1)]
    workers = [Worker(f"gw{number}") for number in range(2)]
    play(tests, workers)
    on_clusters = [
        any(tier_of(tests[index]) == "cluster" for index in worker.sent) for worker in workers
    ]
    assert sorted(on_clusters) == [False, True]


@pytest.mark.parametrize(
    ("following", "loadgroup", "left"),
    [
        ("tests/e2e/test_claims.py::test_a", True, "old_cluster"),
        ("tests/e2e/test_without_dra_cpus.py::test_a", True, None),
        (None, True, None),
        ("tests/e2e/test_claims.py::test_a", False, None),
    ],
)
def test_a_tier_is_left_with_the_first_test_of_another(
    following: str | None, loadgroup: bool, left: str | None
) -> None:
    config = SimpleNamespace(getoption=lambda *_, **__: loadgroup)
    items = [
        None if nodeid is None else SimpleNamespace(nodeid=nodeid, config=config)
        for nodeid in ("tests/e2e/test_without_dra.py::test_a", following)
    ]
    assert left_tier(*items) == left  # type: ignore[arg-type]


def test_fewer_workers_than_tiers_do_everything() -> None:
    tests = [*names("kill", 3), *names("e2e", 3), *names("unit", 1)]
    worker = Worker("gw0")
    play(tests, [worker])
    assert sorted(worker.sent) == list(range(7))


def test_tests_that_share_fixtures_of_a_file_stay_together() -> None:
    tests = [f"tests/control_plane/test_{file}.py::test_{n}" for file in "abcd" for n in range(3)]
    workers = [Worker("gw0"), Worker("gw1")]
    play(tests, workers)
    files = [{tests[index].partition("::")[0] for index in worker.sent} for worker in workers]
    assert not files[0] & files[1]


FOLDER = [
    f"tests/control_plane/without_dra/test_{file}.py::test_{n}" for file in "ab" for n in range(3)
]


def test_files_of_a_folder_stay_together() -> None:
    workers = [Worker("gw0"), Worker("gw1")]
    play([*FOLDER, *names("control_plane", 1)], workers)
    assert sorted(len(worker.sent) for worker in workers) == [1, len(FOLDER)]


def test_a_folder_begins_before_other_files_of_its_tier() -> None:
    worker = Worker("gw0")
    tests = [*names("control_plane", 9), *FOLDER]
    play(tests, [worker])
    assert [tests[index] for index in worker.sent[: len(FOLDER)]] == FOLDER
