"""Every component can show who it is, and nobody else."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.cluster.pki import (
    ADMIN,
    SCHEDULER,
    Authority,
    Identity,
    KeyPair,
    node_identity,
    service_account_keys,
)


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def values(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(item.value) for item in certificate.subject.get_attributes_for_oid(oid)]


def assert_signed(authority: Authority, pair: KeyPair) -> None:
    certificate = read(pair.certificate)
    certificate.verify_directly_issued_by(read(authority.certificate))
    key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    assert key.public_key() == certificate.public_key()


@pytest.mark.parametrize(
    ("identity", "user", "groups"),
    [
        pytest.param(ADMIN, "gcu-dra-admin", ["system:masters"], id="admin"),
        pytest.param(SCHEDULER, "system:kube-scheduler", [], id="scheduler"),
        pytest.param(node_identity("a"), "system:node:a", ["system:nodes"], id="kubelet"),
    ],
)
def test_client(identity: Identity, user: str, groups: list[str], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.client("client", identity)
    assert_signed(authority, pair)
    certificate = read(pair.certificate)
    assert values(certificate, NameOID.COMMON_NAME) == [user]
    assert values(certificate, NameOID.ORGANIZATION_NAME) == groups
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_server(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    address = IPv4Address("10.96.0.1")
    pair = authority.server("server", (address,), ("kubernetes.default.svc",))
    assert_signed(authority, pair)
    extensions = read(pair.certificate).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [address]
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes.default.svc"]
    usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_service_account_keys_belong_together(tmp_path: Path) -> None:
    public, private = service_account_keys(tmp_path)
    key = serialization.load_pem_private_key(private.read_bytes(), password=None)
    assert serialization.load_pem_public_key(public.read_bytes()) == key.public_key()


def test_keys_outlive_an_upgrade(tmp_path: Path) -> None:
    before = Authority(tmp_path).client("client", ADMIN)
    _, private = service_account_keys(tmp_path)
    text = private.read_bytes()
    assert_signed(Authority(tmp_path), before)
    service_account_keys(tmp_path)
    assert private.read_bytes() == text


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    Authority(tmp_path).client("client", ADMIN)
    service_account_keys(tmp_path)
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}
