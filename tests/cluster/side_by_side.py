"""Runs the tests that need a real Kubernetes side by side: a pytest plugin on top of pytest-xdist.

A test mostly waits, for a kubelet, a scheduler or a lease, so several of them fit on one machine.
Each worker has control planes and clusters of its own, which the session fixtures start when they
are first used. That costs more than most tests. So a worker is given tests of one *tier* (the
fixture of `tests.cluster.fixtures` that they use) as long as there are any, and then helps where
most is left. Active with `--dist=loadgroup`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

OWN: Final = "own"
"""The tier of tests that start a cluster of their own, or none."""

PLACES: Final[Mapping[str, int]] = {"control_plane": 2, "cluster": 1, "old_cluster": 1}
"""How many workers begin with each tier: what two cores carry. Idle clusters cost, too: with
more workers all of it takes longer, and waits end for want of processors."""

WORKERS: Final = sum(PLACES.values())

_TIERS: Final = (
    (r"tests/control_plane/test_install", OWN),
    (r"tests/e2e/test_hidden_|tests/cluster/test_(teardown|image_build|release)", OWN),
    (r"tests/(control_plane|kill)/|tests/cluster/test_control_plane", "control_plane"),
    (r"without[_ ]dra", "old_cluster"),
    (r"tests/(e2e|cluster)/", "cluster"),
)
"""The first pattern that is found in a test's id gives its tier."""

_GROUP: Final = re.compile(r"tests/control_plane/\w+/")
"""The files of such a folder share a control plane of their own, and are dealt out together. It
ends with them."""

_TOGETHER: Final = re.compile(r"tests/control_plane/|without_dra|test_hidden_")
"""The tests of these files share fixtures of the module, and are dealt out together. All others are
dealt out one by one."""

_WORTH_MOVING: Final[Mapping[str, int]] = {
    "control_plane": 4,
    "cluster": 12,
    "old_cluster": 12,
    OWN: 4,
}
"""Units that must be left in another tier for a worker to start a cluster for them: one with
kubelets costs as much as a dozen tests on it."""


def tier_of(nodeid: str) -> str:
    """The tier of the test with that id."""
    return next(
        (tier for pattern, tier in _TIERS if re.search(pattern, nodeid, re.IGNORECASE)), OWN
    )


def left_tier(item: pytest.Item, following: pytest.Item | None) -> str | None:
    """The tier of the test, if this process goes on with another one. It does not come back then,
    where tests are dealt out by tier."""
    if following is None or not item.config.getoption("loadgroup", default=False):
        return None
    tier = tier_of(item.nodeid)
    return None if tier_of(following.nodeid) == tier else tier


@pytest.hookimpl(trylast=True)  # after pytest's own order by fixtures
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests marked `long` begin first, so that nobody waits for one at the end.

    Raises UsageError for a test that uses another cluster than its id says.
    """
    for item in items:
        wanted, used = tier_of(item.nodeid), set(getattr(item, "fixturenames", ()))
        if used & PLACES.keys() - {wanted} and wanted != OWN:
            raise pytest.UsageError(
                f"{item.nodeid} uses {', '.join(used & PLACES.keys())}, and its name says "
                f"{wanted}: rename it, or correct the table in tests/cluster/side_by_side.py"
            )
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _deals_out(config: pytest.Config) -> bool:
    """Whether tests are dealt out by tier; never with pytest-xdist switched off."""
    return bool(config.getoption("dist", default=None) == "loadgroup")


def pytest_configure(config: pytest.Config) -> None:
    """Let tracebacks be short: where a report is cut, what the cluster says is worth more than the
    tests' own code."""
    if _deals_out(config) and config.option.tbstyle == "auto":
        config.option.tbstyle = "short"


@pytest.hookimpl(optionalhook=True)  # a hook of pytest-xdist, which may be off
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Deal tests out by tier; None leaves it to pytest-xdist."""
    return TierScheduling(config, log) if _deals_out(config) else None


class TierScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives each worker units of one tier as long as there are any. A unit is a test, or the tests
    of a file or of a folder."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._homes: dict[WorkerController, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        """What is dealt out at once."""
        if group := _GROUP.match(nodeid):
            return group[0]
        return nodeid.partition("::")[0] if _TOGETHER.search(nodeid) else nodeid

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give the worker the next unit of its tier, or end it where it can help nowhere."""
        left = Counter(map(tier_of, self.workqueue))
        home = self._homes.get(node)
        if home is None or not left[home]:
            home = self._next_home(left, begins=home is None)
            if home is None:
                node.shutdown()
                return
            self._homes[node] = home
        units = [unit for unit in self.workqueue if tier_of(unit) == home]
        # A folder first: until it has ended the worker needs no control plane but the folder's.
        unit = min(units, key=lambda unit: not _GROUP.fullmatch(unit))
        self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)

    def _next_home(self, left: Mapping[str, int], *, begins: bool) -> str | None:
        """The tier with most units left for each worker that it has."""
        at: defaultdict[str, int] = defaultdict(int, Counter(self._homes.values()))
        if begins:
            open_places = [tier for tier in PLACES if left[tier] and at[tier] < PLACES[tier]]
            if open_places:
                return max(open_places, key=lambda tier: 1 - at[tier] / PLACES[tier])
        worth = [tier for tier in left if not at[tier] or left[tier] >= _WORTH_MOVING[tier]]
        return max(worth, key=lambda tier: left[tier] / (at[tier] or 1), default=None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests each tier had, and how long they and their fixtures took."""
    if not _deals_out(terminalreporter.config):
        return
    tests: Counter[str] = Counter()
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    for outcome in ("passed", "failed", "error", ""):
        for report in terminalreporter.stats.get(outcome, ()):
            tier = tier_of(report.nodeid)
            tests[tier] += report.when == "call"
            seconds[tier, "call" if report.when == "call" else "fixtures"] += report.duration
    terminalreporter.section("time of the tests, added up over all workers")
    terminalreporter.write_line(f"{'tier':16}{'tests':>6}{'tests, s':>10}{'fixtures, s':>13}")
    for tier in sorted(tests):
        took = (seconds[tier, "call"], seconds[tier, "fixtures"])
        terminalreporter.write_line(f"{tier:16}{tests[tier]:6}{took[0]:10.0f}{took[1]:13.0f}")
