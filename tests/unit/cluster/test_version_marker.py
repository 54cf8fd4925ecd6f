"""A test marked for some versions of Kubernetes runs only where one of them is chosen."""

from __future__ import annotations

import pytest

from tests.cluster.versions import CHOICE

pytest_plugins = ("pytester",)

TESTS = """
import pytest

@pytest.mark.kubernetes(least="1.37")
def test_new(): pass

@pytest.mark.kubernetes(below="1.37")
def test_old(): pass

def test_any(): pass
"""
RUN = {"1.36.3": {"test_old", "test_any"}, "1.37.2": {"test_new", "test_any"}}


@pytest.mark.parametrize(("chosen", "run"), RUN.items())
def test_chosen(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, chosen: str, run: set[str]
) -> None:
    monkeypatch.setenv(CHOICE, chosen)
    pytester.makepyfile(TESTS)
    result = pytester.inline_run("-p", "tests.cluster.version_marker")
    passed, skipped, failed = result.listoutcomes()
    assert {each.nodeid.rpartition("::")[2] for each in passed} == run
    assert (skipped, failed) == ([], [])
