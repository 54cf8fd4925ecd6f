"""The description of a machine as a person writes it, validated key by key.

What is left out is filled in by `resolve`; what one key alone cannot tell (two cards with one
minor, a model that is not known) is checked there too.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from dra_driver.simulator import faults
from dra_driver.simulator.commands.command import COMMANDS
from dra_driver.simulator.commands.layout.query import ERROR_KINDS

EccState = Literal["Enable", "Disable", "N/A"]


def _matching(pattern: str, words: str) -> AfterValidator:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"{value!r} is not {words}")
        return value

    return AfterValidator(check)


def _one_of(names: Collection[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in names:
            raise ValueError(f"{value!r} is none of {', '.join(names)}")
        return value

    return AfterValidator(check)


_ADDRESS = r"[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
_CPUS = r"\d+(-\d+)?"
_RFC_4122 = "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

Bdf = Annotated[
    str,
    _matching(
        rf"[0-9a-f]{{4,8}}:{_ADDRESS}",
        "a PCI address with its domain in lower case, as in 0000:0d:00.0",
    ),
]
PciPath = Annotated[
    str,
    _matching(
        rf"pci[0-9a-f]{{4,8}}:[0-9a-f]{{2}}(/[0-9a-f]{{4,8}}:{_ADDRESS})*",
        "a PCIe root and its bridges, as in pci0000:00/0000:00:01.0/0000:02:00.0",
    ),
]
PciId = Annotated[
    str, _matching("[0-9a-f]{4}:[0-9a-f]{4}", "a vendor and a device id, as in 1e36:c035")
]
CpuList = Annotated[str, _matching(rf"{_CPUS}(,{_CPUS})*", "a list of CPUs, as in 0-7,32-39")]
Uuid = Annotated[str, _matching(_RFC_4122, "an RFC 4122 uuid in lower case")]
ProfileName = Annotated[str, _matching(r"[1-9]\d?g\.\d{1,4}gb", "a profile's name, as in 3g.20gb")]
Word = Annotated[str, _matching("[!-~]{1,64}", "one word of 1 to 64 ASCII characters")]
Text = Annotated[str, _matching("[ -~]{1,64}", "1 to 64 ASCII characters")]
Watts = Annotated[int | None, BeforeValidator(lambda value: None if value == "N/A" else value)]
ErrorKind = Annotated[str, _one_of(ERROR_KINDS)]
Command = Annotated[str, _one_of(COMMANDS)]
FaultName = Annotated[str, _one_of(faults.MEANINGS)]


class Spec(BaseModel):
    """Keys are camelCase, unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class ProfileSpec(Spec):
    """One row of a profile table: `count` of them fit an empty card."""

    id: int = Field(ge=0, le=255)
    name: ProfileName
    count: int = Field(ge=1, le=64)
    memory_mib: int = Field(alias="memoryMiB", gt=0)
    sips: int = Field(gt=0)


class ProfileTableSpec(Spec):
    """`assumed` marks a table of which something is a guess."""

    assumed: bool = False
    profiles: tuple[ProfileSpec, ...] = Field(min_length=1)


class EfsmiSpec(Spec):
    """Which version of the tool answers. The defaults are those of a recent one."""

    version: Word = "1.5.0.1"
    header: Literal["GCU", "DEV"] = "GCU"  # of the first column of -L
    banner: bool = True
    json_output: bool = Field(alias="json", default=True)  # older tools refuse --json-format
    json_units: bool = True  # "42976 MiB" rather than 42976
    keys: Literal["current", "old"] = "current"  # of -q; old says Mem Size for Total Size
    instance_rows: bool = True  # -i N -L shows instances; older tools only by --list-instance
    vendor_in_name: bool = True  # "Enflame S60" rather than "S60"
    temperature_unit: Literal["℃", "C"] = "℃"  # 39℃ or 39 C
    rma_info: bool = True


class FaultSpec(Spec):
    """A fault from the start on, or switched on later; what each does: `faults.MEANINGS`."""

    fault: FaultName
    card: Bdf | None = None
    command: Command | None = None
    times: int | None = Field(default=None, ge=1)
    seconds: float = Field(default=0, ge=0)
    exit_code: int = Field(default=1, ge=1, le=125)

    @property
    def hang_seconds(self) -> float:
        return self.seconds or (faults.HANG_SECONDS if self.fault in faults.HANGS else 0.0)


class InstanceSpec(Spec):
    """An instance that somebody made before: foreign to whoever comes now."""

    profile: Word
    uuid: Uuid | None = None


class CardSpec(Spec):
    """One card. Left out: index and minor follow the order of the file, uuid and serial come
    from the address, memory and profiles from the model and its ECC state."""

    bdf: Bdf  # efsmi prints the domain with as many digits; Linux with four if they suffice
    model: Word
    pci_id: PciId | None = None
    pci_path: PciPath = "pci0000:00"
    index: int | None = Field(default=None, ge=0, le=63)
    minor: int | None = Field(default=None, ge=0, le=63)
    numa_node: int = Field(default=-1, ge=-1, le=255)
    cpu_affinity: CpuList = "0-7"
    uuid: Word | None = None
    serial: Word | None = None
    slot: Text = "N/A"
    firmware: Word = "33.6.5"
    ecc: EccState = "Enable"
    ecc_pending: EccState | None = None
    memory_mib: int | None = Field(alias="memoryMiB", default=None, gt=0)
    reserved_mib: int = Field(alias="reservedMiB", default=1129, ge=0)
    profile_table: Word | None = None
    drs: bool | None = None
    virtualization: Literal["Disable", "SRIOV"] = "Disable"
    health: bool = True
    rma: bool = False
    errors: dict[ErrorKind, int] = Field(default_factory=dict)
    power_watts: Watts = 99  # or N/A
    power_cap_watts: int | None = Field(default=None, gt=0)
    temperature: int = 35
    video_nodes: int = Field(default=2, ge=0, le=16)
    instances: tuple[InstanceSpec, ...] = ()


class MachineSpec(Spec):
    """The whole file."""

    driver_version: Word = "1.5.20260710"
    driver_directory: Literal["enflame", "zixiao"] = "enflame"  # below the PCI device
    efsmi: EfsmiSpec = EfsmiSpec()
    placement: Literal["any", "aligned"] = "any"
    instance_ids: Literal["reused", "increasing"] = "reused"
    instances_survive_reboot: bool = False
    delays_ms: dict[Command, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    faults: tuple[FaultSpec, ...] = ()
    # 240 to 254 are for local and experimental use (Linux, admin-guide/devices.txt).
    char_major: int = Field(default=240, ge=1, le=511)
    profile_tables: dict[Word, ProfileTableSpec] = Field(default_factory=dict)
    cards: tuple[CardSpec, ...] = Field(max_length=64)
