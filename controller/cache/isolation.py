"""How one object that cannot be read is kept from stopping what is done with all others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object

# Ends what fails with an object in it, and lets the program go on.
Isolate = Callable[[Resource, Object], AbstractContextManager[None]]


def not_isolated(_resource: Resource, _obj: Object) -> AbstractContextManager[None]:
    """What fails raises."""
    return nullcontext()
