"""Grants of the device plugin, and the IDs that they are known by."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.owner import ContainerAllocation, grant_uid
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress

ONE, TWO = (PciAddress.parse(f"0000:{bus}:00.0") for bus in ("0d", "0e"))


@pytest.mark.parametrize("mode", list(Mode))
def test_an_id_says_what_it_stands_for(mode: Mode) -> None:
    made = PluginDevice(ONE, mode, 11)
    assert str(made) == f"0000:0d:00.0/{mode.value}/11"
    assert PluginDevice.parse(str(made)) == made
    assert len(str(made)) <= 63  # deviceplugin/v1beta1, Device.ID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0000:0d:00.0/shared",
        "0000:0d:00.0/shared/01",
        "0000:0d:00.0/shared/-1",
        "0000:0D:00.0/shared/1",
        "0000:0d:00.0/half/1",
        "0:d:0.0/shared/1",
        "0000:0d:00.0/shared/1\n",
        "0000:0d:00.0/shared/1/2",
    ],
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(InvalidValue):
        PluginDevice.parse(text)


@pytest.mark.parametrize(
    "devices",
    [
        (),
        (PluginDevice(ONE, Mode.SHARED, 1), PluginDevice(ONE, Mode.SHARED, 0)),
        (PluginDevice(ONE, Mode.SHARED, 0), PluginDevice(ONE, Mode.SHARED, 0)),
        (PluginDevice(ONE, Mode.DRS, 0), PluginDevice(ONE, Mode.SHARED, 0)),
        (PluginDevice(ONE, Mode.SHARED, 0), PluginDevice(TWO, Mode.SHARED, 0)),
        (PluginDevice(ONE, Mode.DRS, 0), PluginDevice(TWO, Mode.DRS, 0)),
    ],
    ids=["none", "descending", "twice", "two modes", "slices of two cards", "DRS of two cards"],
)
def test_what_no_container_can_have(devices: tuple[PluginDevice, ...]) -> None:
    with pytest.raises(InvalidValue):
        ContainerAllocation(devices, 6, "")


def test_a_container_can_have_several_whole_cards() -> None:
    grant = ContainerAllocation(
        (PluginDevice(ONE, Mode.WHOLE, 0), PluginDevice(TWO, Mode.WHOLE, 0)), 1, ""
    )
    assert grant.cards == (ONE, TWO)
    assert grant.title == "the container with enflame.com/gcu 0000:0d:00.0,0000:0e:00.0"


def test_the_same_devices_are_the_same_grant_whatever_their_order() -> None:
    devices = (PluginDevice(ONE, Mode.SHARED, 0), PluginDevice(ONE, Mode.SHARED, 1))
    first, again = (
        ContainerAllocation(devices, 6, "first"),
        ContainerAllocation(devices, 6, "again"),
    )
    assert first.uid == again.uid == grant_uid(reversed(devices))
    assert first != again
    assert first.uid != grant_uid(devices[:1])
