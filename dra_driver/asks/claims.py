"""Makes a claim of a pod's limits: its template, and the request of each container
(docs/adr/0015). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from dra_driver.asks.limits import Ask, Container, Pod, read_ask
from dra_driver.asks.templates import KINDS, devices_named
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.model.names import (
    LIMITS_TEMPLATE_PREFIX,
    LONGEST_NAME,
    RESOURCE_CORE,
    RESOURCE_MEMORY,
)

CLAIM: Final = "enflame-limits"
"""The name of the claim in the pod."""

_UNITS: Final[Mapping[str, str]] = MappingProxyType({RESOURCE_MEMORY: "m", RESOURCE_CORE: "c"})


class LimitsClaim(msgspec.Struct, frozen=True):
    """`template` is the name of the claim template, which says all that is requested. `requests`
    has the name of the request that each container of `ask` uses, in their order."""

    ask: Ask
    template: str
    requests: tuple[str, ...]

    @property
    def reference(self) -> Object:
        """The entry of the pod's ``spec.resourceClaims``."""
        return {"name": CLAIM, "resourceClaimTemplateName": self.template}


def claim_of(pod: Pod) -> LimitsClaim | None:
    """The claim that a new pod gets for its limits; None where it asks for no GCU by them. Raises
    Refused where no claim can be made of them."""
    ask = read_ask(pod)
    if ask is None:
        return None
    for reference in pod["spec"].get("resourceClaims") or ():
        if reference["name"] == CLAIM:
            raise _has_claim(pod, ask, reference)
    users = _users(ask.containers)
    requests = (
        next(i for i, user in enumerate(users) if user is container or _serves(user, container))
        for container in ask.containers
    )
    return LimitsClaim(ask, _template(ask, users), tuple(f"gcu-{i}" for i in requests))


def _has_claim(pod: Pod, ask: Ask, reference: Mapping[str, str]) -> Refused:
    """Why a pod with such a claim cannot have limits. API servers run the admission plugin
    LimitRanger once more after the limits became a claim, and it gives default limits again
    (k8s.io/apiserver 1.37.2, reinvoker.Admit)."""
    if devices_named(reference.get("resourceClaimTemplateName") or "") is None:
        return Refused(
            f"the pod's limits for GCUs become its claim {CLAIM}, and it has one of that name "
            "already",
            remedy="give that claim another name, or leave the limits out",
        )
    limits = " and ".join(ask.limits)
    return Refused(
        f"a LimitRange of namespace {pod['metadata']['namespace']} gives default limits for "
        f"{limits}, which come back after they became a claim",
        remedy=f"remove {limits} from its default, defaultRequest, min and max",
    )


def _users(containers: Sequence[Container]) -> list[Container]:
    """The containers that have a request of their own: all that stay, and behind them init
    containers that ask for more than any later container. If one of those covers another, both use
    its request."""
    staying = sorted((one for one in containers if not one.ends), key=lambda one: one.field)
    alone = [
        one for one in containers if one.ends and not any(_serves(user, one) for user in staying)
    ]
    return staying + [one for one in alone if not any(_replaces(other, one) for other in alone)]


def _serves(user: Container, container: Container) -> bool:
    """Whether the container can use the request of `user`: it ends before that one starts, or both
    are init containers that end."""
    has_turn = user.ends or user.start > container.start
    return container.ends and has_turn and user.covers(container)


def _replaces(other: Container, container: Container) -> bool:
    """Whether `other` asks for more, or was the first to ask for as much."""
    return other.covers(container) and (
        not container.covers(other) or other.start < container.start
    )


def _template(ask: Ask, users: Sequence[Container]) -> str:
    word = ask.isolation if ask.is_measured else KINDS[ask.limits[0]].word
    name = "-".join((f"{LIMITS_TEMPLATE_PREFIX}{word}", *(_text(ask, user) for user in users)))
    if devices_named(name) is None or len(name) > LONGEST_NAME:
        raise Refused(
            "the pod's limits for GCUs do not fit into a claim: 32 containers (some 20 by memory "
            "and compute) and 32 whole cards at most, 32 devices of a DeviceClass, and each limit "
            "999 at most",
            remedy="ask for less, or use ResourceClaims",
        )
    return name


def _text(ask: Ask, container: Container) -> str:
    """The container's amount as in the template's name: ``2``, ``20480m40c``."""
    return "".join(
        f"{container.amounts[name]}{_UNITS.get(name, '')}"
        for name in ask.limits
        if name in container.amounts
    )
