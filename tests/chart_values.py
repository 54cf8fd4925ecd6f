"""The texts of the chart's values, from the comments of values.yaml.

The comment above a value says what it is. If the chart hands the value to one program as it is, and
reads it for nothing else, the comment begins with what `--help` says of that setting; an empty line
of the comment ends that. The tables of values, and the descriptions in the schema, are made of the
comments.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic.fields import FieldInfo

from controller.settings import ControllerSettings
from dra_driver.agent.settings import AgentSettings
from dra_driver.config.loader import Settings

_CHART: Final = Path(__file__).parents[1] / "charts/gcu-dra-driver"
VALUES: Final = _CHART / "values.yaml"
SCHEMA: Final = _CHART / "values.schema.json"
_PROGRAMS: Final[Mapping[str, type[Settings]]] = {
    "agent/daemonset.yaml": AgentSettings,
    "controller/deployment.yaml": ControllerSettings,
}
# A value that becomes an environment variable as it is.
_PASSED: Final = re.compile(
    r"\{name: GCU_(\w+), value: \{\{ \.Values\.([\w.]+)(?: \| int64)?(?: \| quote)? }}}"
)
_WHOLE: Final = "resources"  # a group that Kubernetes knows is one value
_PAGE: Final = re.compile(r"docs/user/([\w.-]+\.md(?:#[\w-]+)?)")
_WIDTH: Final = 120
_JSON: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Value:
    """A value or a group of values. `above` is the number of the line on which its comment begins,
    `line` that of its key. `default` is JSON, empty for a group."""

    path: str
    default: str
    comment: tuple[str, ...]
    above: int
    line: int

    @property
    def text(self) -> str:
        """The comment as one line; examples, which are indented, are code."""
        lines = (f"`{line.strip()}`" if line.startswith("  ") else line for line in self.comment)
        return " ".join(line.strip() for line in lines if line)


def values_of(text: str) -> list[Value]:
    """All values of a values.yaml in their order, each group before its values."""
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return list(_values(root, yaml.safe_load(text), text.splitlines()))


def _values(
    group: yaml.MappingNode, values: Mapping[str, Any], lines: Sequence[str], path: str = ""
) -> Iterator[Value]:
    for key, node in group.value:
        name, value, line = f"{path}{key.value}", values[key.value], key.start_mark.line
        comment = tuple(_comment(lines[:line]))
        above = line - len(comment)
        if isinstance(node, yaml.MappingNode) and not node.flow_style and key.value != _WHOLE:
            yield Value(name, "", comment, above, line)
            yield from _values(node, value, lines, f"{name}.")
        else:
            yield Value(name, json.dumps(value, ensure_ascii=False), comment, above, line)


def _comment(above: Sequence[str]) -> list[str]:
    """The lines of a comment that end `above`."""
    found: list[str] = []
    for line in reversed(above):
        head, _, text = line.partition("#")
        if head.strip() or line.strip() == "":
            break
        found.insert(0, text.removeprefix(" "))
    return found


def table(text: str | None = None) -> str:
    """Each value with its default and comment, and each group that has a comment. `text` is in
    place of values.yaml."""
    values = values_of(VALUES.read_text(encoding="utf-8") if text is None else text)
    rows = [
        f"| `{value.path}` | {value.default and f'`{value.default}`'} | {_cell(value.text)} |\n"
        for value in values
        if value.default or value.comment
    ]
    return "".join(["| value | default | meaning |\n", "|---|---|---|\n", *rows])


def linked_table() -> str:
    """The same for a page of docs/user, with links to the other pages."""
    return _PAGE.sub(r"[\1](\1)", table())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def passed_settings(templates: Path = _CHART / "templates") -> dict[str, str]:
    """What `--help` says of each value that one program gets as it is, and that no other object of
    the chart depends on. By the value's path."""
    objects = [path for path in templates.rglob("*.*") if path.name != "NOTES.txt"]
    everything = "".join(path.read_text(encoding="utf-8") for path in objects)
    return {
        path: setting.description or ""
        for path, setting in settings_of_values(templates)
        if len(re.findall(rf"\.Values\.{path}\b", everything)) == 1
    }


def settings_of_values(
    templates: Path = _CHART / "templates",
) -> Iterator[tuple[str, FieldInfo]]:
    """The settings that programs get from values as they are, each with the value's path before it.
    A path comes twice if both programs get the value."""
    for name, settings in _PROGRAMS.items():
        for setting, path in _PASSED.findall((templates / name).read_text(encoding="utf-8")):
            yield path, settings.model_fields[setting.lower()]


def with_settings(text: str, settings: Mapping[str, str]) -> str:
    """A values.yaml in which the comment of each of these values begins with that text."""
    lines = text.splitlines()
    for value in reversed(values_of(text)):
        if value.path not in settings:
            continue
        indent = " " * (len(lines[value.line]) - len(lines[value.line].lstrip()))
        rest = value.comment[value.comment.index("") :] if "" in value.comment else ()
        said = textwrap.wrap(settings[value.path], _WIDTH - len(indent) - 2)
        lines[value.above : value.line] = [f"{indent}# {line}".rstrip() for line in (*said, *rest)]
    return "\n".join(lines) + "\n"


def with_descriptions(schema: str, values: Sequence[Value]) -> str:
    """A JSON schema of values in which the comments are the descriptions. What has no comment keeps
    its own."""
    texts = {value.path: value.text for value in values if value.text}
    places: list[_Place] = []
    _read(schema, _skip(schema, 0), ("",), places)
    for place in sorted(places, key=lambda place: place.begin, reverse=True):
        if place.path in texts:
            said = f'"description": {json.dumps(texts[place.path], ensure_ascii=False)}'
            said += "" if place.has_description else ", "
            schema = schema[: place.begin] + said + schema[place.end :]
    return schema


@dataclass(frozen=True, slots=True)
class _Place:
    """From where to where the description of the value is, with its key; or where it may be."""

    path: str
    begin: int
    end: int

    @property
    def has_description(self) -> bool:
        return self.begin < self.end


def _read(text: str, at: int, path: Sequence[str], found: list[_Place]) -> int:
    """Read the JSON value there, which is at that path in the schema; returns where it ends."""
    if text[at] != "{":
        return _JSON.raw_decode(text, at)[1]
    at = _skip(text, at + 1)
    description = at, at
    while text[at] != "}":
        begin = at
        key, at = _JSON.raw_decode(text, at)
        at = _read(text, _skip(text, _skip(text, at) + 1), (*path, key), found)
        if key == "description":
            description = begin, at
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
    names, keys = path[2::2], path[1::2]
    if names and len(names) == len(keys) and set(keys) == {"properties"}:
        found.append(_Place(".".join(names), *description))
    return at + 1


def _skip(text: str, at: int) -> int:
    """Where the next character is that is no space."""
    while text[at].isspace():
        at += 1
    return at
