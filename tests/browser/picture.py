"""Draws the picture of `kubectl gcu view` for the pages: `make picture`, of the running demo."""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dra_driver.kube.client import connect
from dra_driver.model.effects import Effects
from kubectl_gcu.arguments import parser
from kubectl_gcu.view.command import view
from tests.browser.chromium import Chromium
from tests.cluster import state
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.cluster.packages import BROWSER, install_missing
from tests.cluster.waiting import PATIENCE, wait_until

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
_WIDTH: Final = 1280
_MOST_BYTES: Final = 200 * 1024
_TWO_FRAMES: Final = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


@contextmanager
def serving(kubeconfig: Path, namespace: str) -> Iterator[str]:
    """Within it `kubectl gcu view` runs; gives the address of the page."""
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    out, stop = io.StringIO(), threading.Event()
    options = parser().parse_args(["view", "--no-open", f"--namespace={namespace}"])
    program = threading.Thread(target=view, args=(client, options, out, stop))
    program.start()
    try:
        yield wait_until(out.getvalue, PATIENCE, "an address").split()[0]
    finally:
        stop.set()
        program.join(PATIENCE)
        client.close()


def draw(kubeconfig: Path) -> bytes:
    """The page of that cluster as PNG, as high as it is."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(kubeconfig, "default") as address,
        Chromium(Path(folder) / "profile") as browser,
    ):
        browser.view(_WIDTH, 800)
        browser.open(address)
        browser.wait("document.querySelectorAll('#nodes .card').length > 0")
        browser.run("document.querySelector('.waiting button')?.click()")
        browser.wait("!document.querySelector('.answer:not([hidden]) p')")
        end = "document.querySelector('main').getBoundingClientRect().bottom"
        height = browser.run(f"Math.ceil({end})")
        browser.view(_WIDTH, height)
        browser.run(_TWO_FRAMES)
        return browser.picture()


def write(file: Path, drawn: bytes, most: int) -> None:
    """Write the picture. Raises ClusterError where it has more than `most` bytes."""
    if len(drawn) > most:
        raise ClusterError(f"{file.name}: {len(drawn)} bytes; at most {most} are for a page")
    file.write_bytes(drawn)
    print(f"{file}: {len(drawn)} bytes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the picture; gives the exit status."""
    found = argparse.ArgumentParser(prog="python -m tests.browser.picture", description=__doc__)
    found.add_argument("--name", default=state.DEFAULT, help="the cluster (default: %(default)s)")
    options = found.parse_args(arguments)
    try:
        install_missing(print, BROWSER)
        drawn = draw(Cluster.attach(options.name).kubeconfig)
        write(IMAGES / "view.png", drawn, _MOST_BYTES)
    except ClusterError as error:
        print(f"picture: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
