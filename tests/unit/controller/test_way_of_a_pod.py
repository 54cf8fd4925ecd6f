"""How much a reader has to follow: one pod, from its event to the write of its allocation.

Counted are the files of the controller in which code runs, the frames of the two threads, and the
functions that are passed around as values.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Final

import pytest

import controller
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from tests.unit.controller.allocator.build import claim, device, pool
from tests.unit.controller.world import World, pod

FOLDER: Final = f"{Path(controller.__file__).parent}/"
ALLOCATOR: Final = "allocator/"
MOST_FILES: Final = 25  # beside those of the allocator, which is one pure function for the others
MOST_FILES_OF_ALLOCATOR: Final = 15
MOST_FRAMES: Final = 12
MOST_CALLBACKS: Final = 5


class Trace:
    """What runs in the controller: its files, the deepest stack on which each function was called,
    and the values of arguments and attributes that are functions, with the first place of each."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.stacks: dict[str, list[str]] = {}
        self._called: set[CodeType] = set()
        self._functions: dict[CodeType, str] = {}

    def callbacks(self) -> list[str]:
        """The functions among these values that were called."""
        return [where for code, where in self._functions.items() if code in self._called]

    def run(self, work: Callable[[], object]) -> None:
        sys.setprofile(self._profile)
        try:
            work()
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        self._called.add(code)
        if not code.co_filename.startswith(FOLDER):
            return
        self.files.add(code.co_filename.removeprefix(FOLDER))
        name = code.co_qualname
        stack: list[str] = []
        above: FrameType | None = frame
        while above is not None:
            if above.f_code.co_filename.startswith(FOLDER):
                stack.insert(0, above.f_code.co_qualname)
            above = above.f_back
        if len(stack) > len(self.stacks.get(name, ())):
            self.stacks[name] = stack
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = {f"{name}({each})": frame.f_locals.get(each) for each in arguments}
        attributes = getattr(frame.f_locals.get("self"), "__dict__", {})
        values |= {f"{name.partition('.')[0]}.{each}": attributes[each] for each in attributes}
        for where, value in values.items():
            found = value.func if isinstance(value, partial) else value
            if isinstance(found, FunctionType | MethodType):
                self._functions.setdefault(found.__code__, where)


@pytest.fixture(scope="module")
def trace() -> Trace:
    """A claim is known, and another pod like this one was served before."""
    world = World(pool("a", [device("whole", 0), device("whole", 1)]))
    world.put(RESOURCE_CLAIMS, claim("first"))
    world.put(RESOURCE_CLAIMS, claim("second"))
    world.put(PODS, pod("first", "first"))
    world.run_until_idle()
    world.put(PODS, pod("second", "second"))
    world.pool.is_paused = True
    found = Trace()
    found.run(world.run_until_idle)
    found.run(world.pool.resume)
    assert world.api.writes[-1] == "second status"
    return found


def test_it_passes_few_files(trace: Trace) -> None:
    of_allocator = {each for each in trace.files if each.startswith(ALLOCATOR)}
    assert len(trace.files - of_allocator) <= MOST_FILES, sorted(trace.files - of_allocator)
    assert len(of_allocator) <= MOST_FILES_OF_ALLOCATOR, sorted(of_allocator)


def test_it_passes_few_frames(trace: Trace) -> None:
    """Those of the deciding thread up to the command, and of the pool's thread from there on."""
    decided = trace.stacks["WriteDispatcher.dispatch"]
    written = trace.stacks["Writer._add_metadata"]
    assert decided[0] == "Worker.run_once"
    assert written[0] == "WriteDispatcher._execute"
    assert len(decided) + len(written) <= MOST_FRAMES, decided + written
    assert len(trace.stacks["allocate"]) <= MOST_FRAMES - len(written)


def test_it_meets_few_callbacks(trace: Trace) -> None:
    assert len(trace.callbacks()) <= MOST_CALLBACKS, trace.callbacks()
