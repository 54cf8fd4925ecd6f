"""The client's reading of a watch, byte by byte, and of its configuration."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from dra_driver.kube.api import Change, Listing
from dra_driver.kube.client import Client
from dra_driver.kube.errors import Gone, Unavailable
from dra_driver.kube.http.cluster_config import ClusterConfig, trusting
from dra_driver.kube.http.connection import HttpConnection
from dra_driver.kube.http.connections import Connections
from dra_driver.kube.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.kube.watch_stream import WatchStream
from dra_driver.model.effects import Effects


class Pieces:
    """Plays a `HttpConnection` whose body comes in the given pieces."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self._pieces = list(pieces)

    def read1(self) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece

    def shutdown(self) -> None:
        self._pieces = [OSError("shut down")]

    def close(self) -> None:
        self._pieces = []


def watch(*pieces: bytes | Exception) -> WatchStream:
    return WatchStream(cast("HttpConnection", Pieces(*pieces)), "watch of pods")


def line(change: str, obj: dict[str, object]) -> bytes:
    return json.dumps({"type": change, "object": obj}).encode() + b"\n"


def test_lines_may_come_in_any_pieces() -> None:
    body = line("ADDED", {"n": 1}) + line("BOOKMARK", {"n": 2}) + line("DELETED", {"n": 3})
    pieces = [body[start : start + 7] for start in range(0, len(body), 7)]
    assert [(each.change, each.object["n"]) for each in watch(*pieces)] == [
        (Change.ADDED, 1),
        (Change.BOOKMARK, 2),
        (Change.DELETED, 3),
    ]


def test_an_error_line_is_the_error_it_says() -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    with pytest.raises(Gone, match="too old"):
        list(watch(line("ADDED", {}), line("ERROR", gone)))


@pytest.mark.parametrize(
    "piece", [OSError("connection reset"), b"<html>\n"], ids=["broken", "not JSON"]
)
def test_a_broken_stream_is_unavailable(piece: bytes | Exception) -> None:
    with pytest.raises(Unavailable, match="watch of pods"):
        list(watch(piece))


def test_closing_ends_it_without_an_error() -> None:
    running = watch(line("ADDED", {"n": 1}), line("ADDED", {"n": 2}))
    told = []
    for event in running:
        told.append(event.object["n"])
        running.close()
    assert told == [1]


class Pages:
    """Plays `Connections` that answer with these pages, and records what was asked for."""

    def __init__(self, *pages: object, status: int = 200) -> None:
        self._status = status
        self.access = SimpleNamespace(token=lambda: "")
        self._pages = list(pages)
        self.asked: list[tuple[str, str]] = []

    def request(self, _method: str, target: str, headers: dict[str, str], *_: object) -> Any:
        self.asked.append((target, headers["Accept"]))
        body = json.dumps(self._pages.pop(0)).encode()
        return SimpleNamespace(status=self._status, body=body, headers={})


def client(connections: Pages | Connections | Mock) -> Client:
    return Client(cast("Connections", connections), effects=Effects(), user_agent="tests/1")


def test_a_list_of_metadata_asks_for_nothing_else_on_each_page() -> None:
    items = [{"kind": "PartialObjectMetadata", "metadata": {"name": name}} for name in "ab"]
    pages = Pages(
        {"metadata": {"resourceVersion": "7", "continue": "next"}, "items": items[:1]},
        {"metadata": {"resourceVersion": "7"}, "items": items[1:]},
    )
    listed = client(pages).list_metadata(RESOURCE_CLAIMS)
    version = {"apiVersion": "resource.k8s.io/v1"}
    assert listed == Listing((items[0] | version, items[1] | version), "7")
    path = "/apis/resource.k8s.io/v1/resourceclaims?limit=500"
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    assert pages.asked == [(path, accept), (f"{path}&continue=next", accept)]


@pytest.mark.parametrize(
    "answer", [{}, {"metadata": {}}, {"metadata": None, "items": []}, [], "ok", {"items": [1]}]
)
def test_what_is_no_list_is_no_answer(answer: object) -> None:
    """As of a proxy that is in the way; another exception would end the caller's thread."""
    with pytest.raises(Unavailable):
        client(Pages(answer)).list(RESOURCE_CLAIMS)


def test_a_watch_that_is_refused_leaves_no_connection_open() -> None:
    """Also where the answer breaks off."""
    stream = Mock(status=500, headers={})
    stream.read.side_effect = ConnectionResetError("reset")
    connections = Mock(send=Mock(return_value=stream))
    connections.access.token.return_value = ""
    with pytest.raises(Unavailable):
        client(connections).watch(RESOURCE_CLAIMS, resource_version="1")
    stream.close.assert_called_once_with()


@pytest.mark.parametrize(
    ("answer", "served"),
    [
        (Pages({"resources": [{"name": "resourceslices"}]}), True),
        (Pages({"resources": [{"name": "deviceclasses"}]}), False),
        (Pages({"kind": "Status", "reason": "NotFound"}, status=404), False),
    ],
    ids=["served", "without the kind", "no such group"],
)
def test_whether_a_kind_is_served(answer: Pages, served: bool) -> None:
    assert client(answer).serves(RESOURCE_SLICES) is served
    assert answer.asked == [("/apis/resource.k8s.io/v1", "application/json")]


def test_a_server_that_does_not_say_what_it_serves() -> None:
    answer = Pages({"kind": "Status", "reason": "ServiceUnavailable"}, status=503)
    with pytest.raises(Unavailable):
        client(answer).serves(RESOURCE_SLICES)


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(2, "No such file"), ValueError("the token's file is empty")],
    ids=["not there", "empty"],
)
def test_a_token_that_cannot_be_read_again_is_no_answer(error: Exception) -> None:
    """The caller tries again later; another exception would end its thread."""

    def token() -> str:
        raise error

    access = ClusterConfig("https://127.0.0.1:1", trusting(), token)
    with pytest.raises(Unavailable, match="no token for GET /version"):
        client(Connections(access)).server_version()
