"""Build the driver's image as an OCI archive, in three steps that are cached apart."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from dra_driver.version import VERSION
from tests.cluster.build import Report
from tests.cluster.cache import build_once, cache_root
from tests.cluster.errors import BuildError
from tests.cluster.image.base import BASE_NAME, base_key, make_base
from tests.cluster.image.buildah import build
from tests.cluster.image.contained import run_contained
from tests.cluster.image.inputs import Inputs, latest

IMAGE_NAME = f"localhost/gcu-dra-driver:{VERSION}"
"""The name under which the archive's image is imported."""

_ARCHIVE = f"gcu-dra-driver-{VERSION}.tar"
_DEPENDENCIES_NAME = "localhost/gcu-dra-driver-dependencies"

# Other checkouts of this machine have images too; what is older only takes room.
_KEEP = {"base": 2, "dependencies": 2, "driver": 3}


class _EditedMeanwhile(BuildError):
    """The wheel may be of other sources than the key says."""


def driver_archive(inputs: Inputs, report: Report) -> Path:
    """The OCI archive of the image of these inputs, built unless it is in the cache.

    Needs root. Raises BuildError with the end of the builder's output.
    """
    while True:
        try:
            return _driver(inputs, report) / _ARCHIVE
        except _EditedMeanwhile as edited:
            report(str(edited))


def _driver(inputs: Inputs, report: Report) -> Path:
    key = inputs.driver_key()

    def make(folder: Path) -> None:
        context = _context(inputs, folder, report)
        if inputs.driver_key() != key:
            raise _EditedMeanwhile("the sources were edited while their wheel was made: again")
        dependencies = _dependencies(inputs, context, report)
        build(
            context,
            *_arguments(inputs),
            # Stands for the Dockerfile's stage of that name, which is then not built again.
            f"--build-context=dependencies=docker-image://{_DEPENDENCIES_NAME}",
            f"--tag=oci-archive:{folder / _ARCHIVE}:{IMAGE_NAME}",
            folder=folder,
            completes=dependencies,
            title=f"image {IMAGE_NAME}",
            report=report,
            network=False,
        )
        shutil.rmtree(context)

    return _cached(key, "image", make, report)


def _context(inputs: Inputs, folder: Path, report: Report) -> Path:
    context = folder / "context"
    command = [inputs.context_script, context]
    run_contained(command, title="wheels", report=report, folder=folder, network=True)
    return context


def _dependencies(inputs: Inputs, context: Path, report: Report) -> Path:
    """A storage that has the image of the Dockerfile's first stage."""

    def make(folder: Path) -> None:
        if not inputs.base:
            build(
                _base(inputs, report),
                f"--tag={BASE_NAME}",
                folder=folder,
                storage=folder / "storage",
                title="base image, import",
                report=report,
                network=False,
            )
        build(
            context,
            *_arguments(inputs),
            "--target=dependencies",
            f"--tag={_DEPENDENCIES_NAME}",
            folder=folder,
            storage=folder / "storage",
            title="dependencies' layer",
            report=report,
            network=bool(inputs.base),
        )

    return _cached(inputs.dependencies_key(), "dependencies' layer", make, report) / "storage"


def _base(inputs: Inputs, report: Report) -> Path:
    def make(folder: Path) -> None:
        make_base(folder, report, inputs.snapshots)

    return _cached(base_key(inputs.snapshots), "base image", make, report)


def _arguments(inputs: Inputs) -> tuple[str, ...]:
    return (
        f"--file={inputs.checkout / 'Dockerfile'}",
        f"--build-arg=BASE={inputs.base or BASE_NAME}",
        f"--build-arg=VERSION={VERSION}",
        f"--pull={'missing' if inputs.base else 'never'}",
    )


def _cached(key: str, what: str, make: Callable[[Path], None], report: Report) -> Path:
    """The cache's folder of that key; those of its kind that are not used any more go."""

    def waiting(seconds: float) -> None:
        report(f"{what}: another build of it is under way, waiting ({seconds:.0f} s)")

    images = cache_root() / "images"
    folder = build_once(images / key, make, waiting)
    os.utime(folder)
    kind = key.partition("-")[0]
    of_kind = [found for found in images.glob(f"{kind}-*") if found.is_dir()]
    for stale in set(of_kind) - latest(of_kind, _KEEP[kind]):
        report(f"{stale.name}: removing it, {_KEEP[kind]} others were used later")
        # Renamed first: a folder under its own name is complete.
        shutil.rmtree(stale.rename(images / f".{stale.name}.removed"))
    return folder
