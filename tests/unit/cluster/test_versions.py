"""The table of programs agrees with the module files beside it."""

from __future__ import annotations

import re

import pytest

from tests.cluster.errors import ClusterError
from tests.cluster.versions import (
    COMPONENTS,
    PRE_RELEASES,
    REAL,
    RELEASES,
    SOURCES,
    programs,
)

# The configuration types of kube-proxy alone: v0.30.14 is not in the public checksum database.
OTHERS = {"1.30.14": {"k8s.io/kube-proxy"}}

BUILT = (*REAL, *PRE_RELEASES)

_MODULES = {
    "kubernetes": "k8s.io/kubernetes",
    "containerd": "github.com/containerd/containerd/v2",
    "helm": "helm.sh/helm/v4",
}


@pytest.mark.parametrize("kubernetes", BUILT)
def test_module_files_pin_the_versions_of_the_table(kubernetes: str) -> None:
    for program in programs(kubernetes):
        pinned = (SOURCES / program.name / program.version / "go.mod").read_text()
        assert f"{_MODULES[program.name]} v{program.version}" in pinned, program.name


@pytest.mark.parametrize("kubernetes", BUILT)
def test_every_staging_module_is_of_the_same_release(kubernetes: str) -> None:
    pinned = (SOURCES / "kubernetes" / kubernetes / "go.mod").read_text()
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) (\S+)$", pinned, re.MULTILINE)
    assert len(replaced) >= 30
    assert all(target == name for name, target, _ in replaced)
    versions = {
        name: version for name, _, version in replaced if name not in OTHERS.get(kubernetes, ())
    }
    assert set(versions.values()) == {f"v0.{kubernetes.split('.', 1)[1]}"}


@pytest.mark.parametrize("kubernetes", BUILT)
def test_version_string_reaches_the_linker(kubernetes: str) -> None:
    wanted = f"-X k8s.io/component-base/version.gitVersion=v{kubernetes} "
    assert wanted in programs(kubernetes)[0].linker_flags


@pytest.mark.parametrize("kubernetes", BUILT)
def test_components_are_those_of_the_program(kubernetes: str) -> None:
    source = (SOURCES / "kubernetes" / kubernetes / "components.go").read_text()
    compiled = re.findall(r'^\t"(\S+)":', source, re.MULTILINE)
    assert {*compiled, "etcd", "kubectl"} == set(COMPONENTS)


def test_a_version_before_a_final_one_is_of_its_minor_version_and_not_in_the_matrix() -> None:
    [beta] = [each for each in PRE_RELEASES if each.startswith("1.38.0-")]
    assert RELEASES[beta].minor == "1.38"
    assert "-X k8s.io/component-base/version.gitMinor=38 " in programs(beta)[0].linker_flags
    assert not set(PRE_RELEASES) & set(REAL)


@pytest.mark.parametrize("kubernetes", PRE_RELEASES)
def test_a_module_is_replaced_by_what_stands_in_for_it(kubernetes: str) -> None:
    pinned = (SOURCES / "kubernetes" / kubernetes / "go.mod").read_text()
    for each in RELEASES[kubernetes].stand_ins:
        assert f"\t{each.module} => ./{each.folder}\n" in pinned
        source = (SOURCES / "kubernetes" / each.pinned_by / "go.mod").read_text()
        assert f"\t{each.source} => {each.source} v0" in source


def test_unknown_version_says_what_to_add() -> None:
    with pytest.raises(ClusterError, match=r"programs/kubernetes/1\.29\.0/ with go\.mod"):
        programs("1.29.0")
