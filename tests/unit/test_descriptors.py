"""Waiting for descriptors, whatever their numbers."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
from collections.abc import Iterator

import pytest

from dra_driver.kube.http.connection import HttpConnection
from tests.descriptors import readable

ABOVE = 1200


@pytest.fixture(autouse=True)
def _room() -> Iterator[None]:
    """Shells often allow 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, ABOVE + 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def above(descriptor: int) -> int:
    """The same, with a number that `select.select` refuses."""
    found = fcntl.fcntl(descriptor, fcntl.F_DUPFD, ABOVE)
    os.close(descriptor)
    return found


def test_a_pipe() -> None:
    reading, writing = map(above, os.pipe())
    try:
        assert readable(reading, within=0) == []
        os.write(writing, b"x")
        assert readable(reading, within=60) == [reading]
    finally:
        os.close(reading)
        os.close(writing)


def test_the_end_of_either_of_two_sockets() -> None:
    first, second = socket.socketpair()
    with first, second:
        second.shutdown(socket.SHUT_WR)
        assert readable(first, second) == [first]
    with pytest.raises(ValueError, match="Invalid file"):
        readable(first)


def test_a_connection_to_the_api_server() -> None:
    """Of a program that has many descriptors open."""
    ours, theirs = socket.socketpair()
    with socket.socket(fileno=above(ours.detach())) as high, theirs:
        assert high.fileno() >= ABOVE
        wire = HttpConnection(high)
        assert not wire.has_ended()
        theirs.shutdown(socket.SHUT_RDWR)
        assert wire.has_ended()
