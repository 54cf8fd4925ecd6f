"""What is in the image, as an SPDX 2.3 document (spdx.github.io/spdx-spec/v2.3)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", re.MULTILINE)
_NOT_IN_ID: Final = re.compile(r"[^A-Za-z0-9.-]")
_INSTALLED: Final = "install ok installed"


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """`kind` is ``pypi`` or ``deb``; `purl` is its package URL."""

    kind: str
    name: str
    version: str
    purl: str

    @property
    def id(self) -> str:
        return f"SPDXRef-{self.kind}-{_NOT_IN_ID.sub('-', self.name)}"


def pinned(requirements: str) -> Iterator[Package]:
    """The packages of a requirements file, as pip-compile writes it."""
    for name, version in _PIN.findall(requirements):
        normal = re.sub(r"[-_.]+", "-", name).lower()
        yield Package("pypi", normal, version, f"pkg:pypi/{normal}@{quote(version, safe='')}")


def installed(status: str, distribution: str) -> Iterator[Package]:
    """The packages that dpkg's `status` lists as installed, on a ``debian-12``, say."""
    for paragraph in status.split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in paragraph.splitlines()
            if ": " in line and not line.startswith(" ")
        )
        if fields.get("Status") == _INSTALLED:
            name, version = fields["Package"], fields["Version"]
            architecture = fields["Architecture"]
            purl = (
                f"pkg:deb/debian/{quote(name, safe='')}@{quote(version, safe='')}"
                f"?arch={architecture}&distro={distribution}"
            )
            # Debian may have a package installed for two architectures.
            yield Package("deb", f"{name}-{architecture}", version, purl)


def document(name: str, version: str, packages: Sequence[Package], epoch: int) -> str:
    """The document, as JSON, about the image `name` of this `version`. Its namespace follows from
    what it says, so that another document has another one."""
    image = {
        "SPDXID": "SPDXRef-image",
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseDeclared": "Apache-2.0",
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "CONTAINER",
    }
    listed = sorted(set(packages))
    described = [image, *(_described(each) for each in listed)]
    text = json.dumps(described, sort_keys=True)
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": "https://spdx.org/spdxdocs/"
        f"{name}-{version}-{hashlib.sha256(text.encode()).hexdigest()[:32]}",
        "creationInfo": {"created": created, "creators": [f"Tool: {name} make release"]},
        "packages": described,
        "relationships": [
            _related("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image"),
            *(_related("SPDXRef-image", "CONTAINS", each.id) for each in listed),
        ],
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _described(package: Package) -> dict[str, Any]:
    reference = {
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": package.purl,
    }
    return {
        "SPDXID": package.id,
        "name": package.name,
        "versionInfo": package.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        # Neither pins nor dpkg's status have it.
        "licenseDeclared": "NOASSERTION",
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [reference],
    }


def _related(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
