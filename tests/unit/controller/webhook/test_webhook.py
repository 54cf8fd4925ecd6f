"""The webhook over HTTPS, as an API server calls it."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import closing
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from controller.main import webhook_of
from controller.settings import ControllerSettings
from controller.webhook.service import AMOUNTS
from controller.webhook.webhook import Webhook
from dra_driver.kube.api import Api
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import CLASS_SHARED
from tests.cluster.pki import Authority
from tests.cluster.waiting import PATIENCE, wait_until
from tests.unit.controller.webhook.patching import admitted, review
from tests.unit.controller.webhook.test_amounts import OWN, claim, exactly

LOCAL = IPv4Address("127.0.0.1")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def webhook(authority: Authority, registry: CollectorRegistry) -> Iterator[Webhook]:
    pair = authority.server("webhook", (LOCAL,))
    made = started(
        registry, webhook_certificate=pair.certificate, webhook_key=pair.key, webhook_port=0
    )
    assert made is not None
    made.start()
    yield made
    made.stop()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def started(registry: CollectorRegistry, **settings: Any) -> Webhook | None:
    """Without an API server, which it needs for events alone."""
    defaults = {"webhook_device_classes": f" {OWN},", "webhook_drain": 0.0}
    values = ControllerSettings.model_validate(defaults | settings)
    return webhook_of(values, cast("Api", None), registry, identity="replica-0")


@pytest.mark.parametrize("device_class", [CLASS_SHARED, OWN])
def test_an_api_server_is_answered(
    webhook: Webhook, authority: Authority, device_class: str
) -> None:
    """It trusts the authority, and shows no certificate."""
    trust = ssl.create_default_context(cafile=str(authority.certificate))

    def call(body: bytes) -> bytes:
        made = http.client.HTTPSConnection(str(LOCAL), webhook.port, context=trust, timeout=10)
        made.request("POST", f"{AMOUNTS}?timeout=5s", body)
        with closing(made), made.getresponse() as found:
            assert found.status == 200
            return found.read()

    assert b'"uid":"review-1"' in call(review(claim([], [])))
    stored = admitted(call, claim([exactly("a", device_class, slices="2")], []))
    assert stored["spec"]["devices"]["config"][0]["opaque"]["parameters"]["slices"] == 2


def test_its_threads_and_its_certificate_are_watched(
    webhook: Webhook, registry: CollectorRegistry
) -> None:
    assert webhook.live() is None
    name = "gcu_webhook_certificate_expiration_timestamp_seconds"
    wait_until(
        lambda: registry.get_sample_value(name, {"certificate": "server"}), PATIENCE, "the metric"
    )
    webhook.stop()
    assert webhook.live() == "the server of the webhook ended"


def test_there_is_none_without_a_certificate(registry: CollectorRegistry) -> None:
    assert started(registry) is None


def test_a_certificate_needs_its_key(registry: CollectorRegistry, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no certificate or no key"):
        started(registry, webhook_certificate=tmp_path / "tls.crt")
