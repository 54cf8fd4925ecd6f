"""`kubectl-gcu` as one file, and the manifest by which krew installs it."""

from __future__ import annotations

import hashlib
import io
import re
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import yaml

from tests.release.archives import Entry, write_tar_gz
from tests.release.helm import CHECKOUT

PROGRAM: Final = "kubectl-gcu"
PLATFORM: Final = "linux-amd64"

_MAIN: Final = Path(__file__).with_name("zipapp_main.py")
_SHEBANG: Final = b"#!/usr/bin/env python3\n"
_NOT_NEEDED: Final = re.compile(r"(pip|grpcio)-|kubernetes/aio/|\.data/(scripts|data|headers)/")
_LIBRARY: Final = re.compile(r"^[^/]*\.data/(purelib|platlib)/")
_FIRST_YEAR: Final = 315_532_800  # 1980, that of zip
_DESCRIPTION: Final = (
    "Shows the GCUs of a cluster that the gcu-dra-driver serves: every card, its mode and its\n"
    "holders, as a table (inspect) or as a page (view); why a pod waits (explain), whether more\n"
    "pods would fit (plan), and what is wrong (doctor). It writes nothing.\n"
)


def write_zipapp(wheels: Iterable[Path], path: Path, epoch: int) -> None:
    """Write the program: what the wheels install, and what unpacks and runs it. The same wheels
    give the same bytes."""
    files = _contents(wheels)
    key = hashlib.sha256()
    for name, content in sorted(files.items()):
        key.update(f"{name}\0{len(content)}\0".encode() + content)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    main = _MAIN.read_text(encoding="utf-8").replace("@PYTHON@", python)
    files["__main__.py"] = main.replace("@KEY@", key.hexdigest()[:16]).encode()
    moment = time.gmtime(max(epoch, _FIRST_YEAR))[:6]
    with path.open("wb") as out:
        out.write(_SHEBANG)
        with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(files.items()):
                info = zipfile.ZipInfo(name, moment)
                info.external_attr = 0o644 << 16
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    path.chmod(0o755)


def _contents(wheels: Iterable[Path]) -> dict[str, bytes]:
    """By path what the wheels put into the folder of Python's packages (PEP 427)."""
    files: dict[str, bytes] = {}
    for wheel in wheels:
        if _NOT_NEEDED.match(wheel.name):
            continue
        with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as opened:
            for name in opened.namelist():
                if not name.endswith("/") and not _NOT_NEEDED.search(name):
                    files[_LIBRARY.sub("", name)] = opened.read(name)
    return files


def write_krew(program: Path, folder: Path, version: str, url: str, epoch: int) -> None:
    """Write the archive that krew takes, and its manifest, in which `url` is the folder where the
    archive will be."""
    archive = folder / f"{PROGRAM}-{version}-{PLATFORM}.tar.gz"
    entries = [Entry(PROGRAM, program, executable=True), Entry("LICENSE", CHECKOUT / "LICENSE")]
    write_tar_gz(archive, entries, epoch)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    text = yaml.safe_dump(manifest(version, f"{url}/{archive.name}", digest), sort_keys=False)
    (folder / "gcu.krew.yaml").write_text(text, encoding="utf-8")


def manifest(version: str, uri: str, digest: str) -> Mapping[str, object]:
    """The Plugin of krew (v1alpha2, sigs.k8s.io/krew pkg/index/types.go) for ``kubectl gcu``."""
    system, _, machine = PLATFORM.partition("-")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    platform = {
        "selector": {"matchLabels": {"os": system, "arch": machine}},
        "uri": uri,
        "sha256": digest,
        "files": [{"from": name, "to": "."} for name in (PROGRAM, "LICENSE")],
        "bin": PROGRAM,
    }
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "gcu"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Show GCUs, and why pods wait for them",
            "description": _DESCRIPTION,
            "caveats": f"It needs Python {python} as python3.\n",
            "platforms": [platform],
        },
    }
