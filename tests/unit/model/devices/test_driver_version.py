"""The driver's version as an attribute of the type `version`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.devices.device import whole_device
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.unit.model.cards import CARD

SELECTORS = Selectors()


def published(version: str) -> dict[str, Any]:
    return whole_device(replace(CARD, driver_version=version), allocator="controller")


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("1.5.20260710", "1.5.20260710"),
        ("1.5.999999999999999999", "1.5.999999999999999999"),
        ("1.4.0.3", "1.4.0+3"),
        ("1.2.4.12", "1.2.4+12"),
        ("1.4.0.3.7", "1.4.0+3.7"),
        ("1.4.0-rc1", "1.4.0+rc1"),
        ("1.4.0rc1", "1.4.0+rc1"),
        ("1.4.0+build.7", "1.4.0+build.7"),
        ("1.4.0.3 (release_2)", "1.4.0+3.release.2"),
        ("1.04.00", "1.4.0"),
        ("v1.4.0", "1.4.0"),
        ("1.4.0.", "1.4.0"),
        (f"1.4.0.{'9' * 80}", f"1.4.0+{'9' * 58}"),
        (f"1.4.0.{'a' * 57}.b", f"1.4.0+{'a' * 57}"),
    ],
)
def test_three_numbers_and_what_follows_as_build_metadata(text: str, attribute: str) -> None:
    assert published(text)["attributes"]["driverVersion"] == {"version": attribute}


@pytest.mark.parametrize("text", ["", "1.5", "unknown", "1.x.3", "1..3", "1.4.1000000000000000000"])
def test_left_out_where_it_cannot_be_made(text: str) -> None:
    assert "driverVersion" not in published(text)["attributes"]


@given(st.from_regex(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}[ -~]*", fullmatch=True) | st.text())
def test_whatever_is_published_is_a_version(text: str) -> None:
    found = published(text)["attributes"].get("driverVersion")
    if found is not None:
        assert len(found["version"]) <= 64
        assert SELECTORS.matches(
            f'isSemver("{found["version"]}")', SelectorInput.of("gcu.enflame.com", published(text))
        )
