"""The table of programs agrees with the module files beside it."""

from __future__ import annotations

import re

import pytest

from tests.cluster.errors import ClusterError
from tests.cluster.versions import DEFAULT_KUBERNETES, SOURCES, programs

_MODULES = {
    "kubernetes": "k8s.io/kubernetes",
    "containerd": "github.com/containerd/containerd/v2",
    "helm": "helm.sh/helm/v4",
}


def test_module_files_pin_the_versions_of_the_table() -> None:
    for program in programs():
        pinned = (SOURCES / program.name / program.version / "go.mod").read_text()
        assert f"{_MODULES[program.name]} v{program.version}" in pinned, program.name


def test_every_staging_module_is_of_the_same_release() -> None:
    pinned = (SOURCES / "kubernetes" / DEFAULT_KUBERNETES / "go.mod").read_text()
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) (\S+)$", pinned, re.MULTILINE)
    release = DEFAULT_KUBERNETES.split(".", 1)[1]
    assert len(replaced) >= 31
    assert all(target == name for name, target, _ in replaced)
    assert {version for _, _, version in replaced} == {f"v0.{release}"}


def test_version_string_reaches_the_linker() -> None:
    kubernetes = programs()[0]
    wanted = f"-X k8s.io/component-base/version.gitVersion=v{DEFAULT_KUBERNETES}"
    assert wanted in kubernetes.linker_flags


def test_unknown_version_says_what_to_add() -> None:
    with pytest.raises(ClusterError, match=r"programs/kubernetes/1\.29\.0/go\.mod"):
        programs("1.29.0")
