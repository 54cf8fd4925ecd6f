"""YAML of people: whatever it is, a document or a sentence, and never more than fits."""

from __future__ import annotations

import tracemalloc
from datetime import date
from pathlib import Path

import pytest

from dra_driver.config.card_rules import load_card_rules
from dra_driver.config.documents import given, read_yaml
from dra_driver.model.errors import InvalidValue


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a: !!int ''", id="no number"),
        pytest.param(b"a: !!bool maybe", id="no truth"),
        pytest.param(b"a: !!timestamp never", id="no time"),
        pytest.param(b"a: 2026-13-45", id="no date"),
        pytest.param(b"a: " + b"9" * 5000, id="more digits than a number has"),
        pytest.param(b"[" * 600, id="deep"),
        pytest.param(b"a: *nobody", id="no anchor"),
        pytest.param(b"a: !!python/name:os.system", id="a tag that runs code"),
    ],
)
def test_what_is_no_yaml_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    with pytest.raises(InvalidValue, match=r"^the file .*file\.yaml is not YAML: .*key: value$"):
        read_yaml(file, "the file", flag="--file")


def test_a_few_lines_that_stand_for_more_than_there_is_memory(tmp_path: Path) -> None:
    lines = [b"rules:", b"- &a [" + b"x, " * 9 + b"x]"]
    for name, below in zip(b"bcdefghijklm", b"abcdefghijkl", strict=True):
        lines.append(b"- &%c [" % name + b", ".join([b"*%c" % below] * 10) + b"]")
    file = tmp_path / "cards.yaml"
    file.write_bytes(b"\n".join(lines))
    tracemalloc.start()
    with pytest.raises(InvalidValue, match=r"rules\[0\]: .*given \['x', "):
        load_card_rules(file)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (True, "true"),
        (None, "null"),
        (date(2026, 1, 1), '"2026-01-01"'),
        ([1, [2]], "[1, [2]]"),
        ("x" * 500, '"' + "x" * 118 + "…"),
    ],
    ids=["text", "truth", "nothing", "a date", "a list", "long"],
)
def test_what_was_given_is_shown(value: object, text: str) -> None:
    assert given(value) == text
