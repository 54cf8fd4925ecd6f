"""How much memory a build may count on."""

from __future__ import annotations

import pytest

from tests.cluster.image.contained import available_kib


@pytest.mark.parametrize(
    ("meminfo", "expected"),
    [
        pytest.param("MemTotal: 9 kB\nMemAvailable:    4194304 kB\n", 4 << 20, id="told"),
        pytest.param("MemTotal: 9 kB\nMemFree: 8 kB\n", 0, id="not told"),
    ],
)
def test_available_memory(meminfo: str, expected: int) -> None:
    assert available_kib(meminfo) == expected
