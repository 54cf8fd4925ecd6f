"""What is cached is used, what is stale goes, and nothing wrong is cached."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dra_driver.version import VERSION
from tests.cluster.build import silent
from tests.cluster.image import build as image
from tests.cluster.image.inputs import Inputs


class _Builder:
    """Stands for buildah and the context's script; notes the titles of what it was asked."""

    def __init__(self, source: Path) -> None:
        self.titles: list[str] = []
        self.edits = 0
        self._source = source

    def run(self, command: list[Any], *, title: str, **_: Any) -> None:
        self.titles.append(title)
        command[-1].mkdir()
        if self.edits:
            self.edits -= 1
            self._source.write_text(f"edited, {self.edits} to go")

    def build(self, context: Path, *arguments: str, title: str, **_: Any) -> None:
        self.titles.append(title.partition(" ")[0])
        assert context.is_dir()
        for argument in arguments:
            if argument.startswith("--tag=oci-archive:"):
                Path(argument.split(":")[1]).write_text("archive")

    def make_base(self, folder: Path, _: Any, snapshots: str) -> None:
        self.titles.append(f"debian {snapshots}".rstrip())


@pytest.fixture
def inputs(tmp_path: Path, cache: Path) -> Inputs:
    """A small checkout, with no image in the cache."""
    checkout = tmp_path / "checkout"
    for folder in ("scripts", "requirements", "tests/cluster/image"):
        (checkout / folder).mkdir(parents=True)
    for file in ("Dockerfile", "source.py"):
        (checkout / file).write_text("")
    script = checkout / "scripts" / "image-context"
    script.write_text("#!/bin/sh\necho source.py\n")
    script.chmod(0o755)
    return Inputs(checkout=checkout)


@pytest.fixture
def builder(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> _Builder:
    builder = _Builder(inputs.checkout / "source.py")
    monkeypatch.setattr(image, "run_contained", builder.run)
    monkeypatch.setattr(image, "build", builder.build)
    monkeypatch.setattr(image, "make_base", builder.make_base)
    return builder


def test_only_what_an_edit_changed_is_built_again(
    inputs: Inputs, builder: _Builder, cache: Path
) -> None:
    first = image.driver_archive(inputs, silent)
    assert builder.titles == ["wheels", "debian", "base", "dependencies'", "image"]
    assert image.driver_archive(inputs, silent) == first
    assert len(builder.titles) == 5
    (inputs.checkout / "source.py").write_text("edited")
    assert image.driver_archive(inputs, silent) != first
    assert builder.titles[5:] == ["wheels", "image"]
    (inputs.checkout / "Dockerfile").write_text("edited")
    image.driver_archive(inputs, silent)
    assert builder.titles[7:] == ["wheels", "base", "dependencies'", "image"]


def test_the_archive_is_all_that_stays(inputs: Inputs, builder: _Builder, cache: Path) -> None:
    archive = image.driver_archive(inputs, silent)
    assert archive.name == f"gcu-dra-driver-{VERSION}.tar"
    assert list(archive.parent.iterdir()) == [archive]


def test_a_base_from_a_registry_needs_no_debian(inputs: Inputs, builder: _Builder) -> None:
    base = f"example/python@sha256:{'0' * 64}"
    image.driver_archive(Inputs(base, inputs.checkout), silent)
    assert builder.titles == ["wheels", "dependencies'", "image"]


def test_another_state_of_debian_is_another_base(inputs: Inputs, builder: _Builder) -> None:
    image.driver_archive(inputs, silent)
    pinned = Inputs(checkout=inputs.checkout, snapshots="http://example/archive")
    image.driver_archive(pinned, silent)
    assert [title for title in builder.titles if title.startswith("debian")] == [
        "debian",
        "debian http://example/archive",
    ]


def test_sources_edited_meanwhile_are_built_again(inputs: Inputs, builder: _Builder) -> None:
    builder.edits = 2
    told: list[str] = []
    archive = image.driver_archive(inputs, told.append)
    assert len([line for line in told if "edited" in line]) == 2
    assert archive.parent.name == inputs.driver_key()
    drivers = [path for path in archive.parent.parent.glob("driver-*") if path.is_dir()]
    assert drivers == [archive.parent]


def test_only_the_latest_archives_stay(inputs: Inputs, builder: _Builder, cache: Path) -> None:
    images = cache / "images"
    for age in range(5):
        old = images / f"driver-{age}"
        old.mkdir(parents=True)
        os.utime(old, (1000 - age, 1000 - age))
    (images / "busybox-1").mkdir()
    archive = image.driver_archive(inputs, silent)
    left = {path.name for path in images.iterdir() if path.is_dir()}
    assert {name for name in left if name.startswith("driver-")} == {
        archive.parent.name,
        "driver-0",
        "driver-1",
    }
    assert "busybox-1" in left
    assert not [name for name in left if name.startswith(".")]


def test_use_counts_for_staying(inputs: Inputs, builder: _Builder, cache: Path) -> None:
    archive = image.driver_archive(inputs, silent)
    os.utime(archive.parent, (0, 0))
    image.driver_archive(inputs, silent)
    assert archive.parent.stat().st_mtime > 0
