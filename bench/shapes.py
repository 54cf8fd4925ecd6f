"""The claims whose decisions are measured."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench import fleet
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER

_MEMORY = f'device.attributes["{DRIVER}"].memoryMiB'
Shape = Callable[[random.Random], Object]

SHAPES: dict[str, Shape] = {
    "shared": lambda _: fleet.claim([fleet.request("shared", 2)]),
    "mixed": lambda draw: fleet.claim(
        [fleet.request(draw.choice(("shared", "drs")), draw.choice((1, 3)))]
    ),
    "whole": lambda _: fleet.claim([fleet.request("whole")]),
    "whole2": lambda _: fleet.claim([fleet.request("whole", cards=2)]),
    "whole8": lambda _: fleet.claim(
        [fleet.request("whole", cards=8)], [{"matchAttribute": "gcu.enflame.com/model"}]
    ),
    "impossible": lambda _: fleet.claim(
        [fleet.request("whole", cards=8)], [{"matchAttribute": fleet.NUMA}]
    ),
}


def selecting(number: int, *, mode: str = "shared") -> Object:
    """A claim with a selector that no other number has; all cards satisfy it."""
    asked = fleet.request(mode, 1)
    asked["exactly"]["selectors"] = [{"cel": {"expression": f"{_MEMORY} > {number}"}}]
    return fleet.claim([asked])


def pair(number: int) -> Object:
    """Two requests, each with a selector of its own."""
    first, second = (selecting(2 * number + n)["spec"]["devices"]["requests"][0] for n in (0, 1))
    return fleet.claim([first | {"name": "first"}, second | {"name": "second"}])
