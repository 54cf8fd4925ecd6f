"""buildah with a storage of its own."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.build import Report
from tests.cluster.image.contained import WORK, run_contained


def build(
    context: Path,
    *arguments: str | Path,
    folder: Path,
    title: str,
    report: Report,
    network: bool,
    storage: Path | None = None,
    completes: Path | None = None,
) -> None:
    """`buildah build` of the context, from `folder`.

    `storage` keeps the images and the base; without it nothing is kept. `completes` is a storage
    that is only read. Raises BuildError with the end of the output.
    """
    work = folder / WORK
    # vfs and chroot ask nothing special of the kernel, so they work in a container too.
    store = ["--storage-driver=vfs", f"--root={storage or work / 'storage'}"]
    store += [f"--runroot={work / 'run'}"]
    if completes is not None:
        store += [f"--storage-opt=vfs.imagestore={completes}"]
    run_contained(
        ["buildah", *store, "build", "--isolation=chroot", "--layers=false", *arguments, context],
        title=title,
        report=report,
        folder=folder,
        network=network,
    )
