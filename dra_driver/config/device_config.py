"""Opaque configuration for this driver, in ``spec.devices.config`` of a claim or ``spec.config`` of
a DeviceClass::

    config:
    - requests: [gcu]                  # without it, all of the claim's requests
      opaque:
        driver: gcu.enflame.com
        parameters:
          apiVersion: gcu.enflame.com/v1alpha1
          kind: GcuConfig
          slices: 2                    # of a shared card; or size: 3, of a DRS instance
          packing: {nodes: spread, cards: binpack}

The API server stores any object, so it is checked here, for the controller
before it allocates and for the node when it prepares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from dra_driver.model.claims.packing import Packing, PackingChoice
from dra_driver.model.claims.request_config import RequestConfig
from dra_driver.model.errors import InvalidValue
from dra_driver.model.names import DRIVER

API_VERSION: Final = "gcu.enflame.com/v1alpha1"
KIND: Final = "GcuConfig"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class PackingConfig(_Part):
    """How nodes and their cards are chosen; the defaults are the administrator's."""

    nodes: Packing | None = None
    cards: Packing | None = None


_Amount = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]


class GcuConfig(_Part):
    """The whole object. `slices` and `size` mean the same as in ``capacity.requests``, for API
    servers that drop that field (before Kubernetes 1.36)."""

    api_version: Literal["gcu.enflame.com/v1alpha1"]
    kind: Literal["GcuConfig"]
    slices: _Amount | None = None
    size: _Amount | None = None
    packing: PackingConfig = Field(default_factory=PackingConfig)


def read_config(entry: Mapping[str, Any], owner: str) -> RequestConfig | None:
    """The configuration in an entry of ``config``; None if it is for another driver.

    `owner` describes the object with the entry. Raises InvalidValue with the owner, each wrong
    field, and the remedy.
    """
    opaque = entry.get("opaque") or {}
    if opaque.get("driver") != DRIVER:
        return None
    try:
        config = GcuConfig.model_validate(opaque.get("parameters"))
    except ValidationError as error:
        problems = "; ".join(_problems(error))
        raise InvalidValue(
            f"the configuration for {DRIVER} of {owner} is not understood: {problems}",
            remedy=f"write kind {KIND} of {API_VERSION} as in docs/user/how-a-device-is-chosen.md",
        ) from error
    packing = PackingChoice(config.packing.nodes, config.packing.cards)
    return RequestConfig(packing, config.slices, config.size)


def amount_entry(requests: Sequence[str], amounts: Mapping[str, int]) -> dict[str, Any]:
    """An entry of a claim's ``config`` that asks for the amounts, by capacity, in `requests`."""
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **amounts}
    return {
        "opaque": {"driver": DRIVER, "parameters": parameters},
        "requests": list(requests),
    }


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        place = ".".join(map(str, problem["loc"])) or "parameters"
        match problem["type"]:
            case "extra_forbidden":
                yield f"the field {place} is unknown"
            case "missing":
                yield f"the field {place} is missing"
            case _:
                yield f"{place}: {problem['msg']} (given {problem['input']!r})"
