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
from kubectl_gcu import arguments as kubectl_arguments
from kubectl_gcu.view.command import view
from tests.browser import images
from tests.browser.chromium import Chromium
from tests.cluster.waiting import PATIENCE, wait_until

_WIDTH: Final = 1280
_MOST_BYTES: Final = 200 * 1024
_TWO_FRAMES: Final = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


@contextmanager
def serving(kubeconfig: Path, namespace: str) -> Iterator[str]:
    """Within it `kubectl gcu view` runs; gives the address of the page."""
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    out, stop = io.StringIO(), threading.Event()
    options = kubectl_arguments.parser().parse_args(
        ["view", "--no-open", f"--namespace={namespace}"]
    )
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the picture; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.picture", description=__doc__)
    return images.run(
        parser,
        arguments,
        lambda cluster, _: images.write("view.png", draw(cluster.kubeconfig), _MOST_BYTES),
    )


if __name__ == "__main__":
    sys.exit(main())
