"""Texts of the chart's values, from a text of values."""

from __future__ import annotations

import json
from enum import EnumType
from typing import Any, Literal, get_args, get_origin

from dra_driver.model.claims.packing import Packing
from tests.chart_values import (
    SCHEMA,
    passed_settings,
    settings_of_values,
    table,
    values_of,
    with_descriptions,
    with_settings,
)

TEXT = """\
# A group,
# in two lines.
group:
  # A list: a | b.
  #   - {one: entry}
  # Empty: nobody.
  list: []

  bare: 1
  resources:
    limits: {memory: 1Gi}
# Another one.

other:
  flow: {a: "<x>"}
"""


def test_groups_comments_and_defaults() -> None:
    head, line, *rows = table(TEXT).splitlines()
    assert (head, line) == ("| value | default | meaning |", "|---|---|---|")
    assert rows == [
        "| `group` |  | A group, in two lines. |",
        "| `group.list` | `[]` | A list: a \\| b. `- {one: entry}` Empty: nobody. |",
        "| `group.bare` | `1` |  |",
        '| `group.resources` | `{"limits": {"memory": "1Gi"}}` |  |',
        '| `other.flow` | `{"a": "<x>"}` |  |',
    ]


def test_a_comment_begins_with_the_text_of_the_setting() -> None:
    text = """\
group:
  # What it was.
  # In two lines.
  #
  # What the chart adds.
  first: 1
  second: 2
third: 3
"""
    settings = {"group.first": "Seconds of it.", "group.second": "word " * 30}
    written = with_settings(text, settings)
    assert (
        written
        == f"""\
group:
  # Seconds of it.
  #
  # What the chart adds.
  first: 1
  # {"word " * 22}word
  # {"word " * 6}word
  second: 2
third: 3
"""
    )
    assert with_settings(written, settings) == written
    first = values_of(written)[1]
    assert (first.path, first.text) == ("group.first", "Seconds of it. What the chart adds.")


def test_the_schema_has_the_comments() -> None:
    schema = """\
{"type": "object", "properties": {
  "group": {
    "description": "Old.", "properties": {"bare": {"description": "Kept.", "type": "integer"},
    "list": {
      "type": "array", "items": {"description": "Kept, too."}}}}
}}
"""
    written = with_descriptions(schema, values_of(TEXT))
    group = json.loads(written)["properties"]["group"]
    assert group["description"] == "A group, in two lines."
    assert group["properties"]["list"] == {
        "description": "A list: a | b. `- {one: entry}` Empty: nobody.",
        "type": "array",
        "items": {"description": "Kept, too."},
    }
    assert group["properties"]["bare"]["description"] == "Kept."
    assert with_descriptions(written, values_of(TEXT)) == written


def test_a_value_that_the_chart_reads_itself_has_a_text_of_its_own() -> None:
    passed = passed_settings()
    assert passed["agent.presenceInterval"] == "Seconds between scans of the PCI bus."
    assert passed.keys().isdisjoint({"mode", "allocator", "kubeletRootDir", "logLevel"})


def test_a_value_that_notes_mention_has_the_text_of_the_setting() -> None:
    assert "controller.packNodes" in passed_settings()


def words_of(annotation: Any) -> tuple[str, ...]:
    """The words that a setting of that type takes; none if it takes others, too."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(annotation) if isinstance(annotation, EnumType) else ()


def words_in_schema(path: str) -> tuple[str, ...]:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    inner = schema
    for name in path.split("."):
        inner = inner["properties"][name]
    definition = schema["definitions"].get(inner.get("$ref", "").rpartition("/")[2], {})
    return tuple((definition | inner).get("enum", ()))


def test_the_schema_takes_the_words_that_a_setting_takes() -> None:
    words = [(path, words_of(setting.annotation)) for path, setting in settings_of_values()]
    assert ("controller.packCards", tuple(Packing)) in words
    differing = [(path, of, words_in_schema(path)) for path, of in words]
    differing = [each for each in differing if each[1] != each[2]]
    assert not differing, "the setting and values.schema.json take different words"
