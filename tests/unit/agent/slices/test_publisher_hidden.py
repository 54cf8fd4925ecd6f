"""Hidden slices are published, and one form changes into the other."""

from __future__ import annotations

from dra_driver.agent.slices.slices import SliceForm
from dra_driver.model.devices.hidden_device import hidden_name
from dra_driver.model.names import (
    TAINT_CHANGING,
    TAINT_UNHEALTHY,
)
from dra_driver.model.pci import PciAddress
from tests.unit.agent.objects import device, published
from tests.unit.agent.scripted_api import ScriptedApi
from tests.unit.agent.slices.publisher_rig import ALLOCATED_BY, Rig

CARD = PciAddress.parse("0000:01:00.0")
HIDDEN = hidden_name("n1")


def hidden_rig(api: ScriptedApi) -> Rig:
    """A publisher of hidden slices, of which there are none yet."""
    return Rig(api, form=SliceForm.HIDDEN).listed()


def test_hidden_slices_are_written_once() -> None:
    """Nothing is written that a server of 1.34 drops, so that nothing is to be written again."""
    rig = hidden_rig(ScriptedApi())
    rig.devices = [device(1, taints=[{"key": TAINT_CHANGING, "effect": "NoSchedule"}])]
    first = rig.publisher.publish()
    assert first is not None
    [written] = first.create
    assert "nodeName" not in written["spec"]
    assert written["spec"]["nodeSelector"] == {"nodeSelectorTerms": [{}]}
    assert written["spec"]["devices"] == [
        {"name": "whole-0000-01-00-0", "attributes": {"changing": {"bool": True}}}
    ]
    assert not rig.publisher.publish()
    assert rig.api.calls == ["version", "list", "get nodes", "dry run", "create"]


def test_from_hidden_to_visible_nothing_is_missing_and_no_card_changes() -> None:
    """The visible slice is there before the hidden one goes; a held card is not tainted."""
    before = hidden_rig(ScriptedApi())
    before.devices = [device(1, taints=[ALLOCATED_BY])]
    before.publisher.publish()
    [old] = before.publisher.published.slices or ()
    api = ScriptedApi()
    api.objects[HIDDEN] = old
    rig = Rig(api).listed()
    rig.devices, rig.held = before.devices, frozenset({CARD})
    changes = rig.publisher.publish()
    assert changes is not None
    assert api.calls == ["version", "list", "get nodes", "dry run", "create", "delete"]
    assert [each["metadata"]["name"] for each in changes.superseded] == [HIDDEN]
    [new] = rig.publisher.published.slices or ()
    assert new["spec"]["devices"] == before.devices
    assert new["spec"]["pool"]["name"] == old["spec"]["pool"]["name"]
    assert new["spec"]["pool"]["generation"] > old["spec"]["pool"]["generation"]
    assert not rig.publisher.publish()


def test_from_visible_to_hidden_the_visible_one_goes_first() -> None:
    api = ScriptedApi()
    [old] = published(device(1, taints=[ALLOCATED_BY]))
    api.objects[old["metadata"]["name"]] = old
    rig = hidden_rig(api)
    rig.devices = [device(1, taints=[ALLOCATED_BY])]
    rig.publisher.publish()
    assert api.calls[-3:] == ["delete", "dry run", "create"]


def test_devices_of_the_other_form_count_as_published() -> None:
    """A held card that is lost keeps its device, in whichever form it was published."""
    api = ScriptedApi()
    before = hidden_rig(ScriptedApi())
    before.devices = [device(1), device(2)]
    before.publisher.publish()
    [api.objects[HIDDEN]] = before.publisher.published.slices or ()
    rig = Rig(api).listed()
    rig.held = frozenset({PciAddress.parse("0000:02:00.0")})
    rig.publisher.publish()
    found = {each["name"]: each["taints"] for each in rig.publisher.published.devices}
    assert {"key": TAINT_UNHEALTHY, "value": "lost", "effect": "NoSchedule"} in found[
        "whole-0000-02-00-0"
    ]
    assert ALLOCATED_BY in found["whole-0000-02-00-0"]
