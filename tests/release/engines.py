"""The image by the engine of one's choice; the Dockerfile and its context are the same for all."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from dra_driver.version import VERSION
from tests.cluster.build import Report
from tests.cluster.errors import BuildError
from tests.cluster.image.inputs import Inputs

ENGINES: Final = ("buildah", "docker", "podman", "nerdctl")
"""buildah is used as `tests.cluster.image` has it, with a cache; the others have their own."""


def build_command(
    engine: str, *, context: Path, dockerfile: Path, name: str, base: str, version: str
) -> list[str]:
    """Builds the image `name` on `base`; the build needs no network but for the base."""
    return [
        engine,
        "build",
        f"--file={dockerfile}",
        f"--tag={name}",
        f"--build-arg=BASE={base}",
        f"--build-arg=VERSION={version}",
        str(context),
    ]


def build_with(engine: str, inputs: Inputs, name: str, report: Report) -> None:
    """Build the image into the engine's own storage. Raises BuildError."""
    if not inputs.base:
        raise BuildError(
            f"ENGINE={engine} needs a base from a registry: name one by its digest, "
            "BASE=NAME@sha256:…, or leave the engine to buildah, which makes one"
        )
    if shutil.which(engine) is None:
        raise BuildError(f"{engine} is not installed, or not on PATH")
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder, "context")
        command = build_command(
            engine,
            context=context,
            dockerfile=inputs.checkout / "Dockerfile",
            name=name,
            base=inputs.base,
            version=VERSION,
        )
        for each in ([str(inputs.context_script), str(context)], command):
            report(" ".join(each))
            status = subprocess.run(each, check=False).returncode
            if status:
                raise BuildError(f"{each[0]}: exit status {status}; its output is above")
