"""What a pod asks for, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dra_driver.asks.templates import profile_selector
from dra_driver.model.claims.amounts import capacity_name
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CAPACITY_SIZE, DRIVER

_TYPE_META: Final = frozenset({"apiVersion", "kind"})


def asked(claims: Iterable[Object]) -> str:
    """Each request of the claims, such as ``1 of shared-gcu.enflame.com (slices 2)``; ``by
    selectors`` stands for a selector of the request's own."""
    return "; ".join(text for each in claims for text in _requests(each))


def _requests(claim: Object) -> Iterator[str]:
    devices = claim["spec"].get("devices") or {}
    for request in devices.get("requests") or ():
        amounts = _configured(devices.get("config") or (), str(request["name"]))
        alternatives = request.get("firstAvailable") or (request.get("exactly") or {},)
        yield " or ".join(_alternative(each, amounts) for each in alternatives)


def _alternative(exact: Mapping[str, Any], amounts: Mapping[str, object]) -> str:
    count = "all" if exact.get("allocationMode") == "All" else exact.get("count", 1)
    requests = (exact.get("capacity") or {}).get("requests") or {}
    said = {**amounts, **{capacity_name(name): amount for name, amount in requests.items()}}
    parts = [f"{name} {amount}" for name, amount in sorted(said.items())]
    if any(not _is_of_limit(each, said) for each in exact.get("selectors") or ()):
        parts.append("by selectors")
    more = f" ({', '.join(parts)})" if parts else ""
    return f"{count} of {exact.get('deviceClassName', 'no class')}{more}"


def _is_of_limit(selector: Mapping[str, Any], said: Mapping[str, object]) -> bool:
    """Whether it says no more than the size: the pod's author wrote a limit, and no selector."""
    expression = (selector.get("cel") or {}).get("expression")
    return bool(expression == profile_selector(str(said.get(CAPACITY_SIZE))))


def _configured(config: Iterable[Mapping[str, Any]], request: str) -> dict[str, object]:
    """The driver's parameters for the request. A later entry goes before an earlier one."""
    configured: dict[str, object] = {}
    for entry in config:
        opaque = entry.get("opaque") or {}
        # An entry that names no request is for all. One for a request is for its alternatives.
        names = {name.partition("/")[0] for name in entry.get("requests") or (request,)}
        parameters = opaque.get("parameters")
        if opaque.get("driver") == DRIVER and request in names and isinstance(parameters, Mapping):
            configured |= {name: parameters[name] for name in parameters if name not in _TYPE_META}
    return configured
