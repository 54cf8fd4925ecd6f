"""All strategies by name. Nothing else chooses one by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controller.allocator.packing.as_published import AsPublished
from controller.allocator.packing.binpack import Binpack
from controller.allocator.packing.spread import Spread
from controller.allocator.packing.strategy import Strategy
from dra_driver.model.claims.packing import Packing

STRATEGIES: Final[Mapping[Packing, Strategy]] = MappingProxyType(
    {
        Packing.BINPACK: Binpack(),
        Packing.SPREAD: Spread(),
    }
)

AS_PUBLISHED: Final[Strategy] = AsPublished()
"""Nobody chooses it: it is how kube-scheduler chooses devices."""
