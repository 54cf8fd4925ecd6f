"""What is missing in docs/user/reference.md is found."""

from __future__ import annotations

import inspect
import re

import pytest
from pydantic import ValidationError

from dra_driver.config.device_config import API_VERSION, KIND, GcuConfig
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


def test_the_config_table_says_which_values_a_field_has() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", reference_tables.config(), re.MULTILINE))
    assert listed["slices"] == listed["size"] == "whole number from 1"
    assert listed["isolation"] == "`best-effort` or `fixed-share`"
    [quantity] = re.findall(r"^a quantity, such as `(\w+)`$", listed["memory"])
    [(least, most)] = re.findall(r"^whole number, (\d+) to (\d+)$", listed["cores"])
    for cores in (int(least), int(most)):
        _config(memory=quantity, cores=cores)
    for cores in (int(least) - 1, int(most) + 1):
        with pytest.raises(ValidationError, match="cores"):
            _config(cores=cores)


def test_a_field_whose_values_nothing_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_tables, "CONFIG_VALUES", {})
    with pytest.raises(ValueError, match="the values of memory"):
        reference_tables.config()


def _config(**fields: object) -> GcuConfig:
    return GcuConfig.model_validate({"apiVersion": API_VERSION, "kind": KIND, **fields})
