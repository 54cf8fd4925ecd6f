from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.measures import Share
from dra_driver.model.errors import GcuError, InvalidValue, Refused
from dra_driver.model.names import DRIVER
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.plan import planned_devices
from tests.unit.node.world import POOL, claim, gcu_config, hold, result

WRONG = {"opaque": {"driver": DRIVER, "parameters": {"packing": {"nodes": "spread"}}}}
THEIRS = {"opaque": {"driver": "nic.example.com", "parameters": {}}, "source": "FromClaim"}
ADMIN = "admin-0000-0d-00-0"


def not_called(device: PreparedDevice) -> Share | None:
    raise AssertionError(f"{device.device_name}: no card is read where nothing is measured")


def planned(object_: dict[str, Any]) -> tuple[PreparedDevice, ...]:
    ref = ClaimRef("team", "one", "uid-one")
    return planned_devices(object_, ref, pool=POOL, share=not_called)


@pytest.mark.parametrize(
    ("object_", "holds"),
    [
        pytest.param(claim("one", result(0)), (hold(0, visible_cards=()),), id="one card"),
        pytest.param(
            claim("one", result(1), result(0, "second")),
            (hold(1, visible_cards=()), hold(0, request="second", visible_cards=())),
            id="two requests",
        ),
        pytest.param(
            claim("one", result(0, "first/second-choice")),
            (hold(0, request="first", visible_cards=()),),
            id="a subrequest",
        ),
        pytest.param(
            claim("one", result(0, adminAccess=True)),
            (hold(0, visible_cards=(), admin_access=True),),
            id="administrative access",
        ),
        pytest.param(
            claim("one", result(ADMIN, adminAccess=True)),
            (replace(hold(0, visible_cards=(), admin_access=True), device_name=ADMIN),),
            id="administrative access by kube-scheduler",
        ),
        pytest.param(
            claim("one", result("nic-0", driver="nic.example.com", pool="x"), result(0)),
            (hold(0, visible_cards=()),),
            id="another driver's result is left out",
        ),
        pytest.param(
            claim("one", result(0), config=(THEIRS,)),
            (hold(0, visible_cards=()),),
            id="another driver's configuration",
        ),
        pytest.param(
            claim("one", result(0), config=(gcu_config("FromClass", packing={"nodes": "spread"}),)),
            (hold(0, visible_cards=()),),
            id="configuration that the controller has heeded",
        ),
    ],
)
def test_planned(object_: dict[str, Any], holds: tuple[object, ...]) -> None:
    assert planned(object_) == holds


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"shareID": "a"}, id="no amount"),
        pytest.param({"shareID": "a", "consumedCapacity": {"size": "2"}}, id="another capacity"),
        pytest.param({"shareID": "a", "consumedCapacity": {"slices": "1500m"}}, id="half a slice"),
    ],
)
def test_a_share_that_does_not_say_what_was_granted(more: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="does not say how much"):
        planned(claim("one", result("shared-0000-0d-00-0", **more)))


def stripped(*requests: str, device: str = "shared-0000-0d-00-0", **amounts: int) -> dict[str, Any]:
    """A claim whose shares the API server dropped, with what the controller granted."""
    config = tuple(gcu_config("FromClaim", **amounts) | {"requests": [each]} for each in requests)
    return claim("one", *(result(device, each) for each in requests), config=config)


@pytest.mark.parametrize(
    ("object_", "amounts"),
    [
        pytest.param(stripped("gcu", slices=2), {"gcu": 2}, id="slices"),
        pytest.param(stripped("gcu", device="drs-0000-0d-00-0", size=3), {"gcu": 3}, id="a size"),
        pytest.param(stripped("a", "b", slices=2), {"a": 2, "b": 2}, id="two of one device"),
        pytest.param(stripped("gcu/few", slices=1), {"gcu": 1}, id="a subrequest"),
    ],
)
def test_what_was_granted_where_the_server_drops_shares(
    object_: dict[str, Any], amounts: dict[str, int]
) -> None:
    holds = planned(object_)
    assert {each.request: each.amount for each in holds} == amounts
    assert all(each.share_id is None for each in holds)
    assert len({each.cdi_name for each in holds}) == len(holds)


def asking(
    capacity: str | None, configured: int, granted: str, *, drs: bool = False, domain: str = ""
) -> Any:
    """A claim that asks `capacity` in its request and what is `configured` besides."""
    name = "size" if drs else "slices"
    device = "drs-0000-0d-00-0" if drs else "shared-0000-0d-00-0"
    exactly = {"deviceClassName": "x"} | (
        {} if capacity is None else {"capacity": {"requests": {domain + name: capacity}}}
    )
    devices = {
        "requests": [{"name": "gcu", "exactly": exactly}],
        "config": [gcu_config("FromClaim", **{name: configured})],
    }
    share = result(device, shareID="a", consumedCapacity={domain + name: granted})
    return claim("one", share) | {"spec": {"devices": devices}}


@pytest.mark.parametrize(
    "object_",
    [
        pytest.param(asking("2", 2, "2"), id="both forms"),
        pytest.param(asking("2", 2, "2", domain="gcu.enflame.com/"), id="by the full name"),
        pytest.param(asking(None, 2, "2"), id="one form"),
        pytest.param(asking("2", 2, "3", drs=True), id="a size is rounded up"),
    ],
)
def test_forms_that_agree(object_: dict[str, Any]) -> None:
    assert len(planned(object_)) == 1


@pytest.mark.parametrize(
    ("object_", "reason"),
    [
        pytest.param(
            asking("3", 2, "3"),
            "its GcuConfig asks for slices 2, and its capacity.requests for 3; ask for the same",
            id="two forms",
        ),
        pytest.param(
            asking("3", 2, "3", domain="gcu.enflame.com/"),
            "its GcuConfig asks for slices 2, and its capacity.requests for 3; ask for the same",
            id="two forms, by the full name",
        ),
        pytest.param(
            asking(None, 2, "1"),
            "its GcuConfig asks for slices 2, and 1 was granted; let gcu-dra-controller allocate",
            id="an allocator that does not know it",
        ),
        pytest.param(
            asking(None, 3, "1", drs=True), "asks for size 3, and 1 was granted", id="less"
        ),
    ],
)
def test_forms_that_differ_are_refused(object_: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        planned(object_)


def test_one_share_of_a_device_for_a_request() -> None:
    twice = stripped("gcu", slices=2)
    twice["status"]["allocation"]["devices"]["results"] *= 2
    with pytest.raises(Refused, match="device shared-0000-0d-00-0 twice for request 'gcu'"):
        planned(twice)


UNALLOCATED = {"metadata": {"namespace": "team", "name": "one", "uid": "uid-one"}}


@pytest.mark.parametrize(
    ("object_", "error", "reason"),
    [
        pytest.param(UNALLOCATED, Refused, "claim team/one is not allocated", id="unallocated"),
        pytest.param(
            claim("one", result(0), uid="uid-new"),
            Refused,
            "claim team/one with UID uid-one is gone; .* has UID uid-new",
            id="another claim of the name",
        ),
        pytest.param(
            claim("one", result("nic-0", driver="nic.example.com")),
            Refused,
            r"allocated nothing of gcu\.enflame\.com",
            id="nothing of ours",
        ),
        pytest.param(
            claim("one", result(0, pool="gcu.enflame.com/node-2")),
            Refused,
            "request 'gcu', device whole-0000-0d-00-0: it is in pool gcu.enflame.com/node-2, and "
            "this node has gcu.enflame.com/node-1",
            id="another node",
        ),
        pytest.param(
            claim("one", result("shared-0000-0d-00-0", shareID="0b6a-1", adminAccess=True)),
            Refused,
            "adminAccess is for whole cards, and this is a shared device; request a whole card",
            id="administrative access to a share",
        ),
        pytest.param(
            claim("one", result("drs-0000-0d-00-0", adminAccess=True)),
            Refused,
            "adminAccess is for whole cards, and this is a drs device",
            id="administrative access to an instance",
        ),
        pytest.param(
            claim("one", result(ADMIN)),
            Refused,
            "it is for adminAccess alone, as others use the card meanwhile; request the ",
            id="the administrators' device without their access",
        ),
        pytest.param(
            claim("one", result("gcu-0")), InvalidValue, "device 'gcu-0' is not one", id="odd name"
        ),
        pytest.param(
            claim("one", result("shared-0000-0d-00-0", shareID="../../x")),
            InvalidValue,
            "is not a share ID",
            id="hostile share ID",
        ),
        pytest.param(
            claim(
                "one", result(0), config=({**WRONG, "source": "FromClaim", "requests": ["gcu"]},)
            ),
            InvalidValue,
            "of claim team/one is not understood: the field apiVersion is missing",
            id="configuration of the claim",
        ),
        pytest.param(
            claim("one", result(0), config=(THEIRS, {**WRONG, "source": "FromClass"})),
            InvalidValue,
            "of the DeviceClass of claim team/one is not understood",
            id="configuration of the class",
        ),
    ],
)
def test_refused(object_: dict[str, Any], error: type[GcuError], reason: str) -> None:
    with pytest.raises(error, match=reason):
        planned(object_)
