"""What is in the image, as an SPDX document."""

from __future__ import annotations

import json

import pytest

from tests.release.release import distribution_of
from tests.release.sbom import Package, document, installed, pinned

PINS = """\
# pip-compile --generate-hashes
aiohttp==3.14.5 \\
    --hash=sha256:0133
Jaraco_Text.x==1.0+local
"""
STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u9
Description: the C library
 Package: not this

Package: libstdc++6
Status: install ok installed
Architecture: amd64
Version: 1:12.2.0-14

Package: removed
Status: deinstall ok config-files
Architecture: all
Version: 1
"""


def test_pins() -> None:
    assert list(pinned(PINS)) == [
        Package("pypi", "aiohttp", "3.14.5", "pkg:pypi/aiohttp@3.14.5"),
        Package("pypi", "jaraco-text-x", "1.0+local", "pkg:pypi/jaraco-text-x@1.0%2Blocal"),
    ]


def test_packages_of_debian_that_are_installed() -> None:
    assert [each.purl for each in installed(STATUS, "debian-12")] == [
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u9?arch=amd64&distro=debian-12",
        "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2.0-14?arch=amd64&distro=debian-12",
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [('ID=debian\nVERSION_ID="12"\n', "debian-12"), ("ID=debian\n", "debian"), ("", "")],
)
def test_the_distribution(text: str, name: str) -> None:
    assert distribution_of(text) == name


def test_the_document() -> None:
    packages = [*installed(STATUS, "debian-12"), *pinned(PINS)]
    text = document("gcu", "1.2.3", packages, 1_700_000_000)
    assert text == document("gcu", "1.2.3", [*reversed(packages), packages[0]], 1_700_000_000)
    found = json.loads(text)
    assert found["spdxVersion"] == "SPDX-2.3"
    assert found["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
    ids = [each["SPDXID"] for each in found["packages"]]
    assert len(set(ids)) == len(ids) == 5
    assert all(set(each) <= set(VALID) for each in ids)
    related = {
        (each["spdxElementId"], each["relationshipType"], each["relatedSpdxElement"])
        for each in found["relationships"]
    }
    assert related == {
        ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image"),
        *(("SPDXRef-image", "CONTAINS", each) for each in ids[1:]),
    }


VALID = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"


def test_another_content_is_another_document() -> None:
    packages = list(pinned(PINS))
    namespaces = {
        json.loads(document("gcu", "1", some, 0))["documentNamespace"]
        for some in (packages, packages[:1])
    }
    assert len(namespaces) == 2
