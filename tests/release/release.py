"""All files of a release, in one folder."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_driver.version import VERSION
from tests.cluster.build import Report
from tests.cluster.errors import BuildError
from tests.release.chart_package import write_package
from tests.release.helm import CHART, CHECKOUT
from tests.release.manifests import MODES, PUBLISHED, render
from tests.release.notes import cut
from tests.release.oci import Image, rewrite
from tests.release.sbom import Package, document, installed, pinned
from tests.release.zipapp import PROGRAM, write_krew, write_zipapp

NAME: Final = "gcu-dra-driver"
SUMS: Final = "SHA256SUMS"
URL: Final = "https://example.com/gcu-dra-driver"

_PINS: Final = "opt/gcu-dra-driver/dependencies.txt"
_DPKG: Final = "var/lib/dpkg/status"
_OS: Final = ("etc/os-release", "usr/lib/os-release")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to release: `reference` is the image's name in its archive; `epoch` is the moment that
    all files have, in seconds since 1970. `url` is the folder from which they will be taken."""

    version: str
    out: Path
    reference: str
    epoch: int
    draft: bool
    url: str = URL

    def image_flags(self) -> tuple[str, str]:
        """Flags of helm, by which the chart's pods run the image."""
        repository, _, tag = self.reference.rpartition(":")
        return f"--set=image.repository={repository}", f"--set-string=image.tag={tag}"

    def check(self) -> None:
        """Raises BuildError where the checkout is not that version, or `out` has files."""
        if self.version != VERSION:
            raise BuildError(
                f"VERSION={self.version}, and dra_driver/version.py says {VERSION}: set it there "
                "and in Chart.yaml (version, appVersion), commit, and try again"
            )
        if self.out.exists() and any(self.out.iterdir()):
            raise BuildError(f"{self.out} is not empty: a release is made into a new folder")


def write_release(
    plan: Plan, *, archive: Path, wheels: Sequence[Path], helm: Path, report: Report
) -> None:
    """Write the chart's package, a manifest for each mode, the image of `archive`, its SBOM,
    the program `kubectl-gcu` of the `wheels` with its manifest for krew, the notes and the
    checksums. Raises BuildError, CommandError, OSError."""
    plan.check()
    notes = cut(
        (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8"), plan.version, draft=plan.draft
    )
    plan.out.mkdir(parents=True, exist_ok=True)
    (plan.out / "NOTES.md").write_text(notes, encoding="utf-8")
    report("chart")
    write_package(CHART, plan.out / f"{NAME}-{plan.version}.tgz", plan.epoch)
    for name, mode in MODES.items():
        text = render(helm, mode, flags=(*PUBLISHED, *plan.image_flags()))
        (plan.out / f"install-{name}.yaml").write_text(text, encoding="utf-8")
    report(PROGRAM)
    write_zipapp(wheels, plan.out / PROGRAM, plan.epoch)
    write_krew(plan.out / PROGRAM, plan.out, plan.version, plan.url, plan.epoch)
    report("image")
    image = plan.out / f"{NAME}-{plan.version}-image.tar"
    rewrite(archive, image, reference=plan.reference, epoch=plan.epoch)
    report("SBOM")
    text = document(NAME, plan.version, list(packages_of(image)), plan.epoch)
    (plan.out / f"{NAME}-{plan.version}.spdx.json").write_text(text, encoding="utf-8")
    (plan.out / SUMS).write_text(checksums(plan.out), encoding="utf-8")


def packages_of(archive: Path) -> Iterator[Package]:
    """The packages of Python and of Debian in the image. Raises BuildError where the image has no
    pins: it is another one."""
    with tarfile.open(archive) as opened:
        image = Image(opened)
        pins, status = image.read(_PINS), image.read(_DPKG)
        releases = [found for path in _OS if (found := image.read(path)) is not None]
    if pins is None:
        raise BuildError(f"{archive} has no {_PINS}: it is not the driver's image")
    yield from pinned(pins.decode())
    if status is not None and releases:
        yield from installed(status.decode(), distribution_of(releases[0].decode()))


def distribution_of(os_release: str) -> str:
    """Such as ``debian-12``, from os-release(5)."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    return "-".join(fields.get(key, "").strip('"') for key in ("ID", "VERSION_ID")).strip("-")


def checksums(folder: Path) -> str:
    """What `sha256sum --check` reads, of all files but its own."""
    lines = []
    for file in sorted(folder.iterdir()):
        if file.name != SUMS:
            with file.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            lines.append(f"{digest}  {file.name}\n")
    return "".join(lines)


def source_date(environ: Mapping[str, str] = os.environ) -> int:
    """SOURCE_DATE_EPOCH, or the time of the checkout's last commit. Raises BuildError."""
    text = environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    if not text.isdigit():
        raise BuildError(f"SOURCE_DATE_EPOCH={text} is no number of seconds since 1970")
    return int(text)


def refuse_uncommitted() -> None:
    """Raises BuildError where the checkout has changes: nobody could make the release again."""
    if changed := _git("status", "--porcelain"):
        raise BuildError(
            f"the checkout has changes that are not committed:\n{changed}\nCommit them, or make a "
            "draft (DRAFT=yes)"
        )


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"git does not answer ({error}); set SOURCE_DATE_EPOCH") from error
    return found.stdout.strip()
