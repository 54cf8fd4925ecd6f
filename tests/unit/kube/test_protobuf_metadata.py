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


def field(number: int, content: bytes) -> bytes:
    """Length-delimited, with a length of one octet or two."""
    length = len(content)
    octets = [length] if length < 0x80 else [length & 0x7F | 0x80, length >> 7]
    return bytes([number << 3 | 2, *octets]) + content


def test_what_changes_is_appended() -> None:
    finalizer = "resource.kubernetes.io/delete-protection" * 10  # a length of two octets
    changed = with_metadata(
        _OBJECT, "42", finalizers=[finalizer, "g"], annotations={"example.com/a": "1"}
    )
    metadata = (
        field(6, b"42")
        + field(12, field(1, b"example.com/a") + field(2, b"1"))
        + field(14, finalizer.encode())
        + field(14, b"g")
    )
    raw = _RAW + field(1, metadata)
    assert changed == b"k8s\x00" + _TYPE_META + field(2, raw) + b"\x1a\x00\x22\x00"


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
