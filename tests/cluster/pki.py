"""Keys and certificates: one authority, and an identity of its own for every component.

Users and groups are those of https://kubernetes.io/docs/setup/best-practices/certificates/ and
of the API server's bootstrap RBAC policy, which gives each of them what it needs and no more.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=365)
_CLOCK_SKEW = dt.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Identity:
    """A user of the API server and the groups it is in."""

    user: str
    groups: tuple[str, ...] = ()


ADMIN = Identity("gcu-dra-admin", ("system:masters",))
SCHEDULER = Identity("system:kube-scheduler")
CONTROLLER_MANAGER = Identity("system:kube-controller-manager")
PROXY = Identity("system:kube-proxy")
API_SERVER_TO_KUBELET = Identity("kube-apiserver-kubelet-client")


def node_identity(name: str) -> Identity:
    """A kubelet's: the Node authorizer lets it see what is bound to its own node."""
    return Identity(f"system:node:{name}", ("system:nodes",))


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Paths of a certificate and its private key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that writes what it signs into one folder; in a folder that has one
    already it goes on with that one's key."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = _kept_key(directory / "ca.key")
        name = _name("gcu-dra-test-cluster")
        own = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._certificate = (
            _builder(name, name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(own, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = directory / "ca.crt"
        _write(self.certificate, self._certificate.public_bytes(serialization.Encoding.PEM))

    def client(self, file_name: str, identity: Identity) -> KeyPair:
        """A certificate with which `identity` may open connections."""
        subject = _name(identity.user, identity.groups)
        return self._sign(file_name, subject, ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(
        self,
        file_name: str,
        addresses: Iterable[IPv4Address],
        names: Iterable[str] = (),
        *,
        lifetime: dt.timedelta = _LIFETIME,
    ) -> KeyPair:
        """A certificate with which a server answers at those addresses and DNS names. It has
        expired if its lifetime, from now, is negative: by less than the clock skew."""
        alternatives: list[x509.GeneralName] = [x509.IPAddress(item) for item in addresses]
        alternatives += [x509.DNSName(item) for item in names]
        return self._sign(
            file_name, _name(file_name), ExtendedKeyUsageOID.SERVER_AUTH, alternatives, lifetime
        )

    def _sign(
        self,
        file_name: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: Sequence[x509.GeneralName],
        lifetime: dt.timedelta = _LIFETIME,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key, lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if alternatives:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        pair = KeyPair(self._directory / f"{file_name}.crt", self._directory / f"{file_name}.key")
        _write(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
        _write(pair.key, _private_pem(key))
        return pair


def service_account_keys(directory: Path) -> tuple[Path, Path]:
    """Make the public and the private key of service account tokens, unless they are there; gives
    their paths."""
    public, private = directory / "service-account.pub", directory / "service-account.key"
    key = _kept_key(private)
    public_format = serialization.PublicFormat.SubjectPublicKeyInfo
    _write(public, key.public_key().public_bytes(serialization.Encoding.PEM, public_format))
    return public, private


def _kept_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key of that file, which is made where there is none."""
    if not path.exists():
        _write(path, _private_pem(ec.generate_private_key(ec.SECP256R1())))
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    lifetime: dt.timedelta = _LIFETIME,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    """Programs that run may read the file at any moment."""
    new = path.with_name(f".{path.name}.new")
    new.touch(mode=0o600)
    new.write_bytes(content)
    new.replace(path)
