"""What is missing in docs/user/reference.md is found."""

from __future__ import annotations

import inspect
import re

import pytest

from dra_driver.node.claims import device_status
from tests import reference_tables
from tests.generated_docs import CHECKOUT


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


def test_the_conditions_are_those_of_the_code() -> None:
    page = (CHECKOUT / "docs/user/reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(True|False)` \| `(\w+)` \|", page, flags=re.MULTILINE)
    given = re.findall(r'"(True|False)", "(\w+)"', inspect.getsource(device_status))
    assert len(given) > 3
    assert sorted(listed) == sorted(given)
