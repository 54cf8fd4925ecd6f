"""The parts of a release that need neither Helm nor an image."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from dra_driver.version import VERSION
from tests.cluster.errors import BuildError
from tests.cluster.image.inputs import Inputs
from tests.release.archives import Entry, write_tar_gz
from tests.release.chart_package import write_package
from tests.release.engines import build_command, build_with
from tests.release.helm import CHART, CHECKOUT
from tests.release.notes import cut
from tests.release.release import Plan, checksums, source_date

EPOCH = 1_700_000_000
CHANGELOG = """\
# Changelog

## Unreleased

## 0.2.0 - 2026-12-01
### Added
- A page ([gitops.md](docs/user/gitops.md)), and [a site](https://example.com).

## [0.1.0] - 2026-11-01
The first version.
"""


def test_an_archive_has_its_bytes_by_its_files_alone(tmp_path: Path) -> None:
    file = tmp_path / "b"
    file.write_bytes(b"2")
    file.chmod(0o600)
    for name, entries in (
        ("one.tgz", [Entry("b", file), Entry("a", b"1")]),
        ("other.tgz", [Entry("a", b"1"), Entry("b", b"2")]),
    ):
        write_tar_gz(tmp_path / name, entries, EPOCH)
    assert (tmp_path / "one.tgz").read_bytes() == (tmp_path / "other.tgz").read_bytes()
    with tarfile.open(tmp_path / "one.tgz") as archive:
        assert [(each.name, each.mtime, each.uid) for each in archive] == [
            ("a", EPOCH, 0),
            ("b", EPOCH, 0),
        ]


def test_the_chart_has_all_its_files_and_no_others(tmp_path: Path) -> None:
    package = tmp_path / "chart.tgz"
    write_package(CHART, package, EPOCH)
    with tarfile.open(package) as archive:
        names = set(archive.getnames())
    tracked = subprocess.run(
        ["git", "-C", str(CHART.parent), "ls-files", CHART.name],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert names == set(tracked)


def test_what_helmignore_names_stays_out(tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / ".helmignore").write_text("# editors\n.git/\n*.swp\n")
    for name in ("Chart.yaml", "templates/a.yaml", "templates/.a.yaml.swp"):
        (chart / name).write_text("")
    (chart / ".git").mkdir()
    (chart / ".git" / "config").write_text("")
    write_package(chart, tmp_path / "chart.tgz", EPOCH)
    with tarfile.open(tmp_path / "chart.tgz") as archive:
        assert archive.getnames() == [
            "chart/.helmignore",
            "chart/Chart.yaml",
            "chart/templates/a.yaml",
        ]


def test_the_notes_are_the_versions_section() -> None:
    notes = cut(CHANGELOG, "0.2.0", draft=False)
    assert notes == (
        "# gcu-dra-driver 0.2.0\n\n### Added\n"
        "- A page (gitops.md), and [a site](https://example.com).\n"
    )
    assert cut(CHANGELOG, "0.1.0", draft=False).endswith("The first version.\n")


def test_a_draft_has_what_is_not_released() -> None:
    unreleased = CHANGELOG.replace("## Unreleased\n", "## Unreleased\n- New.\n")
    assert cut(unreleased, "0.3.0", draft=True).endswith("\n- New.\n")
    for text, draft in ((unreleased, False), (CHANGELOG, True)):
        with pytest.raises(BuildError, match=r"no section 0\.3\.0: rename"):
            cut(text, "0.3.0", draft=draft)


def test_the_changelog_of_this_checkout_can_be_cut() -> None:
    text = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "### Added" in cut(text, VERSION, draft=True)


@pytest.mark.parametrize(
    ("version", "has_files", "words"),
    [("9.9.9", False, r"version\.py says"), (VERSION, True, "is not empty")],
)
def test_what_is_not_released(tmp_path: Path, version: str, has_files: bool, words: str) -> None:
    if has_files:
        (tmp_path / "old").write_text("")
    with pytest.raises(BuildError, match=words):
        Plan(version, tmp_path, "x:1", EPOCH, draft=False).check()


def test_checksums_are_what_sha256sum_reads(tmp_path: Path) -> None:
    for name in ("b", "a", "SHA256SUMS"):
        (tmp_path / name).write_text(name)
    (tmp_path / "SHA256SUMS").write_text(checksums(tmp_path))
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert checked.stdout == "a: OK\nb: OK\n"


def test_the_moment_of_a_release() -> None:
    assert source_date({"SOURCE_DATE_EPOCH": "5"}) == 5
    assert source_date({}) > 1_700_000_000
    with pytest.raises(BuildError, match="is no number of seconds"):
        source_date({"SOURCE_DATE_EPOCH": "today"})


@pytest.mark.parametrize("engine", ["docker", "podman", "nerdctl"])
def test_engines_are_given_the_same(tmp_path: Path, engine: str) -> None:
    command = build_command(
        engine,
        context=tmp_path,
        dockerfile=Path("/src/Dockerfile"),
        name="registry.example.com/gcu:1",
        base="python@sha256:0",
        version="1",
    )
    assert command == [
        engine,
        "build",
        "--file=/src/Dockerfile",
        "--tag=registry.example.com/gcu:1",
        "--build-arg=BASE=python@sha256:0",
        "--build-arg=VERSION=1",
        str(tmp_path),
    ]


def test_an_engine_needs_a_base(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="needs a base from a registry"):
        build_with("docker", Inputs(""), "x:1", print)
    base = f"python@sha256:{'0' * 64}"
    with pytest.raises(BuildError, match="is not installed"):
        build_with(str(tmp_path / "no-such-engine"), Inputs(base), "x:1", print)
