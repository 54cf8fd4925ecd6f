"""Files that outlive an agent, and those that people write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from dra_driver.config.card_rules import load_card_rules
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.kubelet_api.device_plugin.record import read_checkpoint
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.errors import Refused
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.names import CDI_KIND
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.spec import Injection, read_record, render
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import (
    CardRecordKind,
    ClaimStep,
    MetadataRef,
    card_record,
    decode,
    encode,
    record,
)
from dra_driver.simulator.description.load import machine_spec
from dra_driver.simulator.description.resolve import first_state
from tests.fuzz.engine import Subject
from tests.fuzz.hostile import Damaged, DamagedJson, one_of
from tests.unit.node.drs_world import SimulatedCards, tool
from tests.unit.node.journals import ref
from tests.unit.node.world import CARDS, card, hold

_INSTANCE: Final = Instance(1, "1g.6gb", "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11")
_HOLDS: Final = (
    hold(0, metadata=MetadataRef("gcu/big", "cards")),
    hold(1, mode=Mode.SHARED, share_id="share-1", consumed={"slices": "2"}),
    hold(2, mode=Mode.DRS, share_id="share-2", consumed={"size": "1"}, instance=_INSTANCE),
    hold(
        3, mode=Mode.DRS, share_id="share-3", consumed={"size": "3"}, instances_before=(_INSTANCE,)
    ),
)
_GRANT: Final = ContainerAllocation((PluginDevice(CARDS[1], Mode.SHARED, 3),), 6, "answer")
_HEADER: Final = {"kind": "header", "format": "gcu-dra-journal", "version": 1}
_RECORDS: Final[list[Any]] = [
    _HEADER,
    *(record(kind, ref(at), (each,)).raw for at, each in enumerate(_HOLDS) for kind in ClaimStep),
    record(ClaimStep.PREPARE_COMPLETED, _GRANT, (_HOLDS[1],)).raw,
    record(ClaimStep.RELEASED, ref(0), (), {"gcu": ("whole-0000-0d-00-0",)}).raw,
    *(card_record(kind, CARDS[0]).raw for kind in CardRecordKind),
    {"kind": "of-tomorrow", "claim": {"namespace": "team", "name": "claim-1", "uid": "uid-1"}},
]
_FRAMED: Final = b"".join(frames.encode(encode(raw)) for raw in _RECORDS)
_CDI: Final = render(
    ref(0),
    (_HOLDS[0],),
    {address: card(address, at) for at, address in enumerate(CARDS)},
    Injection.CDI,
    Path("/metadata"),
)
_CHECKPOINT: Final = {
    "Data": {
        "PodDeviceEntries": [
            {
                "PodUID": "0b6a1f7e-3f0c-4f3a-9f29-5e7b0a5b6a11",
                "ContainerName": "c",
                "ResourceName": "enflame.com/shared-gcu",
                "DeviceIDs": {"-1": ["0000:0d:00.0/shared/0"], "0": ["0000:0d:00.0/shared/1"]},
                "AllocResp": "CgA=",
            }
        ],
        "RegisteredDevices": {"enflame.com/shared-gcu": ["0000:0d:00.0/shared/0"]},
    },
    "Checksum": 1,
}
_MACHINE: Final = {
    "placement": "aligned",
    "cards": [
        {"bdf": "0000:0d:00.0", "model": "S60", "instances": [{"profile": "1g.6gb"}]},
        {"bdf": "0000:0e:00.0", "model": "S60", "errors": {"SIP Error": "3"}, "memoryMiB": "49120"},
    ],
    "faults": [{"fault": "create-fails", "card": "0000:0d:00.0", "times": "1"}],
}
_RULES: Final = {
    "sliceCount": 6,
    "modes": ["whole", "shared"],
    "rules": [
        {"nodes": ["node-7"], "cards": ["0000:0d:00.0"], "sliceCount": 4},
        {"nodeSelector": {"example.com/gcu-use": "inference"}, "modes": ["drs"]},
    ],
}
# What a YAML reader must not fall over: aliases that grow, tags, depth, a key that is a list.
_YAML: Final = (
    b"rules:\n- &a [x, x, x, x, x, x, x, x, x]\n"
    + b"".join(b"- &%c [%b]\n" % (at + 1, b", ".join([b"*%c" % at] * 9)) for at in b"abcdefgh"),
    b"rules: &r [*r]\nnodeName: *r\ncards: *r\n",
    b"sliceCount: !!int ''\nnodeName: !!bool maybe\ncards: !!timestamp never\n",
    b"sliceCount: !!float ''\nmodes: !!binary '='\nefsmiTimeout: 1:99:99.9\n",
    b"sliceCount: 0b_\nmodes: 2001-99-99\nnodeName: !!python/name:os.system\n",
    b"? [a, {b: c}]\n: x\nmodes: !!set {whole, shared}\nrules: !!omap [a: 1]\n<<: {cards: []}\n",
    b"[" * 300,
    b"a: " + b"{a: " * 100 + b"}" * 100,
)


def _framed(data: bytes, _: Path) -> object:
    return _folded([decode(payload) for payload in frames.scan(data).payloads])


def _recorded(data: bytes, _: Path) -> object:
    return _folded([decode(data)])


def _folded(records: list[Any]) -> object:
    """What a ledger makes of them must be writable again, and mean the same."""
    ledger = Ledger()
    for each in records:
        ledger = ledger.apply(each)
        for one in each.devices:
            assert one.amount is None or one.amount > 0
            assert one.card in CARDS or isinstance(one.card, PciAddress)
    again = Ledger()
    for raw in ledger.raw_records():
        again = again.apply(decode(encode(raw)))
    assert again.claims.keys() == ledger.claims.keys()
    assert again.switched == ledger.switched
    for holding in ledger.claims.values():
        # Whoever comes now is told who holds it, by all that a record says of him.
        with suppress(Refused):
            ledger.admit(ref(99), holding.devices)
    return ledger


def _journal(data: bytes, folder: Path) -> object:
    """A whole journal on disk: opened, damaged or not, and again without damage."""
    directory = _emptied(folder / "state")
    (directory / "journal").write_bytes(data)
    journal = Journal(directory, capacity=1 << 12)
    journal.open()
    if not journal.is_complete:
        journal.mark_rebuilt(journal.losses)
    held = journal.snapshot()
    journal.close()
    moved_aside: list[Path] = []
    again = Journal(directory, capacity=1 << 12, on_damaged=moved_aside.append)
    again.open()
    assert (again.is_complete, moved_aside) == (True, [])
    assert again.snapshot().claims.keys() == held.claims.keys()
    again.close()
    return held


def _cdi(data: bytes, _: Path) -> object:
    claim, holds = read_record(data, "uid-0")
    assert claim.uid == "uid-0"
    return holds


def _profiles(data: bytes, folder: Path) -> object:
    """The file is a cache: a damaged one is never an error."""
    directory = _emptied(folder / "state")
    (directory / "profiles.json").write_bytes(data)
    found = ProfileTables(directory).table(SimulatedCards(tool()).all()[0])
    assert {path.name for path in directory.iterdir()} == {"profiles.json"}
    return found


def _loaded(load_file: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def parse(data: bytes, folder: Path) -> object:
        file = folder / "file.yaml"
        file.write_bytes(data)
        return load_file(file)

    return parse


def _machine(file: Path) -> object:
    return first_state(machine_spec(file), identity="node-1")


def _known_profiles() -> bytes:
    known = [
        {"name": "1g.6gb", "id": 0, "count": 6, "memory_mib": 6860, "sips": 4},
        {"name": "3g.20gb", "id": 1, "count": 2, "memory_mib": 20920, "sips": 12},
    ]
    variant = {"model": "S60", "ecc": True, "memory_mib": 42976, "driver": "1.5"}
    table = {"variant": variant, "profiles": known}
    return json.dumps({"format": "gcu-dra-profiles", "version": 2, "tables": [table]}).encode()


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _written(document: object) -> Any:
    """As people write it, and with leaves of any kind."""
    text = yaml.safe_dump(document).encode()
    return one_of(Damaged([text]), Damaged([text, *_YAML]), DamagedJson([document]))


assert CDI_KIND.encode() in _CDI
SUBJECTS: Final = (
    Subject("journal-frames", Damaged([_FRAMED, _FRAMED[:300] + bytes(40)]), _framed),
    Subject(
        "journal-records", one_of(DamagedJson(_RECORDS), Damaged([encode(_RECORDS[3])])), _recorded
    ),
    Subject("journal-file", Damaged([_FRAMED, _FRAMED + bytes(200)]), _journal),
    Subject("cdi-file", one_of(Damaged([_CDI]), DamagedJson([json.loads(_CDI)])), _cdi),
    Subject(
        "profiles-file",
        one_of(Damaged([_known_profiles()]), DamagedJson([json.loads(_known_profiles())])),
        _profiles,
    ),
    Subject(
        "kubelet-checkpoint",
        one_of(Damaged([json.dumps(_CHECKPOINT).encode()]), DamagedJson([_CHECKPOINT])),
        _loaded(read_checkpoint),
    ),
    Subject("card-rules", DamagedJson([_RULES]), _loaded(load_card_rules)),
    Subject("machine-file", _written(_MACHINE), _loaded(_machine)),
)
