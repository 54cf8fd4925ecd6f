"""The marker `kubernetes`: which versions a test of the chosen Kubernetes is for.

`@pytest.mark.kubernetes(least="1.37")` is for that minor version and newer ones, `below="1.37"` for
older ones. A test for other versions than the chosen one is deselected: it belongs to a run with
another choice.
"""

from __future__ import annotations

import pytest

from tests.cluster.versions import chosen_kubernetes, release

_DESCRIPTION = (
    "kubernetes(least=, below=): the minor versions of Kubernetes that the test is for; deselected "
    "where $GCU_DRA_KUBERNETES is another one"
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _DESCRIPTION)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other versions."""
    marked = [each for each in items if each.get_closest_marker("kubernetes")]
    if not marked:
        return
    chosen = _minor(release(chosen_kubernetes()).minor)
    others = [each for each in marked if not _is_for(each, chosen)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [each for each in items if each not in others]


def _is_for(item: pytest.Item, chosen: tuple[int, int]) -> bool:
    return all(
        ("least" not in marker.kwargs or chosen >= _minor(marker.kwargs["least"]))
        and ("below" not in marker.kwargs or chosen < _minor(marker.kwargs["below"]))
        for marker in item.iter_markers("kubernetes")
    )


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
