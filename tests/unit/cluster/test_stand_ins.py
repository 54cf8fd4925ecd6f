"""A module that cannot be had is made of the packages that were moved into it."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.stand_ins import StandIn

STAND_IN = StandIn(
    "example.test/new/api",
    source="example.test/old",
    pinned_by="1.0.0",
    packages=("pkg/a", "pkg/b"),
    without=("left.go",),
    imports=(("example.test/lib/v6", "example.test/lib/v7"),),
)
FILES = {
    "pkg/a/types.go": 'import "example.test/old/pkg/b"\nconst name = "example.test.old.A"\n',
    "pkg/a/left.go": "",
    "pkg/a/types_test.go": "",
    "pkg/a/types.proto": "",
    "pkg/b/deep/client.go": 'import "example.test/lib/v6/value"\n',
    "pkg/other/server.go": "",
}


def test_packages_are_copied_without_tests_and_what_stayed(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / STAND_IN.folder
    for place, text in FILES.items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        (source / place).write_text(text)
    (target / "pkg" / "a").mkdir(parents=True)
    (target / "pkg" / "a" / "own.go").write_text("package a\n")
    STAND_IN.write(source, target)
    found = {f.relative_to(target).as_posix(): f.read_text() for f in target.rglob("*.go")}
    assert found == {
        "pkg/a/own.go": "package a\n",
        "pkg/a/types.go": 'import "example.test/new/api/pkg/b"\n'
        'const name = "example.test.old.A"\n',
        "pkg/b/deep/client.go": 'import "example.test/lib/v7/value"\n',
    }
