"""Prometheus, which scrapes the driver's pods from beside the control plane."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.network import NETWORK, enter
from tests.cluster.packages import unpacked
from tests.cluster.waiting import PATIENCE, wait_until
from tests.e2e.installation import CHART, RELEASE, Installation

_NAME = "prometheus"
_INTERVAL = "1s"


class Prometheus:
    """A server at the address. Connections are not kept: each would outlive the test."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Labels and value of each series, as of now."""
        found: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return found

    def query_range(
        self, expression: str, begin: float, end: float, step: float
    ) -> list[dict[str, Any]]:
        """Labels and values of each series, every `step` seconds of that time since 1970."""
        times = {"start": f"{begin}", "end": f"{end}", "step": f"{step}"}
        found: list[dict[str, Any]] = self._get("query_range", query=expression, **times)["result"]
        return found

    def has_data(self, expression: str) -> bool:
        return bool(self.query(expression))

    def rules(self) -> dict[str, Mapping[str, Any]]:
        """By the name of the alert."""
        groups = self._get("rules")["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def is_ready(self) -> bool:
        with urllib3.PoolManager(timeout=5, retries=False) as pool:
            return pool.request("GET", f"{self._url}/-/ready").status == 200

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        with urllib3.PoolManager(timeout=10, retries=False) as pool:
            answer = pool.request("GET", f"{self._url}/api/v1/{path}", fields=query)
        found: dict[str, Any] = json.loads(answer.data)["data"]
        return found


@contextmanager
def scraping(
    driver: Installation, folder: Path, report: Callable[[str], None]
) -> Iterator[Prometheus]:
    """A server with the chart's alerts, which scrapes each of the driver's pods once a second with
    the labels that the chart's PodMonitor would add."""
    options = "monitoring.prometheusRule.enabled=true"
    rendered = driver.cluster.helm(
        "template", RELEASE, str(CHART), f"--set={options}", "--show-only",
        "templates/monitoring/prometheusrule.yaml",
    )  # fmt: skip
    (folder / "rules.yaml").write_text(yaml.safe_dump(yaml.safe_load(rendered)["spec"]))
    configuration = {
        "global": {"scrape_interval": _INTERVAL, "evaluation_interval": _INTERVAL},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": RELEASE,
                "honor_labels": True,
                "static_configs": list(_targets(driver)),
            }
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    context = driver.cluster.context
    address = f"{context.addresses.control_plane}:9090"
    command = [
        *enter(context.processes.get(NETWORK)),
        str(unpacked("prometheus", report) / "usr/bin/prometheus"),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    # A proxy of this machine knows nothing of the cluster's pods.
    context.processes.start(_NAME, command, {"http_proxy": "", "HTTP_PROXY": ""})
    try:
        found = Prometheus(address)
        log = partial(context.processes.tail, _NAME)
        wait_until(
            found.is_ready,
            PATIENCE,
            "Prometheus",
            seen=log,
            retry_on=(urllib3.exceptions.HTTPError,),
        )
        yield found
    finally:
        context.processes.end(_NAME)


def _targets(driver: Installation) -> Iterator[dict[str, Any]]:
    for pod in driver.cluster.get("pods", f"--namespace={DRIVER_NAMESPACE}")["items"]:
        labels = {
            "node": pod["spec"]["nodeName"],
            "pod": pod["metadata"]["name"],
            "namespace": DRIVER_NAMESPACE,
        }
        yield {"targets": [f"{pod['status']['podIP']}:8080"], "labels": labels}
