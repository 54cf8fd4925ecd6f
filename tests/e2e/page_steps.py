"""The commands of a user's page, for a test that does what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

Command = tuple[str, ...]
Steps = Mapping[int, tuple[Command, ...]]
"""By the number of the step."""


def page_steps(page: Path, heading: str) -> Steps:
    """The commands of the shell blocks below a heading; none where a step has no block."""
    section = _section(page, heading)
    _, *parts = re.split(r"^(\d+)\. ", section, flags=re.MULTILINE)
    return {
        int(number): tuple(_commands(text))
        for number, text in zip(parts[::2], parts[1::2], strict=True)
    }


def page_commands(page: Path, heading: str) -> tuple[Command, ...]:
    """All commands of the shell blocks below a heading."""
    return tuple(_commands(_section(page, heading)))


def commands_in(page: Path) -> tuple[Command, ...]:
    """All commands of the page's shell blocks, without comments."""
    return tuple(_commands(page.read_text(encoding="utf-8")))


def filled(command: Command, **values: str) -> Command:
    """The command with these values in place of words such as NODE."""
    names = re.compile(r"\b(" + "|".join(values) + r")\b")
    return tuple(names.sub(lambda found: values[found[1]], word) for word in command)


def _section(page: Path, heading: str) -> str:
    text = page.read_text(encoding="utf-8")
    return re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]


def _commands(text: str) -> list[Command]:
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, flags=re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [tuple(shlex.split(line, comments=True)) for line in lines if line.strip()]
