"""Fixtures for all tests, how many examples hypothesis tries, and by which seed."""

import pytest
from hypothesis import HealthCheck, settings

from tests.seed import DAY

pytest_plugins = (
    "tests.cluster.side_by_side",
    "tests.cluster.fixtures",
    "tests.cluster.version_marker",
    "tests.unit.simulator.machines",
)

# On a busy machine any example can be late; the limit of each test ends what hangs.
settings.register_profile(
    "few", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", settings.get_profile("few"), max_examples=100)
settings.load_profile("few")


@pytest.hookimpl(tryfirst=True)  # before hypothesis looks
def pytest_configure(config: pytest.Config) -> None:
    """Let all runs of a day try the same examples: what failed in one fails in the next."""
    if getattr(config.option, "hypothesis_seed", DAY) is None:
        config.option.hypothesis_seed = DAY


def pytest_report_header() -> str:
    """What has hypothesis and samples play this day's cases again."""
    return f"GCU_SEED={DAY}, if not of this day"
