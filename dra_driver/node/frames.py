"""How the journal's records lie in its file, and what of a damaged file can still be read.

A frame is a marker, the payload's length, a CRC-32 of length and payload, and the payload.
The payload is ASCII and the marker is not, so the next frame after damage can be found.
Zero bytes after the last frame are room for more.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Final

MARKER: Final = b"\x9cGCU"
_HEAD: Final = struct.Struct("<4sII")
PAYLOAD_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found: `payloads` in order, `end` as the offset behind the last byte in use, and
    `damage` as (start, end) of what is neither frame nor room."""

    payloads: tuple[bytes, ...]
    end: int
    damage: tuple[tuple[int, int], ...]


def encode(payload: bytes) -> bytes:
    """The payload as a frame; it must be ASCII and at most `PAYLOAD_LIMIT` bytes."""
    if len(payload) > PAYLOAD_LIMIT or not payload.isascii():
        raise ValueError("a journal payload is ASCII of at most 1 MiB")
    return _HEAD.pack(MARKER, len(payload), _checksum(payload)) + payload


def scan(data: bytes) -> Scan:
    """Read frames from the start of `data`, over damage if need be; never raises."""
    used = len(data.rstrip(b"\0"))
    payloads: list[bytes] = []
    damage: list[tuple[int, int]] = []
    position = 0
    while position < used:
        payload = _payload_at(data, position)
        if payload is None:
            resume = _next_frame(data, position + 1, used)
            damage.append((position, resume))
            position = resume
        else:
            payloads.append(payload)
            position += _HEAD.size + len(payload)
    return Scan(tuple(payloads), position, tuple(damage))


def _checksum(payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(len(payload).to_bytes(4, "little")))


def _payload_at(data: bytes, position: int) -> bytes | None:
    start = position + _HEAD.size
    if start > len(data):
        return None
    marker, length, checksum = _HEAD.unpack_from(data, position)
    payload = data[start : start + min(length, PAYLOAD_LIMIT + 1)]
    intact = marker == MARKER and len(payload) == length and _checksum(payload) == checksum
    return payload if intact else None


def _next_frame(data: bytes, position: int, used: int) -> int:
    while (found := data.find(MARKER, position, used)) >= 0:
        if _payload_at(data, found) is not None:
            return found
        position = found + 1
    return used
