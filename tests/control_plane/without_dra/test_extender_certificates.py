"""Extender and kube-scheduler with the certificates that the page asks of cert-manager."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from dra_driver.kube.client import Client
from dra_driver.kube.resources import NODES
from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from tests.cluster.cluster import Cluster
from tests.control_plane.issued import Issuers
from tests.control_plane.without_dra.extender_world import (
    SERVICE,
    ExtenderWorld,
    card,
    extender_world,
)

pytestmark = pytest.mark.control_plane

OURS, THEIRS = "gcu-extender", "gcu-extender-client"
SHARED = RESOURCES[Mode.SHARED]


@pytest.fixture
def issuers() -> Issuers:
    return Issuers()


@pytest.fixture
def world(
    control_plane: Cluster,
    api: Client,
    controller_kubeconfig: Path,
    issuers: Issuers,
    tmp_path: Path,
) -> Iterator[ExtenderWorld]:
    secrets = {name: issuers.issue(name) for name in (OURS, THEIRS)}
    with extender_world(control_plane, api, controller_kubeconfig, tmp_path, secrets) as world:
        world.node("one", card(1))
        yield world
        api.delete(NODES, "one")


def served(world: ExtenderWorld) -> bytes:
    """The certificate that a client gets who asks for the Service's name, in DER."""
    trust = ssl.create_default_context(cafile=world.theirs / "ca.crt")
    trust.load_cert_chain(world.theirs / "tls.crt", world.theirs / "tls.key")
    with (
        socket.create_connection(("127.0.0.1", world.port), timeout=10) as plain,
        trust.wrap_socket(plain, server_hostname=SERVICE) as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    assert found is not None
    return found


def der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def test_a_renewed_certificate_is_served_without_a_restart(
    world: ExtenderWorld, issuers: Issuers, namespace: str
) -> None:
    """By the extender; kube-scheduler goes on asking it before and after."""
    world.create(namespace, "before", {SHARED: 2})
    assert world.bound(namespace, "before") == "one"
    first = served(world)
    assert first == der((world.ours / "tls.crt").read_bytes())
    renewed = issuers.issue(OURS)
    world.ours.update(renewed)
    assert served(world) == der(renewed["tls.crt"]) != first
    world.create(namespace, "after", {SHARED: 2})
    assert world.bound(namespace, "after") == "one"
