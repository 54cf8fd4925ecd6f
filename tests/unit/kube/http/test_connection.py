"""One connection, with answers that are there before they are asked for."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dra_driver.kube.http.connection import FAILURES, HttpConnection, render

BODY = b'{"kind":"ResourceClaim"}'
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Name: Value\r\n\r\n%s" % (len(BODY), BODY)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"7\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (BODY[:7], len(BODY[7:]), BODY[7:])
)
UNSIZED = b"HTTP/1.1 200 OK\r\n\r\n" + BODY


Ends = tuple[HttpConnection, socket.socket]
"""Of one connection: ours, and the server's."""


@contextmanager
def connected() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield HttpConnection(ours), theirs


@pytest.fixture
def ends() -> Iterator[Ends]:
    with connected() as made:
        yield made


def asked(wire: HttpConnection, theirs: socket.socket, answer: bytes) -> bytes:
    theirs.sendall(answer)
    wire.send(render("GET", "/x", {"Host": "there"}, None), 10.0)
    assert theirs.recv(1000) == b"GET /x HTTP/1.1\r\nHost: there\r\n\r\n"
    return wire.read()


def whole(wire: HttpConnection) -> bytes:
    """What is there already, however it ends."""
    wire.send(b"", 10.0)
    return wire.read()


@pytest.mark.parametrize("answer", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_answers_follow_each_other(ends: Ends, answer: bytes) -> None:
    wire, theirs = ends
    for status in (b"200 OK", b"404 Not Found", b"200 OK"):
        assert asked(wire, theirs, answer.replace(b"200 OK", status)) == BODY
        assert wire.status == int(status[:3])
        assert wire.is_reusable
        assert not wire.has_ended()


@pytest.mark.parametrize("answer", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_an_answer_may_come_in_any_two_pieces(answer: bytes) -> None:
    for cut in range(1, len(answer)):
        with connected() as (wire, theirs):
            theirs.sendall(answer[:cut])
            head = answer.index(b"\r\n\r\n") + 4
            if cut < head:
                theirs.sendall(answer[cut:head])
            wire.send(b"", 10.0)
            theirs.sendall(answer[max(cut, head) :])
            assert wire.read() == BODY
            assert wire.is_reusable


def test_header_names_are_in_lower_case_and_of_this_answer(ends: Ends) -> None:
    wire, theirs = ends
    asked(wire, theirs, SIZED)
    assert wire.headers["x-name"] == "Value"
    asked(wire, theirs, CHUNKED)
    assert wire.headers == {"transfer-encoding": "chunked"}


def test_what_only_announces_an_answer_is_none(ends: Ends) -> None:
    wire, theirs = ends
    announced = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED
    assert asked(wire, theirs, announced) == BODY
    assert wire.status == 200
    assert "link" not in wire.headers
    assert wire.is_reusable


def test_an_answer_without_a_length_ends_with_its_connection(ends: Ends) -> None:
    wire, theirs = ends
    theirs.sendall(UNSIZED)
    theirs.shutdown(socket.SHUT_WR)
    assert whole(wire) == BODY
    assert not wire.is_reusable


@pytest.mark.parametrize("answer", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_an_answer_that_breaks_off_is_a_failure(answer: bytes) -> None:
    for cut in range(len(answer)):
        with connected() as (wire, theirs):
            theirs.sendall(answer[:cut])
            theirs.shutdown(socket.SHUT_WR)
            with pytest.raises(FAILURES):
                whole(wire)
            assert not wire.is_reusable


@pytest.mark.parametrize(
    "answer",
    [b"garbage\r\n\r\n", SIZED + SIZED, SIZED.replace(b"Length: ", b"Length: -")],
    ids=["no HTTP", "two answers", "no number"],
)
def test_what_is_no_answer_is_a_failure(ends: Ends, answer: bytes) -> None:
    wire, theirs = ends
    with pytest.raises(FAILURES):
        asked(wire, theirs, answer)


def test_a_server_that_wants_no_more_is_not_asked_again(ends: Ends) -> None:
    wire, theirs = ends
    last = SIZED.replace(b"X-Name: Value", b"Connection: close")
    assert asked(wire, theirs, last) == BODY
    assert not wire.is_reusable


def test_pieces_come_as_they_are_sent(ends: Ends) -> None:
    wire, theirs = ends
    head, _, rest = CHUNKED.partition(b"\r\n\r\n")
    first, second = rest[:12], rest[12:]
    theirs.sendall(head + b"\r\n\r\n")
    wire.send(b"", 10.0)
    theirs.sendall(first)
    assert wire.read1() == BODY[:7]
    theirs.sendall(second)
    assert wire.read1() == BODY[7:]
    assert wire.read1() == b""
    assert wire.is_reusable


def test_a_connection_that_has_ended_is_known(ends: Ends) -> None:
    wire, theirs = ends
    assert not wire.has_ended()
    theirs.shutdown(socket.SHUT_WR)
    assert wire.has_ended()


def test_a_body_has_its_length() -> None:
    request = render("PUT", "/x?a=b", {"Host": "there"}, b"{}")
    assert request == b"PUT /x?a=b HTTP/1.1\r\nHost: there\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0"])
def test_a_header_that_would_be_two_is_not_sent(value: str) -> None:
    with pytest.raises(ValueError, match=re.escape("header Authorization cannot be sent")):
        render("GET", "/", {"Authorization": value}, None)
