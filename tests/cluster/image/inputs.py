"""What the image is made of, and the keys that follow from it."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import BuildError
from tests.cluster.image.base import base_key

_DIGEST = re.compile(r".@sha256:[0-9a-f]{64}\Z")
_CHECKOUT = Path(__file__).parents[3]

# What decides about the dependencies' layer; the rest of the image needs the sources too.
_RECIPE = ("Dockerfile", "requirements", "scripts/image-context", "tests/cluster/image")


@dataclass(frozen=True, slots=True)
class Inputs:
    """One checkout, and the image that it goes on.

    `base` is an image's name in a registry, with its digest, or "" for the Debian that is made
    here, from `snapshots` or from Debian's mirrors. Raises BuildError for a name without a digest.
    """

    base: str = ""
    checkout: Path = _CHECKOUT
    snapshots: str = ""

    def __post_init__(self) -> None:
        if self.base and not _DIGEST.search(self.base):
            raise BuildError(
                f"BASE={self.base} has no digest, and a tag can be moved to another image: name "
                "what it is now, as NAME@sha256:…, which "
                f"`skopeo inspect docker://{self.base}` prints"
            )
        if self.base and self.snapshots:
            raise BuildError(
                "BASE names the base, and SNAPSHOTS says from where one is made: give one of them"
            )

    @property
    def context_script(self) -> Path:
        """Writes the build's context to the folder that it is given."""
        return self.checkout / "scripts" / "image-context"

    def dependencies_key(self) -> str:
        """Names the dependencies' layer."""
        base = self.base or base_key(self.snapshots)
        return f"dependencies-{digest(self.checkout, _RECIPE, base, platform.machine())}"

    def driver_key(self) -> str:
        """Names the whole image. Raises BuildError when the sources cannot be listed."""
        return f"driver-{digest(self.checkout, self.sources(), self.dependencies_key())}"

    def sources(self) -> tuple[str, ...]:
        """Paths below the checkout that the wheel is made of, as the context's script lists them.

        Raises BuildError when the script fails.
        """
        command = [str(self.context_script), "--sources"]
        try:
            listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise BuildError(f"cannot list the image's sources: {error}") from error
        return tuple(listed.split())


def digest(top: Path, paths: Iterable[str], *words: str) -> str:
    """Sixteen hexadecimal digits that change with the words and with the names, contents and
    execution bits of the files at and below `paths`, relative to `top`; caches do not count."""
    whole = hashlib.sha256(repr(words).encode())
    for file in _files(top, paths):
        name = file.relative_to(top).as_posix()
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        whole.update(f"{name}\0{file.stat().st_mode & 0o111:o}\0{content}\n".encode())
    return whole.hexdigest()[:16]


def latest(folders: Sequence[Path], keep: int) -> frozenset[Path]:
    """The `keep` folders that were used last, by their times of change."""
    newest_first = sorted(folders, key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
    return frozenset(newest_first[:keep])


def _files(top: Path, paths: Iterable[str]) -> Iterator[Path]:
    for path in sorted(top / relative for relative in paths):
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in found:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file
