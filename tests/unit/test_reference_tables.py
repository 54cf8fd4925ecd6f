"""What is missing in docs/user/reference.md is found."""

from __future__ import annotations

import pytest

from tests import reference_tables


@pytest.mark.parametrize(
    ("meanings", "table"),
    [
        ("ATTRIBUTES", reference_tables.attributes),
        ("CAPACITIES", reference_tables.capacities),
        ("CONFIG", reference_tables.config),
        ("TAINTS", reference_tables.taints),
        ("ANNOTATIONS", reference_tables.labels_and_annotations),
        ("EXIT_CODES", reference_tables.exit_codes),
    ],
)
def test_a_name_without_a_meaning(
    monkeypatch: pytest.MonkeyPatch, meanings: str, table: object
) -> None:
    known = dict(getattr(reference_tables, meanings))
    name, _ = known.popitem()
    monkeypatch.setattr(reference_tables, meanings, known)
    assert callable(table)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        table()
