"""The Secrets that cert-manager would make of the manifests of docs/user/scheduler-extender.md.

Their shape is that of its CA issuer: type kubernetes.io/tls, an RSA key in PKCS #1 where none is
asked for, the leaf alone in tls.crt, the issuing authority in ca.crt.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.chart.helm import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "user" / "scheduler-extender.md"
Files = Mapping[str, bytes]
"""By key of a Secret's data."""

_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_DEFAULT = "2160h"  # of a certificate's duration
_EXTENDED: Final = {
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
}
_USAGES: Final = {"digital signature", "key encipherment", *_EXTENDED}


def cert_manager_manifests(page: Path) -> list[dict[str, Any]]:
    """What the page has people apply for cert-manager."""
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    [text] = [each for each in blocks if "cert-manager.io/v1" in each]
    return [*yaml.safe_load_all(text)]


class Issuers:
    """Those of the page, with a new authority."""

    def __init__(self) -> None:
        found = {
            (each["kind"], each["metadata"]["name"]): each["spec"]
            for each in cert_manager_manifests(PAGE)
        }
        self._certificates = {
            spec["secretName"]: spec for (kind, _), spec in found.items() if kind == "Certificate"
        }
        self._issuers = {name: spec for (kind, name), spec in found.items() if kind == "Issuer"}
        self._authorities: dict[str, tuple[x509.Certificate, _Key]] = {}

    def issue(self, secret: str) -> Files:
        """The data of that Secret, anew at every call."""
        spec = self._certificates[secret]
        issuer = self._issuers[spec["issuerRef"]["name"]]
        key = _new_key(spec.get("privateKey", {}))
        if "selfSigned" in issuer:
            certificate = _signed(spec, key, None, key)
            return _files(certificate, key, certificate)
        authority, signing = self._authority(issuer["ca"]["secretName"])
        return _files(_signed(spec, key, authority, signing), key, authority)

    def _authority(self, secret: str) -> tuple[x509.Certificate, _Key]:
        if secret not in self._authorities:
            files = self.issue(secret)
            key = serialization.load_pem_private_key(files["tls.key"], password=None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            self._authorities[secret] = (x509.load_pem_x509_certificate(files["tls.crt"]), key)
        return self._authorities[secret]


def _new_key(asked: Mapping[str, Any]) -> _Key:
    if asked.get("algorithm", "RSA") == "ECDSA":
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _signed(
    spec: Mapping[str, Any], key: _Key, authority: x509.Certificate | None, signing: _Key
) -> x509.Certificate:
    common = spec.get("commonName")
    names = [x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else []
    subject = x509.Name(names)
    now = dt.datetime.now(dt.UTC)
    lasts = dt.timedelta(hours=int(spec.get("duration", _DEFAULT).removesuffix("h")))
    is_authority = spec.get("isCA", False)
    usages = set(spec.get("usages", ("digital signature", "key encipherment")))
    assert usages <= _USAGES
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + lasts)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(_key_usage(usages, signs=is_authority), critical=True)
    )
    extended = [oid for name, oid in _EXTENDED.items() if name in usages]
    if extended:
        builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    if dns := spec.get("dnsNames"):
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in dns])
        builder = builder.add_extension(alternatives, critical=not names)
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    if is_authority:
        builder = builder.add_extension(own, critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    return builder.add_extension(issuer, critical=False).sign(signing, hashes.SHA256())


def _key_usage(usages: set[str], *, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature="digital signature" in usages,
        key_encipherment="key encipherment" in usages,
        key_cert_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _files(certificate: x509.Certificate, key: _Key, authority: x509.Certificate) -> Files:
    pem = serialization.Encoding.PEM
    return {
        "tls.crt": certificate.public_bytes(pem),
        "tls.key": key.private_bytes(
            pem,
            serialization.PrivateFormat.TraditionalOpenSSL,  # PKCS #1, or its like for ECDSA
            serialization.NoEncryption(),
        ),
        "ca.crt": authority.public_bytes(pem),
    }
