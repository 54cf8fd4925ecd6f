"""An image that does not say when it was built."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from tests.cluster.errors import BuildError
from tests.release.oci import Image, rewrite
from tests.unit.release.oci_archive import tar, write_image

EPOCH = 1_700_000_000


def rewritten(folder: Path, name: str, mtime: float, created: str) -> Path:
    layers = [tar({"a/old": b"1"}, EPOCH - 100), tar({"a/new": b"2"}, mtime)]
    built = write_image(folder / f"{name}.built", *layers, created=created)
    out = folder / f"{name}.tar"
    rewrite(built, out, reference="registry.example.com/gcu:1", epoch=EPOCH)
    return out


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return rewritten(tmp_path, "one", EPOCH + 5.25, "2030-01-01T00:00:00Z")


def test_two_builds_are_the_same_bytes(tmp_path: Path, image: Path) -> None:
    other = rewritten(tmp_path, "other", EPOCH + 99.5, "2031-01-01T00:00:00Z")
    assert other.read_bytes() == image.read_bytes()


def test_digests_and_sizes_are_those_of_the_blobs(image: Path) -> None:
    with tarfile.open(image) as archive:
        names = archive.getnames()
        assert names == sorted(names)
        for name in names:
            if name.startswith("blobs/"):
                content = archive.extractfile(name)
                assert content is not None
                assert hashlib.sha256(content.read()).hexdigest() == name.rpartition("/")[2]
        found = Image(archive)
        for described, contents in zip(
            found.manifest["layers"], found.config["rootfs"]["diff_ids"], strict=True
        ):
            blob = archive.extractfile("blobs/" + described["digest"].replace(":", "/"))
            assert blob is not None
            compressed = blob.read()
            assert len(compressed) == described["size"]
            unpacked = hashlib.sha256(gzip.decompress(compressed)).hexdigest()
            assert contents == f"sha256:{unpacked}"


def test_older_files_keep_their_time_and_all_keep_what_else_they_have(image: Path) -> None:
    """Python's bytecode has the time of its source."""
    files: list[tarfile.TarInfo] = []
    with tarfile.open(image) as archive:
        for layer in Image(archive).layers():
            with tarfile.open(fileobj=layer) as opened:
                files += opened
    assert [(each.name, each.mtime) for each in files] == [
        ("a/old", EPOCH - 100),
        ("a/new", EPOCH),
    ]
    for each in files:
        assert each.mode == 0o755
        assert each.pax_headers["SCHILY.xattr.user.kept"] == "yes"


def test_the_rest_of_the_configuration_stays(image: Path) -> None:
    with tarfile.open(image) as archive:
        found = Image(archive)
        index = archive.extractfile("index.json")
        assert index is not None
        [listed] = json.loads(index.read())["manifests"]
    assert found.manifest["annotations"] == {"kept": "yes"}
    assert found.config["config"] == {"User": "65532"}
    assert found.config["created"] == "2023-11-14T22:13:20Z"
    assert {each["created"] for each in found.config["history"]} == {"2023-11-14T22:13:20Z"}
    assert listed["annotations"] == {
        "org.opencontainers.image.ref.name": "registry.example.com/gcu:1"
    }


def test_a_file_is_read_from_the_uppermost_layer(tmp_path: Path) -> None:
    layers = [tar({"./etc/a": b"below", "b": b"x"}, 0), tar({"etc/a": b"above"}, 0)]
    with tarfile.open(write_image(tmp_path / "image", *layers)) as archive:
        image = Image(archive)
        assert [image.read(each) for each in ("etc/a", "b", "c")] == [b"above", b"x", None]


def test_what_is_no_image(tmp_path: Path) -> None:
    other = tmp_path / "other.tar"
    other.write_bytes(tar({"readme": b""}, 0))
    with pytest.raises(BuildError, match=r"no index\.json"):
        rewrite(other, tmp_path / "out.tar", reference="x:1", epoch=0)
