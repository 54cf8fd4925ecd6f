"""Adds metadata to an object whose JSON cannot be sent back.

The API server compares the ``parameters`` of opaque configuration byte by byte, as their author's
client wrote them, and refuses an update with other bytes ("field is immutable"): white space,
escapes and the form of numbers all count. Its JSON shows them normalised, and its patches go
through that JSON. (Seen on 1.36.3: after a POST of ``{"a": 1}`` neither PUT nor PATCH in JSON can
change the claim any more.) Only the protobuf encoding carries the bytes themselves.

Not even the object is decoded: a message that follows another one in the same field is merged into
it, so the new metadata is appended. Of entries of a map with the same key the last one counts
(protobuf encoding guide).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.message import DecodeError

from dra_driver.kube.generated.object_pb2 import Object, ObjectMeta, Unknown
from dra_driver.model.errors import InvalidValue

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

# k8s.io/apimachinery, runtime/serializer/protobuf: these bytes, then a message runtime.Unknown.
_MAGIC: Final = b"k8s\x00"


def with_metadata(
    encoded: bytes,
    resource_version: str,
    *,
    finalizers: Sequence[str],
    annotations: Mapping[str, str],
) -> bytes:
    """The object `encoded` with these finalizers and annotations added to its own, to be written
    only over `resource_version`. A finalizer that it has already would be there twice.

    Raises InvalidValue if `encoded` is not an object as the API server sends it.
    """
    if not encoded.startswith(_MAGIC):
        raise InvalidValue(f"the API server sent no protobuf, but {encoded[:20]!r}")
    try:
        envelope = Unknown.FromString(encoded[len(_MAGIC) :])
    except DecodeError as error:
        raise InvalidValue(f"the API server's protobuf cannot be decoded: {error}") from error
    if not (envelope.HasField("type_meta") and envelope.HasField("raw")):
        raise InvalidValue("the API server sent a protobuf message without an object in it")
    metadata = ObjectMeta(
        resource_version=resource_version, annotations=annotations, finalizers=finalizers
    )
    envelope.raw += Object(metadata=metadata).SerializeToString(deterministic=True)
    return _MAGIC + envelope.SerializeToString()
