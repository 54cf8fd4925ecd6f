"""The workload image is a sound OCI archive."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import images
from tests.cluster.errors import ClusterError


@pytest.fixture
def archive(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tarfile.TarFile:
    """The archive made from a busybox of two tools."""
    busybox = tmp_path / "busybox"
    busybox.write_text("#!/bin/sh\nprintf 'busybox\\nsh\\nsleep\\n'\n")
    busybox.chmod(0o755)
    monkeypatch.setattr(images, "BUSYBOX", busybox)
    return tarfile.open(fileobj=io.BytesIO(images.busybox_archive().read_bytes()))


def content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def blob(archive: tarfile.TarFile, descriptor: dict[str, Any]) -> bytes:
    """What the descriptor refers to, checked against it."""
    found = content(archive, f"blobs/{descriptor['digest'].replace(':', '/')}")
    assert len(found) == descriptor["size"]
    assert f"sha256:{hashlib.sha256(found).hexdigest()}" == descriptor["digest"]
    return found


def test_every_reference_leads_to_its_blob(archive: tarfile.TarFile) -> None:
    described, public = json.loads(content(archive, "index.json"))["manifests"]
    assert described["annotations"]["io.containerd.image.name"] == "localhost/busybox:1"
    assert public["annotations"]["io.containerd.image.name"] == "docker.io/library/busybox:1.35"
    assert public["digest"] == described["digest"]
    manifest = json.loads(blob(archive, described))
    config = json.loads(blob(archive, manifest["config"]))
    [layer] = [gzip.decompress(blob(archive, item)) for item in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        assert files.getmember("bin/sh").linkname == "busybox"
        assert files.getmember("bin/busybox").mode == 0o755


def test_made_once(archive: tarfile.TarFile) -> None:
    written = images.busybox_archive().stat().st_mtime_ns
    assert images.busybox_archive().stat().st_mtime_ns == written


def test_missing_busybox_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "BUSYBOX", tmp_path / "none")
    with pytest.raises(ClusterError, match=r"tests\.cluster packages"):
        images.busybox_archive()
