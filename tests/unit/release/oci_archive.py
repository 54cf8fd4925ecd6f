"""A small image as a builder leaves it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAYER = "application/vnd.oci.image.layer.v1.tar"


def tar(files: Mapping[str, bytes], mtime: float) -> bytes:
    """With an extended attribute, as layers may have it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(content), mtime, 0o755
            info.pax_headers = {"SCHILY.xattr.user.kept": "yes", "mtime": str(mtime)}
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def write_image(path: Path, *layers: bytes, created: str = "2026-01-02T03:04:05.6Z") -> Path:
    """An OCI archive of an image of these layers, uncompressed."""
    blobs: dict[str, bytes] = {}

    def add(content: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    described = [add(each, LAYER) for each in layers]
    config = {
        "created": created,
        "config": {"User": "65532"},
        "history": [{"created": created, "created_by": "RUN x"} for _ in layers],
        "rootfs": {"type": "layers", "diff_ids": [each["digest"] for each in described]},
    }
    manifest = {
        "schemaVersion": 2,
        "config": add(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
        "layers": described,
        "annotations": {"org.opencontainers.image.base.digest": f"of {created}", "kept": "yes"},
    }
    index = {
        "schemaVersion": 2,
        "manifests": [
            add(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")
        ],
    }
    blobs |= {"index.json": json.dumps(index).encode(), "oci-layout": b"{}"}
    path.write_bytes(tar(blobs, 1e9))
    return path
