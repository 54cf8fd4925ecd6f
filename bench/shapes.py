"""The claims whose decisions are measured."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench import fleet
from dra_driver.model.claim import Object

SHAPES: dict[str, Callable[[random.Random], Object]] = {
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
