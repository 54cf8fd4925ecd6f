"""What serves a cluster: the allocator of claims, or the scheduler extender."""

from __future__ import annotations

from typing import cast

import pytest

from controller.app import Controller
from controller.extender.extender import Extender
from controller.main import front_of
from controller.settings import ControllerSettings
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
def test_what_serves(mode: str, server: Server, front: type) -> None:
    settings = ControllerSettings.model_validate({"mode": mode})
    assert front_of(settings, cast("Api", server)) is front


@pytest.mark.parametrize(
    ("allocator", "words"),
    [
        ("controller", "serving v1.37.0 by allocating ResourceClaims"),
        ("scheduler", "serving v1.37.0, where kube-scheduler allocates ResourceClaims"),
    ],
)
def test_the_log_says_who_allocates(
    caplog: pytest.LogCaptureFixture, allocator: str, words: str
) -> None:
    caplog.set_level("INFO")
    settings = ControllerSettings.model_validate({"mode": "dra", "allocator": allocator})
    front_of(settings, cast("Api", Server(37)))
    assert caplog.messages == [words]


def test_what_cannot_be_is_refused() -> None:
    settings = ControllerSettings.model_validate({"mode": "dra"})
    with pytest.raises(Refused, match="does not serve resource"):
        front_of(settings, cast("Api", Server(33)))
