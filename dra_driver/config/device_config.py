"""Opaque configuration for this driver, in ``spec.devices.config`` of a claim or ``spec.config`` of
a DeviceClass::

    config:
    - requests: [gcu]                  # without it, all of the claim's requests
      opaque:
        driver: gcu.enflame.com
        parameters:
          apiVersion: gcu.enflame.com/v1alpha1
          kind: GcuConfig
          slices: 2                    # of a shared card; or size: 3, of a DRS instance;
          memory: 14Gi                 # or by what is needed of a card
          cores: 30                    # percent of its compute
          isolation: fixed-share       # a DRS instance; best-effort: shared slices
          packing: {nodes: spread, cards: binpack}
          deviceMetadata: true         # containers get a file with the devices' attributes

The API server stores any object, so it is checked here, for the controller
before it allocates and for the node when it prepares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from dra_driver.config.loader import problems
from dra_driver.model.claims.amounts import config_applies
from dra_driver.model.claims.measures import Measures
from dra_driver.model.claims.packing import Packing, PackingChoice
from dra_driver.model.claims.request_config import RequestConfig
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_WHOLE, DRIVER
from dra_driver.model.quantity import parse_quantity

API_VERSION: Final = "gcu.enflame.com/v1alpha1"
KIND: Final = "GcuConfig"


class _ConfigModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class PackingConfig(_ConfigModel):
    """How nodes and their cards are chosen; the defaults are the administrator's."""

    nodes: Packing | None = None
    cards: Packing | None = None


Amount = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
ISOLATION_FIELD: Final = "isolation"
ISOLATION: Final = {"best-effort": Mode.SHARED, "fixed-share": Mode.DRS}
ISOLATION_OF_MODE: Final = {mode: word for word, mode in ISOLATION.items()}


def _memory_mib(text: object) -> int:
    if not isinstance(text, str):
        # Not TypeError, which pydantic does not take for the user's fault.
        raise ValueError("a quantity in quotes is needed, such as 14Gi")  # noqa: TRY004
    try:
        mib = math.ceil(parse_quantity(text) / 2**20)
    except InvalidValue as error:
        raise ValueError(str(error)) from error
    if mib < 1:
        raise ValueError("more than nothing is needed")
    return mib


def _cores(percent: object) -> int:
    if type(percent) is not int or percent < 1:
        raise ValueError("a whole percentage from 1 to 99 is needed")
    if percent >= 100:
        raise ValueError(f"it is 1 to 99; for a whole card request {CLASS_WHOLE}")
    return percent


def _isolation(word: object) -> Mode:
    if word == "burst-share":
        raise ValueError(
            "GCUs have no burst-share, where compute that others leave idle is lent: no isolation "
            "of theirs measures compute; write best-effort or fixed-share"
        )
    if word not in ISOLATION:
        raise ValueError(f"write {' or '.join(ISOLATION)}")
    return ISOLATION[str(word)]


class GcuConfig(_ConfigModel):
    """The whole object. `slices` and `size` mean the same as in ``capacity.requests``, for API
    servers that drop that field (before Kubernetes 1.36). `memory`, in MiB once it is read, and
    `cores` are in their place; `isolation` is the mode that it stands for."""

    api_version: Literal["gcu.enflame.com/v1alpha1"]
    kind: Literal["GcuConfig"]
    slices: Amount | None = None
    size: Amount | None = None
    memory: Annotated[int, BeforeValidator(_memory_mib)] | None = None
    cores: Annotated[int, BeforeValidator(_cores)] | None = None
    isolation: Annotated[Mode, BeforeValidator(_isolation)] | None = None
    packing: PackingConfig = Field(default_factory=PackingConfig)
    device_metadata: Annotated[bool, Field(strict=True)] | None = None

    @model_validator(mode="after")
    def _asks_in_one_way(self) -> Self:
        amounts = self.slices is not None or self.size is not None
        if amounts and (self.memory is not None or self.cores is not None):
            raise ValueError("it has slices or size, and memory or cores: leave one of them out")
        return self


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
        raise InvalidValue(
            f"the configuration for {DRIVER} of {owner} is not understood: "
            f"{problems(error, whole='parameters')}",
            remedy=f"write kind {KIND} of {API_VERSION} as in docs/user/reference.md",
        ) from error
    packing = PackingChoice(config.packing.nodes, config.packing.cards)
    asks = config.memory is not None or config.cores is not None
    measures = Measures(config.memory, config.cores) if asks else None
    return RequestConfig(
        packing, config.slices, config.size, measures, config.isolation, config.device_metadata
    )


def merged_config(entries: Iterable[Mapping[str, Any]], request: str, owner: str) -> RequestConfig:
    """What the entries of one ``config`` say for the request together; the later entry wins. The
    configuration of a claim is `RequestConfig.over` that of its DeviceClass. Raises InvalidValue as
    `read_config` does."""
    merged = RequestConfig()
    for entry in entries:
        if config_applies(entry, request):
            config = read_config(entry, owner)
            merged = merged if config is None else config.over(merged)
    return merged


def amount_entry(requests: Sequence[str], amounts: Mapping[str, int]) -> dict[str, Any]:
    """An entry of a claim's ``config`` that asks for the amounts, by capacity, in `requests`."""
    parameters = {"apiVersion": API_VERSION, "kind": KIND, **amounts}
    return {
        "opaque": {"driver": DRIVER, "parameters": parameters},
        "requests": list(requests),
    }
