"""What a claim's opaque configuration may say, and what is said of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.config.device_config import (
    API_VERSION,
    KIND,
    amount_entry,
    merged_config,
    read_config,
)
from dra_driver.model.claims.measures import Measures
from dra_driver.model.claims.packing import Packing, PackingChoice
from dra_driver.model.claims.request_config import RequestConfig
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode

BINPACK, SPREAD = Packing.BINPACK, Packing.SPREAD
BOTH = {"nodes": "binpack", "cards": "spread"}


def entry(parameters: object, driver: str = "gcu.enflame.com") -> dict[str, Any]:
    return {"requests": ["gcu"], "opaque": {"driver": driver, "parameters": parameters}}


def config(**fields: object) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, **fields}


UNDERSTOOD = {
    "nothing more": ({}, RequestConfig()),
    "an empty part": ({"packing": {}}, RequestConfig()),
    "nodes": ({"packing": {"nodes": "spread"}}, RequestConfig(PackingChoice(nodes=SPREAD))),
    "cards": ({"packing": {"cards": "binpack"}}, RequestConfig(PackingChoice(cards=BINPACK))),
    "both": ({"packing": BOTH}, RequestConfig(PackingChoice(BINPACK, SPREAD))),
    "a packing left empty": (
        {"packing": {"nodes": None, "cards": "spread"}},
        RequestConfig(PackingChoice(cards=SPREAD)),
    ),
    "slices": ({"slices": 2}, RequestConfig(slices=2)),
    "a size": ({"size": 3}, RequestConfig(size=3)),
    "an amount left empty": ({"slices": None}, RequestConfig()),
    "memory": ({"memory": "14Gi"}, RequestConfig(measures=Measures(14336))),
    "memory rounded up": ({"memory": "1"}, RequestConfig(measures=Measures(1))),
    "cores": ({"cores": 24}, RequestConfig(measures=Measures(None, 24))),
    "in hardware": ({"isolation": "fixed-share"}, RequestConfig(mode=Mode.DRS)),
    "shared": ({"isolation": "best-effort"}, RequestConfig(mode=Mode.SHARED)),
}


@pytest.mark.parametrize(("fields", "said"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_understood(fields: dict[str, object], said: RequestConfig) -> None:
    assert read_config(entry(config(**fields)), "claim team/one") == said


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        pytest.param([], RequestConfig(), id="nothing"),
        pytest.param([{"slices": 2}, {"slices": 3}], RequestConfig(slices=3), id="the later wins"),
        pytest.param(
            [{"slices": 2}, {"size": 3}], RequestConfig(slices=2, size=3), id="both are kept"
        ),
        pytest.param(
            [{"packing": BOTH}, {"packing": {"nodes": "spread"}}],
            RequestConfig(PackingChoice(SPREAD, SPREAD)),
            id="the later wins in the part that it says",
        ),
        pytest.param(
            [{"packing": BOTH}, {"slices": 2}],
            RequestConfig(PackingChoice(BINPACK, SPREAD), slices=2),
            id="a part of which the later says nothing stays",
        ),
    ],
)
def test_entries_are_merged(entries: list[dict[str, object]], said: RequestConfig) -> None:
    for_another = entry(config(slices=9)) | {"requests": ["other"]}
    of_another_driver = entry({"anything": 1}, "nic.example.com")
    found = [entry(config(**each)) for each in entries] + [for_another, of_another_driver]
    assert merged_config(found, "gcu", "claim team/one") == said


def test_an_entry_that_is_written_is_understood() -> None:
    written = amount_entry(["gcu"], {"slices": 2})
    assert written["requests"] == ["gcu"]
    assert read_config(written, "claim team/one") == RequestConfig(slices=2)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(entry({"anything": 1}, "nic.example.com"), id="another driver"),
        pytest.param({"requests": ["gcu"]}, id="not opaque"),
    ],
)
def test_what_is_meant_for_others_says_nothing(other: dict[str, Any]) -> None:
    assert read_config(other, "claim team/one") is None


REFUSED = {
    "another version": (
        config(apiVersion="gcu.enflame.com/v1"),
        "apiVersion: Input should be 'gcu.enflame.com/v1alpha1' (given \"gcu.enflame.com/v1\")",
    ),
    "another kind": (config(kind="Gpu"), "kind: Input should be 'GcuConfig' (given \"Gpu\")"),
    "no kind": ({"apiVersion": API_VERSION}, "the field kind is missing"),
    "no version": ({"kind": KIND}, "the field apiVersion is missing"),
    "an unknown field": (config(nodes="spread"), "the field nodes is unknown"),
    "an unknown field within": (
        config(packing={"node": "spread"}),
        "the field packing.node is unknown",
    ),
    "another spelling": (
        {"api_version": API_VERSION, "kind": KIND},
        "the field apiVersion is missing; the field api_version is unknown",
    ),
    "an unknown value": (
        config(packing={"cards": "Spread"}),
        f"packing.cards: Input should be '{BINPACK}'",
    ),
    "a value of another type": (config(packing="spread"), "packing: Input should be"),
    "no slices": (config(slices=0), "slices: Input should be greater than or equal to 1"),
    "slices as text": (config(slices="2"), 'slices: Input should be a valid integer (given "2")'),
    "half a size": (config(size=1.5), "size: Input should be a valid integer"),
    "a truth for an amount": (config(size=True), "size: Input should be a valid integer"),
    "more than a number holds": (config(slices=2**31), "slices: Input should be less than"),
    "memory as a number": (config(memory=14), "memory: a quantity in quotes is"),
    "memory that is no quantity": (
        config(memory="14GB"),
        "memory: '14GB' is not a quantity; write a number",
    ),
    "no memory": (config(memory="0"), "memory: more than nothing is needed"),
    "a whole card": (
        config(cores=100),
        "cores: it is 1 to 99; for a whole card request gcu.enflame.com (given 100)",
    ),
    "no cores": (config(cores=0), "cores: a whole percentage from 1 to 99"),
    "half a percent": (config(cores=0.5), "cores: a whole percentage from 1 to 99"),
    "what others lend": (config(isolation="burst-share"), "GCUs have no burst-share"),
    "another isolation": (config(isolation="none"), "write best-effort or fixed-share"),
    "two ways to ask": (config(slices=2, cores=30), "leave one of them out"),
    "no object": ("spread", "parameters: Input should be"),
    "nothing": (None, "parameters: Input should be"),
}


@pytest.mark.parametrize(("parameters", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_with_the_field_and_the_remedy(parameters: object, words: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_config(entry(parameters), "claim team/one")
    told = str(refused.value)
    assert "Value error" not in told
    assert words in told
    assert "the configuration for gcu.enflame.com of claim team/one is not understood" in told
    assert told.endswith(f"; write kind {KIND} of {API_VERSION} as in docs/user/reference.md")
