"""An object as the controller keeps it."""

from __future__ import annotations

from collections.abc import Callable

from controller.cache.packed import unpacked
from controller.informers.decoders import decoders
from dra_driver.kube.encode import encode
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import Object

View = Callable[[Object], object]


def decoded(kind: Resource, obj: Object) -> Object:
    return unpacked(decoders()[kind].decode(encode(obj)))
