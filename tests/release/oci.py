"""An image's OCI archive, written anew such that it does not say when it was built."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from tests.cluster.errors import BuildError
from tests.release.archives import Entry, compressed, write_tar

_REFERENCE: Final = "org.opencontainers.image.ref.name"
_BASE: Final = "org.opencontainers.image.base."
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"


class Image:
    """The only image of an archive. Raises BuildError where it is none."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        index = self._json("index.json")
        if len(index["manifests"]) != 1:
            raise BuildError(f"{archive.name!r} has {len(index['manifests'])} images, and not one")
        self.manifest = self._json(_blob(index["manifests"][0]["digest"]))
        self.config = self._json(_blob(self.manifest["config"]["digest"]))

    def layers(self) -> Iterator[IO[bytes]]:
        """Each layer's tar, compressed or not, from the lowest on."""
        for each in self.manifest["layers"]:
            yield self._open(_blob(each["digest"]))

    def read(self, path: str) -> bytes | None:
        """A file of the image, as its uppermost layer with it has it; None where none has it."""
        found = None
        for layer in self.layers():
            with tarfile.open(fileobj=layer) as files:
                for each in files:
                    if each.isfile() and each.name.lstrip("./") == path:
                        content = files.extractfile(each)
                        assert content is not None
                        found = content.read()
        return found

    def _json(self, name: str) -> Any:
        return json.loads(self._open(name).read())

    def _open(self, name: str) -> IO[bytes]:
        try:
            found = self._archive.extractfile(name)
        except KeyError as error:
            raise BuildError(f"{self._archive.name!r} is no OCI archive: no {name}") from error
        assert found is not None
        return found


def rewrite(archive: Path, out: Path, *, reference: str, epoch: int) -> None:
    """Write the image of `archive` to `out`, named `reference`. Nothing in it is later than
    `epoch`, seconds since 1970: files that were made by the build have its time. Older ones keep
    theirs, by which Python knows bytecode that belongs to them. Raises BuildError."""
    with tarfile.open(archive) as opened, tempfile.TemporaryDirectory(dir=out.parent) as folder:
        image = Image(opened)
        layers, contents = [], []
        for index, layer in enumerate(image.layers()):
            path = Path(folder, str(index))
            contents.append(_rewrite_layer(layer, path, epoch))
            layers.append(_descriptor(f"{_LAYER}+gzip", _digest(path), path.stat().st_size))
        config = _encode(_dated(image.config, contents, epoch))
        changed = {"config": _described(image, config), "layers": layers}
        manifest = _encode(image.manifest | changed | {"annotations": _annotations(image)})
        listed = _descriptor("application/vnd.oci.image.manifest.v1+json", *_of(manifest))
        index_json = {
            "schemaVersion": 2,
            "manifests": [listed | {"annotations": {_REFERENCE: reference}}],
        }
        entries: dict[str, bytes | Path] = {
            "oci-layout": _encode({"imageLayoutVersion": "1.0.0"}),
            "index.json": _encode(index_json),
            **{_blob(_of(each)[0]): each for each in (config, manifest)},
            **{
                _blob(each["digest"]): Path(folder, str(index)) for index, each in enumerate(layers)
            },
        }
        with out.open("wb") as file:
            write_tar(file, (Entry(*each) for each in entries.items()), epoch)


def _rewrite_layer(layer: IO[bytes], path: Path, epoch: int) -> str:
    """Write the layer, compressed, with no time after `epoch`; gives the digest of its tar."""
    hashed = _Hashed()
    with (
        tarfile.open(fileobj=layer) as files,
        path.open("wb") as file,
        compressed(file) as zipped,
    ):
        hashed.out = zipped
        with tarfile.open(fileobj=hashed, mode="w", format=tarfile.PAX_FORMAT) as written:
            for each in files:
                each.mtime = min(int(each.mtime), epoch)
                each.pax_headers = {
                    key: value for key, value in each.pax_headers.items() if "time" not in key
                }
                written.addfile(each, files.extractfile(each) if each.isfile() else None)
    return f"sha256:{hashed.hash.hexdigest()}"


class _Hashed(io.RawIOBase):
    """Hands on to `out` what is written, and hashes it."""

    def __init__(self) -> None:
        self.out: IO[bytes] | Any = None
        self.hash = hashlib.sha256()
        self._written = 0

    def write(self, data: Any) -> int:
        self.hash.update(data)
        self.out.write(data)
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written


def _dated(config: Any, contents: list[str], epoch: int) -> Any:
    moment = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    history = [each | {"created": moment} for each in config.get("history", ())]
    rootfs = config["rootfs"] | {"diff_ids": contents}
    return config | {"created": moment, "history": history, "rootfs": rootfs}


def _annotations(image: Image) -> dict[str, str]:
    """Without the base: buildah names an image that it made on the way, and its digest changes with
    the time of the build."""
    found = image.manifest.get("annotations") or {}
    return {key: value for key, value in found.items() if not key.startswith(_BASE)}


def _described(image: Image, config: bytes) -> Any:
    return _descriptor(image.manifest["config"]["mediaType"], *_of(config))


def _descriptor(media_type: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest, "size": size}


def _encode(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _of(content: bytes) -> tuple[str, int]:
    return f"sha256:{hashlib.sha256(content).hexdigest()}", len(content)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")
