"""What is published of a card, and told of a claim's devices, as a real server keeps it."""

from __future__ import annotations

import pytest

from dra_driver.agent.slices import dropped_fields
from dra_driver.kube.client import Client
from dra_driver.kube.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claim import Object
from dra_driver.model.device import whole_device
from dra_driver.model.device_shares import MAX_SLICES, drs_device, shared_device
from dra_driver.model.instance import Instance
from dra_driver.model.profile import ProfileTable
from dra_driver.node.records import Hold
from dra_driver.node.status import device_statuses
from tests.control_plane.cards import card, table
from tests.control_plane.objects import claim, resource_slice

pytestmark = pytest.mark.control_plane

NOW = "2026-05-01T10:00:00Z"


def tables() -> list[ProfileTable]:
    return [table(*sizes) for sizes in ((1, 3, 6), (1, 2, 4), (2,), range(1, 13))]


def test_the_server_keeps_every_form_of_a_card(api: Client) -> None:
    devices = [
        *(
            shared_device(card(count), count, allocator="controller", sips=24)
            for count in range(1, MAX_SLICES + 1)
        ),
        *(drs_device(card(at), table, allocator="controller") for at, table in enumerate(tables())),
        whole_device(card(1), allocator="controller", sips=24),
    ]
    sent = resource_slice("node-of-devices", devices)
    kept = api.create(RESOURCE_SLICES, sent, dry_run=True)
    assert dropped_fields(sent["spec"], kept["spec"]) == []


def test_the_server_keeps_what_is_told_of_a_claims_devices(api: Client, namespace: str) -> None:
    pool, device = "gcu.enflame.com/node-of-devices", "drs-0000-01-00-0"
    shares = [f"{at:08x}-6a0e-4a54-9d0b-0f3a3f2f6a11" for at in (1, 2)]
    made = api.create(RESOURCE_CLAIMS, claim("shares", namespace))
    results = [
        {
            "request": "gcu",
            "driver": "gcu.enflame.com",
            "pool": pool,
            "device": device,
            "shareID": share,
            "consumedCapacity": {"size": "3"},
        }
        for share in shares
    ]
    allocated = {**made, "status": {"allocation": {"devices": {"results": results}}}}
    made = api.replace(RESOURCE_CLAIMS, allocated, subresource="status")
    holds = [
        Hold(
            "gcu",
            pool,
            device,
            share,
            {"size": "3"},
            instance=Instance(at, "3g.20gb", share),
        )
        for at, share in enumerate(shares)
    ]
    told: list[Object] = device_statuses(holds, {card(1).address: card(1)}, now=NOW)
    sent = {**made, "status": {**made["status"], "devices": told}}
    kept = api.replace(RESOURCE_CLAIMS, sent, subresource="status")
    assert kept["status"]["devices"] == told
