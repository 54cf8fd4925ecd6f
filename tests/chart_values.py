"""The table of values in the chart's README: of values.yaml, each with the comment above it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

_VALUES: Final = Path(__file__).parents[1] / "charts/gcu-dra-driver/values.yaml"
_WHOLE: Final = "resources"  # a group that Kubernetes knows is one value


def table(text: str | None = None) -> str:
    """Each value with its default and comment, after a row for its group if that has a comment.
    `text` is in place of values.yaml."""
    if text is None:
        text = _VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    rows = _rows(root, yaml.safe_load(text), text.splitlines())
    lines = [f"| `{name}` | {default} | {meaning} |\n" for name, default, meaning in rows]
    return "".join(["| value | default | meaning |\n", "|---|---|---|\n", *lines])


def _rows(
    group: yaml.MappingNode, values: Mapping[str, Any], lines: Sequence[str], path: str = ""
) -> Iterator[tuple[str, str, str]]:
    for key, node in group.value:
        name, value = f"{path}{key.value}", values[key.value]
        comment = _comment(lines[: key.start_mark.line])
        if isinstance(node, yaml.MappingNode) and not node.flow_style and key.value != _WHOLE:
            if comment:
                yield name, "", comment
            yield from _rows(node, value, lines, f"{name}.")
        else:
            yield name, f"`{json.dumps(value, ensure_ascii=False)}`", comment


def _comment(above: Sequence[str]) -> str:
    """The lines of a comment that end `above`, as one; examples, which are indented, are code."""
    found: list[str] = []
    for line in reversed(above):
        head, _, text = line.partition("#")
        if head.strip() or line.strip() == "":
            break
        text = text.removeprefix(" ")
        found.append(f"`{text.strip()}`" if text.startswith("  ") else text.strip())
    return " ".join(reversed(found)).replace("|", "\\|").replace("<", "&lt;")
