"""Names of claim templates for limits, and what they ask for."""

from __future__ import annotations

import pytest

from controller.reconcile.templates import is_ours
from dra_driver.asks.templates import template_for
from dra_driver.config.device_config import read_config
from dra_driver.model.claims.claim import Object

WHOLE = {"deviceClassName": "gcu.enflame.com"}
SHARED = {"deviceClassName": "shared-gcu.enflame.com"}
DRS = {"deviceClassName": "drs-gcu.enflame.com"}
ON_ONE_CARD = [{"matchAttribute": "gcu.enflame.com/card"}]


def slices(amount: str) -> Object:
    return SHARED | {"capacity": {"requests": {"slices": amount}}}


def instance(amount: str) -> Object:
    cel = f'device.attributes["gcu.enflame.com"].profiles.matches("(^|,){amount}g[.]")'
    return {
        "deviceClassName": "drs-gcu.enflame.com",
        "capacity": {"requests": {"size": amount}},
        "selectors": [{"cel": {"expression": cel}}],
    }


ASKED = {
    "enflame-gcu-1": ([WHOLE | {"count": 1}], None),
    "enflame-gcu-2-30": ([WHOLE | {"count": 2}, WHOLE | {"count": 30}], None),
    "enflame-shared-gcu-2": ([slices("2")], None),
    "enflame-shared-gcu-2-1": ([slices("2"), slices("1")], ON_ONE_CARD),
    "enflame-drs-gcu-3": ([instance("3")], None),
    "enflame-drs-gcu-1-6": ([instance("1"), instance("6")], ON_ONE_CARD),
    "enflame-shared-gcu-devices-2": ([SHARED | {"count": 2}], None),
    "enflame-drs-gcu-devices-1-2": ([DRS | {"count": 1}, DRS | {"count": 2}], None),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_a_template_asks(name: str) -> None:
    requests, constraints = ASKED[name]
    made = template_for("a", name)
    assert made is not None
    assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("a", name)
    assert is_ours(made)
    devices = made["spec"]["spec"]["devices"]
    assert [each["exactly"] for each in devices["requests"]] == requests
    assert [each["name"] for each in devices["requests"]] == [
        f"gcu-{i}" for i in range(len(requests))
    ]
    assert devices.get("constraints") == constraints


@pytest.mark.parametrize(
    ("name", "asked"),
    {
        "enflame-fixed-share-20480m40c": [{"memory": "20480Mi", "cores": 40}],
        "enflame-best-effort-7c-9999999m": [{"cores": 7}, {"memory": "9999999Mi"}],
    }.items(),
)
def test_what_a_template_asks_by_measures(name: str, asked: list[Object]) -> None:
    made = template_for("a", name)
    assert made is not None
    assert is_ours(made)
    devices = made["spec"]["spec"]["devices"]
    part = {"deviceClassName": "part-gcu.enflame.com"}
    assert devices["requests"] == [{"name": f"gcu-{i}", "exactly": part} for i in range(len(asked))]
    # Containers of a pod may be on different cards: no card may have room for all of them.
    assert "constraints" not in devices
    isolation = "fixed-share" if "fixed" in name else "best-effort"
    for each, config, measures in zip(devices["requests"], devices["config"], asked, strict=True):
        assert config["requests"] == [each["name"]]
        parameters = config["opaque"]["parameters"]
        assert parameters.items() >= (measures | {"isolation": isolation}).items()
        assert read_config(config, "the claim") is not None


@pytest.mark.parametrize(
    "name",
    [
        "enflame-fixed-share-",
        "enflame-fixed-share-0m",
        "enflame-fixed-share-100c",
        "enflame-fixed-share-40c20m",
        "enflame-fixed-share-10000000m",
        "enflame-burst-share-10c",
        "enflame-gcu",
        "enflame-gcu-",
        "enflame-gcu-0",
        "enflame-gcu-01",
        "enflame-gcu--1",
        "enflame-gcu-1000",
        "enflame-gcu-33",
        "enflame-gcu-32-1",
        "enflame-gcu-devices-1",
        "enflame-shared-gcu-devices-32-1",
        "enflame-shared-gcu-devices",
        "enflame-tpu-1",
        "my-enflame-gcu-1",
        "enflame-gcu-1-" + "-".join("1" * 32),
        "enflame-gcu-1\n",
    ],
)
def test_other_names_are_none_of_ours(name: str) -> None:
    assert template_for("a", name) is None


@pytest.mark.parametrize("labels", [None, {}, {"gcu.enflame.com/made-for-limits": "false"}])
def test_somebody_elses(labels: Object | None) -> None:
    assert not is_ours({"metadata": {"name": "enflame-gcu-1", "labels": labels}})
