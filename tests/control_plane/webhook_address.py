"""Where API servers call the chart's webhooks: there is no Service's network here."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dra_driver.kube.client import Client
from dra_driver.kube.resources import Resource
from dra_driver.model.names import DRIVER

WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)


def call_directly(api: Client, address: object, port: int, authority: Path) -> None:
    """The configuration of the chart, with the address of the controller's process, whose
    certificate is of that authority."""
    bundle = base64.b64encode(authority.read_bytes()).decode()
    found = api.get(WEBHOOKS, DRIVER)
    for each in found["webhooks"]:
        client = each["clientConfig"]
        path = client.pop("service")["path"] if "service" in client else client["url"]
        path = "/" + str(path).rpartition("/")[2]
        client |= {"url": f"https://{address}:{port}{path}", "caBundle": bundle}
    api.replace(WEBHOOKS, found)


@contextmanager
def webhooks_restored(api: Client) -> Iterator[None]:
    """Whom API servers call within it, they do not call afterwards."""
    before = api.get(WEBHOOKS, DRIVER)["webhooks"]
    try:
        yield
    finally:
        api.replace(WEBHOOKS, {**api.get(WEBHOOKS, DRIVER), "webhooks": before})
