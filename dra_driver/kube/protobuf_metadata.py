"""Adding metadata to an object whose JSON cannot be sent back.

The API server compares the ``parameters`` of opaque configuration byte by byte, as their author's
client wrote them, and refuses an update with other bytes ("field is immutable"): white space,
escapes and the form of numbers all count. Its JSON shows them normalised, and its patches go
through that JSON. (Seen on 1.36.3: after a POST of ``{"a": 1}`` neither PUT nor PATCH in JSON can
change the claim any more.) Only the protobuf encoding carries the bytes themselves.

In that encoding nothing has to be understood: a message that follows another in the same field is
merged into it, so what is to change is appended. Of a map's entries the last one with a key counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from dra_driver.model.errors import InvalidValue

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

# k8s.io/apimachinery, runtime/serializer/protobuf: four bytes, then a message runtime.Unknown.
_MAGIC: Final = b"k8s\x00"
_UNKNOWN_TYPE_META: Final = 1
_UNKNOWN_RAW: Final = 2
# The first field of every API object is its ObjectMeta (k8s.io/apimachinery, meta/v1,
# generated.proto), which has these fields.
_METADATA: Final = 1
_RESOURCE_VERSION: Final = 6
_ANNOTATIONS: Final = 12
_FINALIZERS: Final = 14
# A map is a repeated message of these two (protobuf encoding guide, "Maps").
_KEY: Final = 1
_VALUE: Final = 2

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_LENGTHS: Final = {_FIXED64: 8, _FIXED32: 4}


def with_metadata(
    encoded: bytes,
    resource_version: str,
    *,
    finalizers: Sequence[str] = (),
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """The object `encoded` with these finalizers and annotations besides its own, to be written
    only over `resource_version`. A finalizer that it has already would stand there twice.

    Raises InvalidValue where `encoded` is not an object as the API server sends it.
    """
    if not encoded.startswith(_MAGIC):
        raise InvalidValue(f"the API server sent no protobuf, but {encoded[:20]!r}")
    envelope = dict(_fields(encoded[len(_MAGIC) :]))
    if _UNKNOWN_TYPE_META not in envelope or _UNKNOWN_RAW not in envelope:
        raise InvalidValue("the API server sent a protobuf message without an object in it")
    metadata = _field(_RESOURCE_VERSION, resource_version.encode())
    for key, value in annotations.items():
        entry = _field(_KEY, key.encode()) + _field(_VALUE, value.encode())
        metadata += _field(_ANNOTATIONS, entry)
    for finalizer in finalizers:
        metadata += _field(_FINALIZERS, finalizer.encode())
    return (
        _MAGIC
        + _field(_UNKNOWN_TYPE_META, envelope[_UNKNOWN_TYPE_META])
        + _field(_UNKNOWN_RAW, envelope[_UNKNOWN_RAW] + _field(_METADATA, metadata))
    )


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The numbers and contents of the length-delimited fields; others are passed over."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _, position = _varint(message, position)
            continue
        length = _FIXED_LENGTHS.get(kind, 0)
        if kind == _BYTES:
            length, position = _varint(message, position)
        elif not length:
            raise InvalidValue(f"the API server's protobuf has a field of the unknown kind {kind}")
        end = position + length
        if end > len(message):
            raise InvalidValue("the API server's protobuf message is cut off")
        if kind == _BYTES:
            yield number, message[position:end]
        position = end


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The number that begins at `position`, and where it ends."""
    value = 0
    for shift in range(0, 64, 7):
        if position >= len(message):
            break
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise InvalidValue("the API server's protobuf has a number that does not end")


def _field(number: int, content: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(content)) + content


def _encoded(value: int) -> bytes:
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
