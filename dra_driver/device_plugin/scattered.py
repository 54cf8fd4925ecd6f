"""Pods whose containers came to several cards. Pure.

A pod's slices, and its instances, should be of one card. But `Allocate` names no pod, so a
container can come to another card than those before it: see `hints`. That is seen afterwards alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.claim import Object
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.plugin_device import RESOURCES, PluginDevice


@dataclass(frozen=True, slots=True)
class Scattered:
    """A pod, and for people what is the matter with it."""

    pod: Object
    text: str


def scattered(recorded: Collection[Recorded], pods: Collection[Object]) -> list[Scattered]:
    """Those of `pods` that have slices, or instances, of several cards by the kubelet's record."""
    return [
        Scattered(pod, text)
        for pod in pods
        for mode in (Mode.SHARED, Mode.DRS)
        if (text := _text(mode, set(_devices(recorded, pod, mode))))
    ]


def _text(mode: Mode, devices: Collection[PluginDevice]) -> str:
    cards = sorted({device.card for device in devices})
    if len(cards) < 2:
        return ""
    return (
        f"its containers have {RESOURCES[mode]} of cards {', '.join(map(str, cards))}, and should "
        "have all of one card: delete the pod, so that it is placed anew, if they need that"
    )


def _devices(recorded: Collection[Recorded], pod: Object, mode: Mode) -> Iterator[PluginDevice]:
    for each in recorded:
        if each.pod == pod["metadata"]["uid"] and each.resource == RESOURCES[mode]:
            for text in each.devices:
                with suppress(InvalidValue):  # of another plugin for the same resource, before us
                    yield PluginDevice.parse(text)
