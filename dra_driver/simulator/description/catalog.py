"""What is publicly known about card models and their profile tables: ``catalog.yaml``."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

from pydantic import Field

from dra_driver.simulator.description import load
from dra_driver.simulator.description.spec import PciId, ProfileTableSpec, Spec, Word


class ModelForm(Spec):
    """Memory and profile table of a model in one ECC state."""

    memory_mib: int = Field(alias="memoryMiB")
    profile_table: Word | None = None


class Model(Spec):
    """What is known about a card model."""

    pci_id: PciId
    power_cap_watts: int
    drs: bool
    ecc: dict[Literal["Enable", "Disable"], ModelForm]


class Catalog(Spec):
    """``catalog.yaml``."""

    profile_tables: dict[Word, ProfileTableSpec]
    models: dict[Word, Model]


@cache
def catalog() -> Catalog:
    """The models and profile tables that come with the simulator."""
    file = resources.files("dra_driver.simulator.description") / "catalog.yaml"
    raw = load.parse_yaml(file.read_text(encoding="utf-8"), of=file.name)
    return load.validated(Catalog, raw, of=file.name)
