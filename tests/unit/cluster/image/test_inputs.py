"""The cache's keys follow what the image is made of, and nothing else."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.errors import BuildError
from tests.cluster.image.base import SNAPSHOT, command
from tests.cluster.image.inputs import Inputs, digest, latest
from tests.forked.programs import MEMORY

_CHECKOUT = Path(__file__).parents[4]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package and a file beside it."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "one.py").write_text("1")
    (tmp_path / "alone").write_text("alone")
    return tmp_path


def _edit(tree: Path) -> None:
    (tree / "package" / "one.py").write_text("2")


def _add(tree: Path) -> None:
    (tree / "package" / "two.py").write_text("")


def _rename(tree: Path) -> None:
    (tree / "package" / "one.py").rename(tree / "package" / "first.py")


def _make_executable(tree: Path) -> None:
    (tree / "alone").chmod(0o755)


def _compile(tree: Path) -> None:
    (tree / "package" / "__pycache__").mkdir()
    (tree / "package" / "__pycache__" / "one.pyc").write_text("compiled")


def _touch(tree: Path) -> None:
    os.utime(tree / "alone", (0, 0))


def _edit_elsewhere(tree: Path) -> None:
    (tree / "elsewhere").write_text("")


_Change = Callable[[Path], None]


@pytest.mark.parametrize("change", [_edit, _add, _rename, _make_executable])
def test_digest_follows_what_goes_in(tree: Path, change: _Change) -> None:
    before = digest(tree, ["package", "alone"])
    change(tree)
    assert digest(tree, ["package", "alone"]) != before


@pytest.mark.parametrize("change", [_compile, _touch, _edit_elsewhere])
def test_digest_ignores_what_does_not(tree: Path, change: _Change) -> None:
    before = digest(tree, ["package", "alone"])
    change(tree)
    assert digest(tree, ["alone", "package"]) == before


def test_digest_follows_the_words(tree: Path) -> None:
    assert digest(tree, ["alone"], "a", "b") != digest(tree, ["alone"], "ab")


def test_an_edit_of_the_source_leaves_the_dependencies(tmp_path: Path) -> None:
    for path in ("Dockerfile", "scripts", "requirements", "tests/cluster/image", "controller"):
        _copy(_CHECKOUT / path, tmp_path / path)
    for path in ("pyproject.toml", "README.md", "LICENSE", "dra_driver/version.py"):
        _copy(_CHECKOUT / path, tmp_path / path)
    inputs = Inputs(checkout=tmp_path)
    dependencies, driver = inputs.dependencies_key(), inputs.driver_key()
    (tmp_path / "dra_driver" / "version.py").write_text("VERSION = '0'")
    assert inputs.dependencies_key() == dependencies
    assert inputs.driver_key() != driver


BASE = f"example:5000/python@sha256:{'0' * 64}"


def test_another_base_is_another_image() -> None:
    all_of_them = [
        Inputs(),
        Inputs(BASE),
        Inputs(BASE.replace("0" * 64, "1" * 64)),
        Inputs(snapshots="http://example/archive"),
    ]
    assert len({inputs.dependencies_key() for inputs in all_of_them}) == 4
    assert len({inputs.driver_key() for inputs in all_of_them}) == 4


@pytest.mark.parametrize(
    "base",
    ["python", "python:3.11", "example:5000/python:3.11", BASE[:-1], f"{BASE}0", "@sha256:abc"],
)
def test_a_base_that_could_be_another_one_tomorrow_is_refused(base: str) -> None:
    with pytest.raises(BuildError, match=r"has no digest.*skopeo inspect docker://"):
        Inputs(base)


def test_one_base_is_named() -> None:
    with pytest.raises(BuildError, match="give one of them"):
        Inputs(BASE, snapshots="http://example/archive")


def test_packages_of_a_snapshot_are_all_of_one_moment() -> None:
    words = command("base.tar", "http://example/archive/")
    assert words[words.index("base.tar") + 1 :] == [
        f"deb http://example/archive/debian/{SNAPSHOT}/ bookworm main",
        f"deb http://example/archive/debian/{SNAPSHOT}/ bookworm-updates main",
        f"deb http://example/archive/debian-security/{SNAPSHOT}/ bookworm-security main",
    ]
    assert command("base.tar")[-2:] == ["bookworm", "base.tar"]


def test_the_sources_are_all_that_the_package_is_made_of() -> None:
    project = _pyproject()
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    metadata = [project["project"]["readme"], *project["project"]["license-files"]]
    wanted = {"pyproject.toml", *metadata, *(pattern.rstrip("*") for pattern in packages)}
    assert set(Inputs().sources()) == wanted


def test_every_package_is_compiled_in_the_image() -> None:
    dockerfile = (_CHECKOUT / "Dockerfile").read_text()
    for pattern in _pyproject()["tool"]["setuptools"]["packages"]["find"]["include"]:
        assert f"/site-packages/{pattern.rstrip('*')}" in dockerfile


def test_the_controller_runs_as_its_memory_is_measured() -> None:
    dockerfile = (_CHECKOUT / "Dockerfile").read_text()
    for name, value in MEMORY.items():
        assert f"\nENV {name}={value}\n" in dockerfile


def test_a_checkout_without_the_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="scripts/image-context"):
        Inputs(checkout=tmp_path).sources()


def test_latest_are_those_used_last(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder, used in zip(folders, (2, 3, 1), strict=True):
        folder.mkdir()
        os.utime(folder, (used, used))
    assert latest(folders, 2) == {folders[0], folders[1]}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((_CHECKOUT / "pyproject.toml").read_text())
