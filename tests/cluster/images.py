"""Images written without a builder: busybox for sandboxes and workloads, and kube-scheduler."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.cluster.cache import build_once, cache_root
from tests.cluster.configs import SANDBOX_IMAGE
from tests.cluster.errors import ClusterError

BUSYBOX = Path("/bin/busybox")

# The name of the same release in the public registry, so that examples run here as they are.
PUBLIC_NAME = "docker.io/library/busybox:1.35"

SCHEDULER_IMAGE = "localhost/kube-scheduler:1"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_USERS = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"


def busybox_archive() -> Path:
    """An OCI archive with the image localhost/busybox:1, from the machine's static busybox.

    It has its name in the public registry, too, for examples and for users' own pods. Its
    command sleeps for ever; it has a shell and all of busybox's tools.
    Raises ClusterError when busybox is not installed.
    """
    if not BUSYBOX.exists():
        raise ClusterError(
            f"{BUSYBOX}: not there; `python -m tests.cluster packages` installs busybox-static"
        )
    digest = hashlib.sha256(Path(__file__).read_bytes() + BUSYBOX.read_bytes()).hexdigest()[:12]

    def make(folder: Path) -> None:
        (folder / "busybox.tar").write_bytes(_archive(_layer(), SANDBOX_IMAGE, PUBLIC_NAME))

    folder = build_once(cache_root() / "images" / f"busybox-{digest}", make)
    return folder / "busybox.tar"


def scheduler_archive(programs: Path) -> Path:
    """An OCI archive with the image localhost/kube-scheduler:1, from the cluster's own program."""
    program = (programs / "kube-scheduler").resolve()
    name = f"kube-scheduler-{program.parent.parent.name}"

    def make(folder: Path) -> None:
        output = io.BytesIO()
        with tarfile.open(fileobj=output, mode="w") as layer:
            _add_file(layer, "bin/kube-scheduler", program.read_bytes(), 0o755)
        (folder / "image.tar").write_bytes(_archive(output.getvalue(), SCHEDULER_IMAGE))

    return build_once(cache_root() / "images" / name, make) / "image.tar"


def _layer() -> bytes:
    tools = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as layer:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            layer.addfile(entry)
        _add_file(layer, "etc/passwd", _USERS.encode(), 0o644)
        _add_file(layer, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for tool in tools.split():
            if tool != "busybox":
                entry = tarfile.TarInfo(f"bin/{tool}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                layer.addfile(entry)
    return output.getvalue()


def _archive(layer: bytes, *names: str) -> bytes:
    """An OCI image layout as one tar file (opencontainers/image-spec, image-layout.md)."""
    architecture = _ARCHITECTURES[platform.machine()]
    compressed = gzip.compress(layer, 1, mtime=0)
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": ["sleep", "infinity"], "Env": ["PATH=/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _descriptor("application/vnd.oci.image.config.v1+json", _json(config)),
        "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar+gzip", compressed)],
    }
    described = _descriptor(manifest["mediaType"], _json(manifest))
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described | {"annotations": _names(name)} for name in names],
    }
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        _add_file(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}', 0o644)
        _add_file(archive, "index.json", _json(index), 0o644)
        for blob in (_json(manifest), _json(config), compressed):
            _add_file(archive, f"blobs/{_digest(blob).replace(':', '/')}", blob, 0o644)
    return output.getvalue()


def _names(name: str) -> dict[str, str]:
    """containerd names an imported image by the first, other tools by the second."""
    return {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name,
    }


def _descriptor(media_type: Any, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _add_file(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
