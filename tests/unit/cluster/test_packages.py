"""The list of Debian packages is complete and explained."""

from __future__ import annotations

from tests.cluster.packages import LIST, needed_packages


def test_every_package_says_what_for() -> None:
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == len(needed_packages()) == len(set(needed_packages()))
    assert all(" # " in line for line in lines)


def test_what_images_are_built_with_is_there() -> None:
    assert {"buildah", "mmdebstrap", "busybox-static", "runc"} <= set(needed_packages())
