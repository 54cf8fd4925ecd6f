"""An object in the API server's protobuf gets more metadata, and nothing else changes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from google.protobuf.internal import encoder
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.kube.generated.object_pb2 import Object, Unknown
from dra_driver.kube.protobuf_metadata import with_metadata
from dra_driver.model.errors import InvalidValue

# runtime.Unknown{typeMeta: {apiVersion: "v1", kind: "K"}, raw: {metadata: {name: "n"}, spec: …}}
_TYPE_META = b"\x0a\x09\x0a\x02v1\x12\x03K.v"
_RAW = b"\x0a\x03\x0a\x01n" + b"\x12\x04\x0a\x02{}"
_OBJECT = b"k8s\x00" + _TYPE_META + b"\x12" + bytes([len(_RAW)]) + _RAW + b"\x1a\x00\x22\x00"


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """The fields, all of which must be length-delimited; lengths have at most two octets."""
    found, position = [], 0
    while position < len(message):
        tag, length = message[position : position + 2]
        position += 2
        if length & 0x80:
            length = length & 0x7F | message[position] << 7
            position += 1
        assert tag & 7 == 2
        found.append((tag >> 3, message[position : position + length]))
        position += length
    return found


def test_what_changes_is_appended() -> None:
    finalizer = "resource.kubernetes.io/delete-protection" * 10  # a length of two octets
    changed = with_metadata(
        _OBJECT, "42", finalizers=[finalizer, "g"], annotations={"example.com/a": "1"}
    )
    assert changed.startswith(b"k8s\x00")
    envelope = fields(changed[4:])
    assert envelope[0] == (1, _TYPE_META[2:])
    [(_, raw)] = [field for field in envelope if field[0] == 2]
    assert raw.startswith(_RAW)
    [(number, metadata)] = fields(raw[len(_RAW) :])
    assert number == 1
    assert fields(metadata) == [
        (6, b"42"),
        (12, b"\x0a\x0dexample.com/a\x12\x011"),
        (14, finalizer.encode()),
        (14, b"g"),
    ]


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b'{"kind": "Status"}',
        b"k8s\x00",
        _OBJECT[:20],
        b"k8s\x00" + _TYPE_META + b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"k8s\x00\x0f\x01",
    ],
    ids=["empty", "json", "no message", "cut off", "endless number", "unknown kind"],
)
def test_anything_else_is_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidValue):
        with_metadata(encoded, "1", finalizers=["f"], annotations={})


@given(st.binary(min_size=1), st.binary(), st.integers(3, 100), st.binary())
def test_every_byte_of_the_object_survives(
    type_meta: bytes, raw: bytes, number: int, other: bytes
) -> None:
    """Also what is no valid message, and fields of the envelope that are unknown here."""
    unknown = encoder.TagBytes(number, 2) + bytes([len(other)]) + other if len(other) < 128 else b""
    envelope = Unknown(type_meta=type_meta, raw=raw).SerializeToString() + unknown
    changed = with_metadata(b"k8s\x00" + envelope, "1", finalizers=["f"], annotations={})
    found = Unknown.FromString(changed[4:])
    assert (found.type_meta, found.raw[: len(raw)]) == (type_meta, raw)
    assert changed.endswith(unknown)
    added = Object.FromString(found.raw[len(raw) :]).metadata
    assert (added.resource_version, list(added.finalizers)) == ("1", ["f"])


@given(st.binary())
def test_no_bytes_do_harm(garbage: bytes) -> None:
    with suppress(InvalidValue):
        changed = with_metadata(b"k8s\x00" + garbage, "1", finalizers=["f"], annotations={})
        assert changed.startswith(b"k8s")
