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

from controller.legacy_resources.decision_cache import TRANSLATE
from controller.settings import ControllerSettings
from controller.webhook.service import AMOUNTS, LIMITS
from controller.webhook.webhook import Webhook
from dra_driver.kube.api import Api, Listing
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.resources import SERVICE_ACCOUNTS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import CLASS_SHARED, RESOURCE_SHARED
from tests.cluster.pki import Authority
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.legacy import asking
from tests.unit.controller.webhook.patching import admitted, review
from tests.unit.controller.webhook.test_amounts import OWN, claim, exactly
from tests.unit.kube.fakes import FakeWatch

LOCAL = IPv4Address("127.0.0.1")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def webhook(authority: Authority, registry: CollectorRegistry) -> Iterator[Webhook]:
    pair = authority.server("webhook", (LOCAL,))
    made = webhook_with(
        registry, webhook_certificate=pair.certificate, webhook_key=pair.key, webhook_port=0
    )
    made.start()
    yield made
    made.stop()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


class Accounts:
    """Plays `Api` with the one ServiceAccount that has the decision about limits."""

    def __init__(self, annotations: dict[str, str]) -> None:
        self._found: Object = {"metadata": {"name": "limits", "annotations": annotations}}

    def list(self, resource: Resource, *, namespace: str, field_selector: str, **_: Any) -> Listing:
        assert (resource, namespace) == (SERVICE_ACCOUNTS, "gcu")
        assert field_selector == "metadata.name=limits"
        return Listing((self._found,), "1")

    def watch(self, _resource: Resource, **_: Any) -> FakeWatch:
        return FakeWatch((), stays=True)


def webhook_with(
    registry: CollectorRegistry, api: Accounts | None = None, **settings: Any
) -> Webhook:
    """`api` is needed for events, and for the decision about limits where it is followed."""
    defaults = {"webhook_device_classes": f" {OWN},", "webhook_drain": 0.0}
    values = ControllerSettings.model_validate(defaults | settings)
    return Webhook(values, cast("Api", api), registry, identity="replica-0")


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


@pytest.mark.parametrize(
    ("annotations", "translated"),
    [({TRANSLATE: "true"}, True), ({TRANSLATE: "false"}, False), ({}, False)],
    ids=["claims", "left alone", "not decided"],
)
def test_limits_are_translated_as_was_decided(
    authority: Authority, registry: CollectorRegistry, annotations: dict[str, str], translated: bool
) -> None:
    pair = authority.server("webhook", (LOCAL,))
    webhook = webhook_with(
        registry,
        Accounts(annotations),
        webhook_certificate=pair.certificate,
        webhook_key=pair.key,
        webhook_port=0,
        legacy_resources_config="limits",
        lease_namespace="gcu",
    )
    webhook.start()
    trust = ssl.create_default_context(cafile=str(authority.certificate))

    def call(body: bytes) -> bytes:
        made = http.client.HTTPSConnection(str(LOCAL), webhook.port, context=trust, timeout=10)
        made.request("POST", LIMITS, body)
        with closing(made), made.getresponse() as found:
            return found.read()

    def limits_become_a_claim() -> bool:
        pod = asking("team", {RESOURCE_SHARED: "2"})
        return "resourceClaims" in admitted(call, pod)["spec"]

    try:
        assert webhook._decision_watch is not None
        assert webhook._decision_watch.synced.wait(PATIENCE)
        assert limits_become_a_claim() is translated
        assert webhook.live() is None
        webhook._decision_watch.stop(PATIENCE)
        assert webhook.live() == "the webhook's watch of the decision about limits ended"
    finally:
        webhook.stop()


def test_it_is_not_ready_before_it_knows_what_becomes_of_limits(
    authority: Authority, registry: CollectorRegistry
) -> None:
    """It would let pods pass that a policy then refuses."""

    class Away(Accounts):
        def list(self, resource: Resource, **_: Any) -> Listing:
            raise Unavailable(f"no answer about {resource.plural}")

    pair = authority.server("webhook", (LOCAL,))
    files = {"webhook_certificate": pair.certificate, "webhook_key": pair.key, "webhook_port": 0}
    found = {"lease_namespace": "gcu", "legacy_resources_config": "limits"}
    webhook = webhook_with(registry, Away({}), **files, **found)
    webhook.start()
    try:
        assert webhook.ready() == (
            "the admission webhook has not read yet whether limits become claims"
        )
    finally:
        webhook.stop()


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


def test_a_certificate_needs_its_key(registry: CollectorRegistry, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no certificate or no key"):
        webhook_with(registry, webhook_certificate=tmp_path / "tls.crt")
