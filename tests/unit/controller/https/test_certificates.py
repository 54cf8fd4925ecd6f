"""Until when certificates are valid, and who is told before they are not any more."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client import CollectorRegistry, Gauge

from controller.https.certificates import CertificateFiles, Certificates
from controller.https.expiry import DAY, Expiry
from controller.own_pod import OwnPod
from dra_driver.kube.api import Api
from dra_driver.kube.errors import Unavailable
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue
from tests.unit.agent.recorder import ListRecorder

NOW = dt.datetime(2026, 11, 23, 12, 0, tzinfo=dt.UTC)
LONG = ", ".join(f"unit {n}" for n in range(40))  # its length takes two bytes


def certificate(end: dt.datetime, key: ec.EllipticCurvePrivateKey, name: str = "x") -> bytes:
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        + [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, each) for each in LONG.split(", ")]
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - dt.timedelta(days=1))
        .not_valid_after(end)
    )
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    """With a key, and without certificates."""
    made = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    key = ec.generate_private_key(ec.SECP256R1())
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return made


def write(path: Path | None, files: CertificateFiles, *ends: dt.datetime) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert path is not None
    path.write_bytes(b"".join(certificate(each, key) for each in ends))


@pytest.mark.parametrize(
    "end",
    [NOW, NOW.replace(year=2049), NOW.replace(year=2050), NOW.replace(year=9998)],
    ids=lambda end: str(end.year),
)
def test_the_end_of_a_certificate(files: CertificateFiles, end: dt.datetime) -> None:
    write(files.certificate, files, end)
    write(files.client_authority, files, NOW)
    ends = Certificates(files).ends()
    assert ends == {"server": end.timestamp(), "authority": NOW.timestamp()}


def test_a_chain_ends_with_its_first_and_a_bundle_with_its_last(files: CertificateFiles) -> None:
    later = NOW + dt.timedelta(days=9)
    write(files.certificate, files, later, NOW)
    write(files.client_authority, files, NOW, later)
    ends = Certificates(files).ends()
    assert ends == {"server": NOW.timestamp(), "authority": later.timestamp()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nMIL/\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        "é",
    ],
    ids=["empty", "a number", "cut off", "no base64", "no text"],
)
def test_what_is_no_certificate_is_named(files: CertificateFiles, text: str) -> None:
    files.certificate.write_text(text, encoding="utf-8")
    write(files.client_authority, files, NOW)
    with pytest.raises(InvalidValue, match="certificate to serve with cannot be loaded"):
        Certificates(files).ends()


class Pods:
    """Knows the pod of the extender, unless it is away."""

    away = False

    def get(self, _resource: object, name: str, *, namespace: str) -> Object:
        if self.away:
            raise Unavailable("the API server did not answer")
        return {"metadata": {"name": name, "namespace": namespace, "uid": "uid-1"}}


class Reported:
    """What an `Expiry` reports as time goes by; `days` are left to each certificate."""

    def __init__(self, **days: float) -> None:
        self.now = NOW.timestamp()
        self.ends = {which: self.now + left * DAY for which, left in days.items()}
        self.registry = CollectorRegistry()
        self.recorder = ListRecorder()
        self.pods = Pods()
        self._expiry = Expiry(
            lambda: self.ends,
            {
                "server": ("the certificate of the server", "renew it"),
                "client": ("the certificate of its client", "renew it"),
            },
            Gauge("end", "Ends.", ["certificate"], registry=self.registry),
            OwnPod(cast("Api", self.pods), self.recorder, namespace="gcu", name="controller-1"),
            now=lambda: self.now,
        )

    def pass_days(self, days: float) -> None:
        """Checks every hour."""
        for _ in range(round(days * 24)):
            self._expiry.check()
            self.now += 3600

    def metric(self, which: str) -> Any:
        return self.registry.get_sample_value("end", {"certificate": which})


def test_the_metric_has_the_end_of_each_certificate() -> None:
    reported = Reported(server=100, authority=3000)
    reported.pass_days(1)
    assert reported.metric("server") == reported.ends["server"]
    assert reported.metric("authority") == reported.ends["authority"]
    assert reported.metric("client") is None
    reported.ends["client"] = 5.0
    reported.pass_days(1)
    assert reported.metric("client") == 5.0


def test_an_event_says_so_every_day_from_thirty_days_before() -> None:
    reported = Reported(server=40, authority=3000)
    reported.pass_days(10)
    assert reported.recorder.lines == []
    reported.pass_days(3)
    assert len(reported.recorder.lines) == 3
    assert reported.recorder.lines[0].startswith(
        "GcuCertificateExpires the certificate of the server expires at "
        "2027-01-02 12:00 UTC: renew it"
    )
    assert reported.recorder.recorded[0][0]["metadata"]["uid"] == "uid-1"


def test_renewed_certificates_are_reported_no_more() -> None:
    reported = Reported(server=1)
    reported.pass_days(1)
    reported.ends["server"] += 365 * DAY
    reported.pass_days(10)
    assert len(reported.recorder.lines) == 1


def test_an_expired_one_is_reported_whether_or_not_the_pod_can_be_read() -> None:
    reported = Reported(client=-1)
    reported.pods.away = True
    reported.pass_days(1)
    [line] = reported.recorder.lines
    assert "of its client expired at 2026-11-22" in line
    assert reported.recorder.recorded[0][0]["metadata"]["name"] == "controller-1"
