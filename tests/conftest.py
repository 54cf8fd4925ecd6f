"""Fixtures for all tests, and how many examples hypothesis tries."""

from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.cluster.fixtures",
    "tests.cluster.side_by_side",
    "tests.cluster.version_marker",
    "tests.unit.simulator.machines",
)

# On a busy machine any example can be late; the limit of each test ends what hangs.
settings.register_profile(
    "few", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", settings.get_profile("few"), max_examples=100)
settings.load_profile("few")
