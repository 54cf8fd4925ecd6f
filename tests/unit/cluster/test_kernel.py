"""Limits of the kernel are raised, never lowered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.errors import ClusterError
from tests.cluster.kernel import NEEDED_INSTANCES, raise_limits

# A small number (40 today) that nobody may write.
_NOT_EVEN_BY_ROOT = Path("/proc/sys/kernel/cap_last_cap")


def test_a_low_limit_is_raised_and_told(tmp_path: Path) -> None:
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    told: list[str] = []
    raise_limits(told.append, limit)
    assert int(limit.read_text()) == NEEDED_INSTANCES
    assert told == [f"fs.inotify.max_user_instances: raised from 128 to {NEEDED_INSTANCES}"]


def test_a_higher_limit_is_left_alone(tmp_path: Path) -> None:
    limit = tmp_path / "max_user_instances"
    limit.write_text("65536\n")
    told: list[str] = []
    raise_limits(told.append, limit)
    assert (limit.read_text(), told) == ("65536\n", [])


def test_what_cannot_be_raised_names_the_command() -> None:
    with pytest.raises(ClusterError, match=r"sysctl fs\.inotify\.max_user_instances=1024"):
        raise_limits(lambda _: None, _NOT_EVEN_BY_ROOT)
