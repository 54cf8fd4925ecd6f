"""The format of the journal's file, and what can be read from a damaged one.

A frame is a marker, the payload's length, a CRC-32 of length and payload, and the payload.
The payload is ASCII and the marker is not, so the next frame after damage can be found.
Zero bytes after the last frame are room for more. A last frame that was not written completely was
never synced, and no call was answered after it: it is the end of the file, and no damage.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import msgspec

MARKER: Final = b"\x9cGCU"
_HEAD: Final = struct.Struct("<4sII")
PAYLOAD_LIMIT: Final = 1 << 20
_SECTOR: Final = 512  # bytes: what a disk writes wholly or not at all


class Scan(msgspec.Struct, frozen=True):
    """What was found: `payloads` in order, `end` as the offset at which the next frame can be
    written, `damage` as (start, end) of what is neither frame nor room, and `torn` as the same of
    a last frame that was not written completely."""

    payloads: tuple[bytes, ...]
    end: int
    damage: tuple[tuple[int, int], ...]
    torn: tuple[int, int] | None = None


def encode(payload: bytes) -> bytes:
    """The payload as a frame; it must be ASCII and at most `PAYLOAD_LIMIT` bytes."""
    if len(payload) > PAYLOAD_LIMIT or not payload.isascii():
        raise ValueError("a journal payload is ASCII of at most 1 MiB")
    return _HEAD.pack(MARKER, len(payload), _checksum(payload)) + payload


def scan(data: bytes, start: int = 0) -> Scan:
    """Read frames from the start of `data`, over damage if need be; never raises.

    `data` is what the file has from the offset `start` to its end.
    """
    used = len(data.rstrip(b"\0"))
    payloads: list[bytes] = []
    damage: list[tuple[int, int]] = []
    position = 0
    while position < used:
        payload = _payload_at(data, position)
        if payload is not None:
            payloads.append(payload)
            position += _HEAD.size + len(payload)
            continue
        resume = _next_frame(data, position + 1, used)
        if resume == used and _is_torn(data, position, used, start):
            return Scan(tuple(payloads), position, tuple(damage), torn=(position, used))
        damage.append((position, resume))
        position = resume
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


def _is_torn(data: bytes, position: int, used: int, start: int) -> bool:
    """Whether what is at `position`, with no whole frame behind it, looks like an interrupted
    write: part of a frame, and zeros where the rest of it is missing.

    Where the process was killed, the rest is missing from some byte on. Where the power was lost,
    whole sectors are missing, and the disk writes them in any order. A payload has no zero bytes.
    """
    if used == len(data):  # an append leaves room behind it, so the file itself was cut
        return False
    missing = _unwritten(data, position, used, start)
    if missing == position:
        return True
    begun = data[position : used if missing is None else missing]
    head_end = position + _HEAD.size
    if not begun.startswith(MARKER[: len(begun)]) or head_end >= len(data):
        return False
    if len(begun) <= _HEAD.size:
        return True
    length: int
    checksum: int
    _, length, checksum = _HEAD.unpack_from(data, position)
    end = head_end + length
    fits = length <= PAYLOAD_LIMIT and end < len(data)
    if missing is not None:
        return fits and missing < end
    payload = begun[_HEAD.size :]
    # If the length of a complete frame was damaged, its payload seems to continue.
    return fits and used < end and b"\0" not in payload and _checksum(payload) != checksum


def _unwritten(data: bytes, position: int, used: int, start: int) -> int | None:
    """Where the first sector begins that has only zeros from `position` on, before `used`."""
    while position < used:
        end = position + _SECTOR - (start + position) % _SECTOR
        if not data[position:end].strip(b"\0"):
            return position
        position = end
    return None
