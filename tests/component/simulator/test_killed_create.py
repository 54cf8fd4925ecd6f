"""`create` killed before every line of its code: the next one makes the machine all the same.

An init container runs it before each start of the agent, always as process 1 of its container.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from dra_driver.simulator import files, machine, record, store
from dra_driver.simulator.machine import SimulatedMachine

Line = tuple[str, int]

_TRACED: Final = frozenset(str(module.__file__) for module in (files, machine, record, store))
_ONE_CARD: Final = {"cards": [{"bdf": "0000:0d:00.0", "model": "S60"}]}


def _create(root: Path) -> SimulatedMachine:
    return SimulatedMachine.create(_ONE_CARD, root)


def _traced(root: Path, see: Callable[[Line], None]) -> None:
    """Create the machine; `see` gets each line before it runs, for the first time or again."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in _TRACED:
            return None
        if event == "line":
            see((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        _create(root)
    finally:
        sys.settrace(before)


def _killed_before(line: Line, root: Path) -> None:
    def see(seen: Line) -> None:
        if seen == line:
            os.kill(os.getpid(), signal.SIGKILL)

    _traced(root, see)


@pytest.mark.parametrize("again", [False, True], ids=["the first", "one more"])
def test_the_next_create_makes_what_it_should(tmp_path: Path, again: bool) -> None:
    whole = _create(tmp_path / "whole")
    lines: dict[Line, None] = {}
    fresh = tmp_path / "traced"
    if again:
        _create(fresh)
    _traced(fresh, lambda line: lines.update({line: None}))
    assert len(lines) > 100

    for number, line in enumerate(lines):
        root = tmp_path / str(number)
        if again:
            _create(root)
        process = get_context("fork").Process(target=_killed_before, args=(line, root))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, line

        made = _create(root)

        assert made.state().cards == whole.state().cards, line
        assert _below(root) == _below(whole.root), line


def _below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}
