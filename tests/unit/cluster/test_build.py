"""Programs are built from their own inputs into their own place, once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster import versions
from tests.cluster.build import build, silent
from tests.cluster.errors import BuildError
from tests.cluster.stand_ins import StandIn
from tests.cluster.versions import Program

# Takes the place of `go`: notes the call and writes what `-o` names.
_FAKE_GO = """#!/bin/sh
echo "$GOTOOLCHAIN $@" >>"$CALLS"
if [ "$1" = version ]; then
  [ -z "$NO_TOOLCHAIN" ] && exit
  echo "go: download go1.2.3: toolchain not available" >&2; exit 1
fi
if [ "$1 $2" = "mod download" ]; then
  grep -q pinned go.sum || exit 1
  echo "go: downloading $4 v1"; echo "{"; echo "\\"Dir\\": \\"$MODULE\\"}"; exit
fi
echo "go: downloading example.test/module v1"
echo example.test/module/package
if [ -n "$FAIL" ]; then echo "main.go:1: broken" >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
cat go.mod main.go $(find . -name '*.part.go') >"$2/tool"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with one line for each call of the compiler."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "go").write_text(_FAKE_GO)
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    for name in ("FAIL", "NO_TOOLCHAIN", "GOTOOLCHAIN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "calls"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program whose sources are the test's own."""
    sources = tmp_path / "sources"
    (sources / "tool" / "1.2.3").mkdir(parents=True)
    (sources / "tool" / "main.go").write_text("main\n")
    (sources / "tool" / "1.2.3" / "go.mod").write_text("mod\n")
    monkeypatch.setattr(versions, "SOURCES", sources)
    return Program("tool", "1.2.3", packages=("./...",), aliases=("hammer", "saw"))


def test_built_once(program: Program, calls: Path, cache: Path) -> None:
    binaries = build(program, silent)
    assert build(program, silent) == binaries
    assert binaries == cache / "programs" / program.key() / "bin"
    # The binary is called as its program is: an alias links to it by that name.
    assert (binaries / "tool").read_text() == "mod\nmain\n"
    assert (binaries / "hammer").resolve() == (binaries / "saw").resolve() == binaries / "tool"
    assert len(calls.read_text().splitlines()) == 1
    assert "-trimpath" in calls.read_text()


@pytest.mark.parametrize("changed", ["main.go", "1.2.3/go.mod"])
def test_changed_input_is_another_build(
    program: Program, calls: Path, cache: Path, changed: str
) -> None:
    first = build(program, silent)
    (versions.SOURCES / "tool" / changed).write_text("changed\n")
    second = build(program, silent)
    assert first != second
    assert "changed" in (second / "tool").read_text()
    assert (first / "tool").read_text() == "mod\nmain\n"


def test_failure_shows_the_compiler_and_leaves_nothing(
    program: Program, calls: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "yes")
    with pytest.raises(BuildError, match=r"main\.go:1: broken"):
        build(program, silent)
    assert [path.suffix for path in (cache / "programs").iterdir()] == [".lock"]


def test_a_program_is_built_by_the_toolchain_that_it_names(
    program: Program, calls: Path, cache: Path
) -> None:
    named = replace(program, toolchain="go1.2.3")
    assert named.key() != program.key()
    build(named, silent)
    called = calls.read_text().splitlines()
    assert called[0] == "go1.2.3 version"
    assert called[1].startswith("go1.2.3 build ")
    build(program, silent)
    assert calls.read_text().splitlines()[-1].startswith(" build ")


def test_a_toolchain_that_cannot_be_fetched_is_named(
    program: Program, calls: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_TOOLCHAIN", "yes")
    wanted = r"(?s)1\.2\.3 is built by go1\.2\.3, .* install that version of Go.* not available"
    with pytest.raises(BuildError, match=wanted):
        build(replace(program, toolchain="go1.2.3"), silent)


def test_a_module_that_cannot_be_had_is_made_of_another_one(
    program: Program, calls: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that the module file of an earlier version pins, and of files beside its own."""
    earlier = versions.SOURCES / "tool" / "1.1.0"
    earlier.mkdir()
    (earlier / "go.mod").write_text("mod\n")
    (earlier / "go.sum").write_text("pinned\n")
    beside = versions.SOURCES / "tool" / "1.2.3" / "new" / "pkg"
    beside.mkdir(parents=True)
    (beside / "own.part.go").write_text("own\n")
    module = tmp_path / "module"
    (module / "pkg").mkdir(parents=True)
    (module / "pkg" / "moved.part.go").write_text("moved\n")
    monkeypatch.setenv("MODULE", str(module))
    stand_in = StandIn("example.test/new", "example.test/old", "1.1.0", ("pkg",))
    made = build(replace(program, stand_ins=(stand_in,)), silent)
    assert sorted((made / "tool").read_text().split()) == ["main", "mod", "moved", "own"]
    assert " mod download -json example.test/old" in calls.read_text()


def test_missing_compiler_is_named(
    program: Program, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"install Go 1\.26"):
        build(program, silent)


def test_progress_tells_what_is_built(program: Program, calls: Path, cache: Path) -> None:
    lines: list[str] = []
    build(program, lines.append)
    assert lines[0] == "tool 1.2.3: building (once a machine)"
    assert lines[-1].startswith("tool 1.2.3: built in ")
