"""Plays mutants to a test suite, in a copy of the checkout."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from tests.mutants.edits import Edit
from tests.mutants.mutant import Mutant, line_of
from tests.tiers import TIERS

Command = tuple[str, ...]

SUITE: Final[tuple[Command, ...]] = tuple(
    (*command, "-x", "-q") for tier in ("unit", "component", "property") for command in TIERS[tier]
)
"""What finds a mutant by default: the tiers without a cluster, each up to its first failure."""

SURVIVED: Final = "SURVIVED"
NOT_THERE: Final = "not there"
"""The checkout that is played has another function in its place."""

_NO_TESTS: Final = 5  # pytest's exit code if nothing was collected
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_TO_END: Final = 15.0  # seconds that pytest has to remove what its tests started
# A shell's background job ignores SIGINT, and so would all that it starts.
_INTERRUPTIBLE: Final = ("env", "--default-signal=INT")
_SHOWN: Final = 40  # lines of a suite that fails without a mutant
_MOST_MEMORY: Final = 4 << 30  # bytes of one process, for mutants that would take all of it
_GIT: Final = (
    ("init", "--quiet"),
    ("add", "--all"),
    ("-c", "user.name=mutants", "-c", "user.email=", "commit", "--quiet", "--message=The copy"),
)
_LEFT_OUT: Final = (".git", ".hypothesis", ".*_cache", "__pycache__", "build", "dist")


class SuiteFails(Exception):
    """The suite fails without a mutant, so it could find none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a mutant fared: the test that found it, `SURVIVED`, or `NOT_THERE`. `line` is where it
    is in the checkout that was played, 0 where it is not there."""

    mutant: Mutant
    line: int
    found_by: str
    seconds: float

    @property
    def was_found(self) -> bool:
        return self.found_by not in {SURVIVED, NOT_THERE}


def mirrors(file: str, checkout: Path) -> list[str]:
    """The tests of a source file, the nearest ones first: below tests/unit, the file with its path
    and the nearest folder, as far as they exist."""
    path = PurePosixPath(file.removeprefix("dra_driver/"))
    unit = PurePosixPath("tests/unit")
    beside = unit / path.with_name(f"test_{path.name}")
    folders = (unit / each for each in path.parents if each.name)
    folder = next((each for each in folders if list((checkout / each).glob("test_*.py"))), None)
    return [str(each) for each in (beside, folder) if each and (checkout / each).exists()]


def finder(output: str) -> str:
    """The first test that pytest's output says has failed, or else its last line."""
    if found := _FAILED.search(output):
        return found[1]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


class Stage:
    """A copy of a checkout in a temporary folder, in which mutants are played one by one.

    `limit` are the seconds for all commands of one mutant together.
    """

    def __init__(
        self, folder: Path, checkout: Path, suite: Sequence[Command], *, near: bool, limit: float
    ) -> None:
        self._tree = folder / "checkout"
        self._output = folder / "output"
        self._suite = suite
        self._near = near
        self._limit = limit
        self._writes = 0
        # Programs of tests find this environment's tools, and nothing is compiled elsewhere.
        self._env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        shutil.copytree(
            checkout, self._tree, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT)
        )
        # Some tests ask git for the files of the checkout and for its last commit.
        for arguments in _GIT:
            subprocess.run(("git", *arguments), cwd=self._tree, check=True)

    def check(self) -> None:
        """Run the suite without a mutant. Raises SuiteFails."""
        found_by = self._found_by(self._suite)
        if found_by != SURVIVED:
            lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines()
            raise SuiteFails("\n".join([*lines[-_SHOWN:], f"without a mutant: {found_by}"]))

    def play(self, mutant: Mutant) -> Verdict:
        """Write the mutant, run the tests, and restore the file."""
        started = time.monotonic()
        path = self._tree / mutant.file
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        edit = mutant.edit(source)
        if edit is None:
            return Verdict(mutant, 0, NOT_THERE, 0.0)
        commands: list[Command] = []
        if self._near:
            near = mirrors(mutant.file, self._tree)
            commands = [(sys.executable, "-m", "pytest", "-x", "-q", each) for each in near]
        with self._written(path, source, edit):
            found_by = self._found_by([*commands, *self._suite])
        return Verdict(mutant, line_of(source, edit), found_by, time.monotonic() - started)

    @contextlib.contextmanager
    def _written(self, path: Path, source: str, edit: Edit) -> Iterator[None]:
        self._write(path, edit.applied(source))
        try:
            yield
        finally:
            self._write(path, source)

    def _write(self, path: Path, text: str) -> None:
        """Each write has a time of its own: Python compiles a file again if its time or its size
        differs, and knows the time in seconds only."""
        path.write_text(text, encoding="utf-8")
        self._writes += 1
        os.utime(path, (self._writes, self._writes))

    def _found_by(self, commands: Sequence[Command]) -> str:
        """The test that fails first."""
        shutil.rmtree(self._tree / ".hypothesis", ignore_errors=True)  # another mutant's examples
        end = time.monotonic() + self._limit
        for command in commands:
            code = self._run(command, end - time.monotonic())
            if code is None:
                return f"the limit of {self._limit:.0f} s"
            if code not in {0, _NO_TESTS}:
                return finder(self._output.read_text(encoding="utf-8", errors="replace"))
        return SURVIVED

    def _run(self, command: Command, seconds: float) -> int | None:
        """The exit code; None if the command took longer, and was ended."""
        with (
            self._output.open("wb") as output,
            subprocess.Popen(
                (*_INTERRUPTIBLE, *command),
                cwd=self._tree,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
            try:
                return process.wait(max(seconds, 0.0))
            except subprocess.TimeoutExpired:
                return None
            finally:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started, at first such that pytest tears down."""
    if process.poll() is None:
        for number, patience in ((signal.SIGINT, _TO_END), (signal.SIGTERM, 1.0)):
            os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def stage(checkout: Path, suite: Sequence[Command], *, near: bool, limit: float) -> Iterator[Stage]:
    """A stage for mutants of that checkout, which is removed afterwards."""
    with TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        yield Stage(Path(folder), checkout, suite, near=near, limit=limit)
