"""Which tests are run for a mutant, and what is read from what they print."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mutants.edits import Kind, edits
from tests.mutants.mutant import Mutant
from tests.mutants.play import (
    NOT_THERE,
    SUITE,
    SURVIVED,
    Command,
    Stage,
    SuiteFails,
    finder,
    mirrors,
)

FILE = "controller/x.py"
SOURCE = "LIMIT = 1\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "real"
    for name in ("controller/x.py", "tests/unit/controller/test_x.py", "tests/unit/node/test_y.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOURCE)
    return folder


def python(code: str) -> Command:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("file", "near"),
    [
        ("controller/x.py", ["tests/unit/controller/test_x.py", "tests/unit/controller"]),
        ("controller/z.py", ["tests/unit/controller"]),
        ("dra_driver/node/y.py", ["tests/unit/node/test_y.py", "tests/unit/node"]),
        ("dra_driver/node/cdi/z.py", ["tests/unit/node"]),
        ("dra_driver/version.py", []),
    ],
)
def test_the_tests_beside_a_file(checkout: Path, file: str, near: list[str]) -> None:
    assert mirrors(file, checkout) == near


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (
            "E   Error\nFAILED tests/unit/x.py::test_a[with DRA-one] - 1 == 2\nFAILED y.py::b\n",
            "tests/unit/x.py::test_a[with DRA-one]",
        ),
        (
            "ERROR tests/unit/x.py\n!!! Interrupted: 1 error during collection !!!",
            "tests/unit/x.py",
        ),
        ("one\n  two  \n\n", "two"),
        ("", "no output"),
    ],
)
def test_the_test_that_found_it(output: str, told: str) -> None:
    assert finder(output) == told


def test_the_suite_is_that_of_the_tiers_without_a_cluster() -> None:
    folders = [each for command in SUITE for each in command if each.startswith("tests/")]
    assert folders[:3] == ["tests/unit", "tests/component", "tests/property"]
    assert all(each.startswith("tests/unit/") for each in folders[3:])
    assert all(command[-2:] == ("-x", "-q") for command in SUITE)


def mutant() -> Mutant:
    [edit] = [each for each in edits(SOURCE) if each.kind is Kind.NUMBER]
    return Mutant.of(FILE, SOURCE, edit)


def staged(folder: Path, checkout: Path, *suite: Command, limit: float = 60.0) -> Stage:
    return Stage(folder, checkout, suite, near=False, limit=limit)


LOOK = python(f"import sys; sys.exit(open({FILE!r}).read() != {SOURCE!r} and 'FAILED it - is 2')")


def test_it_is_played_in_a_copy_and_the_file_is_restored(tmp_path: Path, checkout: Path) -> None:
    stage = staged(tmp_path, checkout, python(""), LOOK)
    stage.check()
    for _ in range(2):
        verdict = stage.play(mutant())
        assert (verdict.found_by, verdict.line) == ("it", 1)
        stage.check()
    assert (checkout / FILE).read_text() == SOURCE
    assert not (checkout / ".git").exists()


@pytest.mark.parametrize(
    ("command", "found_by"),
    [
        (python(""), SURVIVED),
        (python("raise SystemExit(5)"), SURVIVED),
        (python("import signal; signal.pause()"), "the limit of 0 s"),
    ],
    ids=["passes", "no tests", "hangs"],
)
def test_how_it_ends(tmp_path: Path, checkout: Path, command: Command, found_by: str) -> None:
    started = time.monotonic()
    stage = staged(tmp_path, checkout, command, limit=0.1 if "pause" in command[2] else 60.0)
    assert stage.play(mutant()).found_by == found_by
    assert time.monotonic() - started < 60


def test_a_file_that_is_not_there(tmp_path: Path, checkout: Path) -> None:
    (checkout / FILE).unlink()
    verdict = staged(tmp_path, checkout, python("raise SystemExit(1)")).play(mutant())
    assert (verdict.found_by, verdict.was_found) == (NOT_THERE, False)


def test_a_suite_that_fails_by_itself(tmp_path: Path, checkout: Path) -> None:
    stage = staged(tmp_path, checkout, python("print('FAILED x - y'); raise SystemExit(1)"))
    with pytest.raises(SuiteFails, match="FAILED x - y\nwithout a mutant: x"):
        stage.check()


def test_git_knows_the_files_of_the_copy(tmp_path: Path, checkout: Path) -> None:
    staged(tmp_path, checkout)
    listed = subprocess.run(
        ("git", "ls-files"), cwd=tmp_path / "checkout", capture_output=True, check=True
    )
    assert FILE in listed.stdout.decode().split()
