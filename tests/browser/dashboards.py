"""Draws the chart's Grafana dashboards of the running demo: `make picture`.

Prometheus itself scrapes the driver, pods come and go meanwhile, and each query of each panel has
to find something.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from dra_driver.model.mode import Mode
from tests.browser import images
from tests.browser.chromium import Chromium
from tests.browser.panels import WIDTH, Series, height, page
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import CHART, Installation
from tests.e2e.manifests import claim, claim_in, pod_with
from tests.e2e.prometheus import Prometheus, scraping

_NAMESPACE: Final = "pictures"
_SCOPE: Final = f"--namespace={_NAMESPACE}"
_MOST_BYTES: Final = 300 * 1024
_SHAPES: Final = (
    (Mode.SHARED, 2), (Mode.WHOLE, None), (Mode.DRS, 3), (Mode.SHARED, 1), (Mode.DRS, 1),
)  # fmt: skip
_ALIVE: Final = 3  # pods, and up to as many more
_WAVE: Final = 100.0  # seconds in which the pods become more and fewer again
_PAUSE: Final = 3.0  # between two changes: the recording shows that pace
_STEPS: Final = 200  # of a range


def churn(cluster: Cluster, seconds: float) -> None:
    """Pods of all modes come and go for that long, the oldest first."""
    begin, made, alive = time.monotonic(), 0, list[str]()
    while (spent := time.monotonic() - begin) < seconds:
        if len(alive) < _ALIVE * (1.5 - 0.5 * math.cos(2 * math.pi * spent / _WAVE)):
            mode, amount = _SHAPES[made % len(_SHAPES)]
            name = f"work-{made}"
            wanted = claim_in(mode, name, _NAMESPACE, amount), pod_with(name, _NAMESPACE)
            cluster.apply(*wanted)
            alive.append(name)
            made += 1
        else:
            name = alive.pop(0)
            for kind in ("pod", "resourceclaim"):
                cluster.kubectl("delete", kind, name, _SCOPE, "--wait=false")
        time.sleep(_PAUSE)


@contextmanager
def trouble(driver: Installation) -> Iterator[None]:
    """Within it one card is unhealthy, and a pod waits for more cards than a node has."""
    cluster = driver.cluster
    cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found", "--wait")
    cluster.kubectl("create", "namespace", _NAMESPACE)
    cluster.apply(claim("too-many", _NAMESPACE, count=9), pod_with("too-many", _NAMESPACE))
    machine = driver.machine(first_node(driver))
    card = max(each.bdf for each in machine.state().cards)
    machine.set_card(card, health=False)
    try:
        yield
    finally:
        machine.set_card(card, health=True)
        cluster.kubectl("delete", "namespace", _NAMESPACE, "--wait")


def first_node(driver: Installation) -> str:
    """That which the dashboard of a node shows when it is opened."""
    return min(driver.machines)


def read(
    prometheus: Prometheus, node: str, begin: float, end: float, target: Mapping[str, Any]
) -> list[Series]:
    """What a target of a panel finds between these times, in seconds since 1970."""
    query = target["expr"].replace("$node", node)
    if target.get("instant"):
        found = prometheus.query(query)
        return [Series(each["metric"], [point(each["value"])]) for each in found]
    step = (end - begin) / _STEPS
    times = [begin + number * step for number in range(_STEPS + 1)]
    series = []
    for each in prometheus.query_range(query, begin, end, step):
        known = {round((at - begin) / step): value for at, value in map(point, each["values"])}
        points = [(at, known.get(number, math.nan)) for number, at in enumerate(times)]
        series.append(Series(each["metric"], points))
    return series


def point(sample: Sequence[Any]) -> tuple[float, float]:
    """A sample as Prometheus' API has it: a number, and a text."""
    at, value = sample
    return float(at), float(value)


def drawn(html: str, high: int, folder: Path) -> bytes:
    """The page as PNG."""
    file = folder / "page.html"
    file.write_text(html)
    with Chromium(folder / "profile") as browser:
        browser.view(WIDTH, high)
        browser.open(file.as_uri())
        browser.wait("document.readyState === 'complete' && document.querySelector('section')")
        return browser.picture()


def draw(driver: Installation, seconds: float, report: Callable[[str], None]) -> None:
    """Record for that long, and write a picture of each dashboard. Raises ClusterError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with scraping(driver, folder, report) as prometheus, trouble(driver):
            for first in ("gcu_card_info", "gcu_controller_leading"):
                wait_until(partial(prometheus.has_data, first), PATIENCE, first)
            begin = time.time()
            report(f"pods come and go for {seconds:.0f} s")
            churn(driver.cluster, seconds)
            reading = partial(read, prometheus, first_node(driver), begin, time.time())
            files = sorted((CHART / "files/dashboards").glob("*.json"))
            found = {file.stem: json.loads(file.read_text()) for file in files}
            pages = {stem: page(each, reading) for stem, each in found.items()}
        for stem, html in pages.items():
            (folder / stem).mkdir()
            image = drawn(html, height(found[stem]), folder / stem)
            images.write(f"dashboard-{stem}.png", image, _MOST_BYTES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.dashboards", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=360.0, help="how long to record (default: %(default)s)"
    )
    return images.run(
        parser,
        arguments,
        lambda cluster, options: draw(Installation(cluster), options.seconds, print),
    )


if __name__ == "__main__":
    sys.exit(main())
