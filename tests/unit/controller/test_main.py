"""What serves a cluster: the allocator of claims, or the scheduler extender; and the webhook."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from controller import main
from controller.app import Controller
from controller.extender.extender import Extender
from controller.main import runnables_of, serves_claims
from controller.settings import ControllerSettings
from controller.webhook.webhook import Webhook
from dra_driver.kube.api import Api, ServerVersion
from dra_driver.kube.resources import Resource
from dra_driver.model.errors import Refused


class Server:
    """Of a minor version; DRA can be switched off."""

    def __init__(self, minor: int, *, dra: bool = True) -> None:
        self._minor = minor
        self._dra = dra

    def server_version(self) -> ServerVersion:
        return ServerVersion(1, self._minor, f"v1.{self._minor}.0")

    def serves(self, resource: Resource) -> bool:
        return self._dra


def chosen(tmp_path: Path, server: Server, **settings: Any) -> list[type]:
    """The types of what runs, in the order in which they start."""
    files = ("extender_certificate", "extender_key", "extender_client_authority")
    values = ControllerSettings.model_validate(dict.fromkeys(files, tmp_path) | settings)
    api = cast("Api", server)
    runnables = runnables_of(
        values,
        api,
        CollectorRegistry(),
        with_claims=serves_claims(values, api),
        on_restored=lambda: None,
    )
    return [type(runnable) for runnable in runnables]


@pytest.mark.parametrize(
    ("mode", "server", "front"),
    [
        ("auto", Server(36), Controller),
        ("auto", Server(30), Extender),
        ("auto", Server(36, dra=False), Extender),
        ("dra", Server(36), Controller),
        ("device-plugin", Server(36), Extender),
    ],
    ids=["DRA", "older", "DRA switched off", "DRA chosen", "limits chosen"],
)
def test_what_serves(tmp_path: Path, mode: str, server: Server, front: type) -> None:
    assert chosen(tmp_path, server, mode=mode) == [front]


@pytest.mark.parametrize(
    ("allocator", "words"),
    [
        ("controller", "serving v1.37.0 by allocating ResourceClaims"),
        ("scheduler", "serving v1.37.0, where kube-scheduler allocates ResourceClaims"),
    ],
)
def test_the_log_says_who_allocates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, allocator: str, words: str
) -> None:
    caplog.set_level("INFO")
    chosen(tmp_path, Server(37), mode="dra", allocator=allocator)
    assert words in caplog.messages


@pytest.mark.parametrize(("server", "front"), [(Server(36), Controller), (Server(30), Extender)])
def test_the_webhook_starts_first_and_stops_last(
    tmp_path: Path, server: Server, front: type
) -> None:
    found = chosen(tmp_path, server, webhook_certificate=tmp_path, webhook_key=tmp_path)
    assert found == [Webhook, front]


@pytest.mark.parametrize(
    ("server", "allocator", "expected"),
    [
        (Server(36), "controller", (False, False)),
        (Server(36), "scheduler", (False, True)),
        (Server(30), "controller", (True, False)),
    ],
    ids=["controller", "kube-scheduler", "without DRA"],
)
def test_by_which_cards_the_webhook_translates(
    tmp_path: Path,
    server: Server,
    allocator: str,
    expected: tuple[bool, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of the extender, or those that are published to kube-scheduler."""
    seen: list[tuple[bool, bool]] = []

    def made(*_: object, card_kinds: object, published: object, **__: object) -> None:
        seen.append((card_kinds is not None, published is not None))

    monkeypatch.setattr(main, "Webhook", made)
    chosen(tmp_path, server, allocator=allocator, webhook_certificate=tmp_path)
    assert seen == [expected]


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not serve resource"):
        chosen(tmp_path, Server(33), mode="dra")
