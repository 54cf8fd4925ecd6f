"""With which cards the driver was seen."""

from __future__ import annotations

import pytest

from dra_driver.hardware import seen_versions
from dra_driver.hardware.seen_versions import Seen, untried
from tests import generated_docs


@pytest.mark.parametrize(
    ("model", "version", "warns"),
    [
        ("S60", "1.2.0.1", False),
        ("S60", "1.7", False),
        ("S60", "1.8.0.1", True),
        ("S60", "1.1.9", True),
        ("S60", "", True),
        ("S60", "none", True),
        ("L600", "1.5.0.1", True),
    ],
)
def test_what_is_not_known(model: str, version: str, *, warns: bool) -> None:
    note, is_warning = untried(model, version)
    assert model in note
    assert is_warning is warns


def test_where_it_has_run_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Seen("L600", (2, 0), (2, 1), True, "a report")
    monkeypatch.setattr(seen_versions, "SEEN", (row,))
    assert untried("L600", "2.1.7") == ("", False)
    assert untried("L600", "2.2.0")[1] is True
    assert "| L600 | 2.0 to 2.1 | run on this card | a report |" in generated_docs.seen()
