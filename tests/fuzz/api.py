"""What comes from the API server and the kubelet: claims, pods, names, selectors, errors."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from pydantic import ValidationError

from dra_driver.agent.settings import AgentSettings
from dra_driver.config.device_config import read_config
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.errors import from_response
from dra_driver.kube.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.measures import whole_share
from dra_driver.model.devices.device import device_name, parse_device_name
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.errors import GcuError, InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.names import pool_name
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import profile_size
from dra_driver.model.quantity import parse_quantity
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.locks import Locks
from dra_driver.node.plan import planned_devices
from tests.fuzz.engine import Subject
from tests.fuzz.hostile import STRINGS, Damaged, DamagedJson, one_of
from tests.unit.node.drs_world import DrsWorld, share, slices
from tests.unit.node.world import POOL, Agent, claim, pod, result

_OPAQUE: Final = {
    "source": "FromClaim",
    "requests": ["gcu"],
    "opaque": {"driver": "gcu.enflame.com", "parameters": {"apiVersion": "v1", "slices": 2}},
}
_PACKING: Final = {
    "source": "FromClaim",
    "opaque": {
        "driver": "gcu.enflame.com",
        "parameters": {
            "apiVersion": "gcu.enflame.com/v1alpha1",
            "kind": "GcuConfig",
            "packing": {"nodes": "spread", "cards": "binpack"},
        },
    },
}
_OTHERS: Final = {"source": "FromClass", "opaque": {"driver": "gpu.example.com", "parameters": {}}}
_FREE: Final = ("parameters",)


def _claims() -> list[Any]:
    return [
        claim("a", result(0)),
        claim("b", result(0), result(1)),
        slices("c", 0, 2),
        claim("d", share(1, Mode.DRS, 1, "share-d"), config=(_OTHERS,)),
        claim("e", result(0), config=(_OPAQUE,)),
        claim("f", share(1, Mode.DRS, 1, "l", "l"), share(1, Mode.DRS, 3, "r", "r")),
    ]


def _plan(data: bytes, _: Path) -> object:
    """The claim as the API server gives it; the kubelet asks for a hostile one or for its own."""
    document = json.loads(data)
    return planned_devices(
        document, ClaimRef.of(document), pool=POOL, share=lambda _: whole_share(42976)
    )


def _prepare(data: bytes, folder: Path) -> object:
    """A whole prepare and unprepare; whatever it says, nothing stays."""
    made, its_pod = json.loads(data)
    root = folder / "node"
    shutil.rmtree(root, ignore_errors=True)
    world = DrsWorld(root)
    world.api.pods["team", "pod"] = its_pod
    ref = world.api.add(made)
    agent = world.start()
    try:
        answer = _answered(agent.preparer.prepare, agent, ref)
        _answered(agent.preparer.unprepare, agent, ref)
        assert not world.files()
        assert not agent.held()
    finally:
        agent.journal.close()
    if isinstance(answer, GcuError):
        raise answer
    return answer


def _answered(
    call: Callable[[list[ClaimRef]], Mapping[str, object]], agent: Agent, ref: ClaimRef
) -> object:
    answer = call([ref])[ref.uid]
    # The agent's own net for its flaws: here they are to be seen.
    assert not str(answer).startswith("internal error"), answer
    return answer


def _names(data: bytes, folder: Path) -> object:
    """One text as every name that it could be; each is taken or refused by itself."""
    text = json.loads(data)
    readers: tuple[Callable[[str], object], ...] = (
        PciAddress.parse,
        parse_quantity,
        profile_size,
        _device,
        PluginDevice.parse,
        _node_name,
        _path,
        _sockets,
        _version,
    )
    taken = [reader for reader in readers if _takes(reader, text)]
    locks, cdi = Locks(folder / "locks"), CdiDirectory(folder / "cdi")
    taken += [use for use in (_lock(locks), cdi.read, cdi.remove, _file(cdi)) if _takes(use, text)]
    if not taken:
        raise InvalidValue(f"{text!r} is no name at all")
    return taken


def _takes(reader: Callable[[str], object], text: str) -> bool:
    try:
        reader(text)
    except GcuError:
        return False
    return True


def _device(text: str) -> object:
    mode, address = parse_device_name(text)
    assert device_name(mode, address) == text
    return address


def _node_name(text: str) -> object:
    try:
        node = AgentSettings(node_name=text).node_name
    except ValidationError as error:
        raise InvalidValue(str(error)) from error
    assert len(pool_name(node)) <= 253
    assert re.fullmatch(r"[-a-z0-9.]+", node), node
    return node


def _path(text: str) -> object:
    """No name can lead a request elsewhere."""
    for path, depth in (
        (RESOURCE_CLAIMS.path("team", text), 7),
        (RESOURCE_CLAIMS.path(text, "name"), 7),
        (RESOURCE_SLICES.path("", text, "status"), 6),
    ):
        parts = path.split("/")
        assert path.isascii(), path
        assert path.isprintable(), path
        assert not {".", ".."} & set(parts), path
        assert len(parts) == depth + 1 or not text, path
    return text


def _sockets(text: str) -> object:
    root = Path("/var/lib/kubelet")
    sockets = Sockets.of(root, text)
    assert sockets.service.parent == root / "plugins" / "gcu.enflame.com", sockets
    assert sockets.registration.parent == root / "plugins_registry", sockets
    return sockets


def _version(text: str) -> object:
    return ServerVersion.parse({"major": text, "minor": text, "gitVersion": text})


def _lock(locks: Locks) -> Callable[[str], object]:
    def take(uid: str) -> object:
        with locks.claim(uid):
            return uid

    return take


def _file(cdi: CdiDirectory) -> Callable[[str], object]:
    def write(uid: str) -> object:
        cdi.write(uid, b"{}")
        assert cdi.uids() == {uid}
        assert cdi.remove(uid)
        return uid

    return write


def _error(data: bytes, _: Path) -> object:
    error = from_response("GET /x", 429, data, {"retry-after": data[:8].decode("latin-1")})
    assert 0 <= getattr(error, "retry_after", 0) < 1e6, error
    return str(error)


def _name(random: Random) -> bytes:
    """A hostile text, a good one, or some of each."""
    good = (
        "uid-1",
        "node-1",
        "0000:0d:00.0",
        "whole-0000-0d-00-0",
        "0000:0d:00.0/shared/3",
        "40Gi",
        "3g.20gb",
        "1.36.3",
    )
    parts = [random.choice(random.choice((STRINGS, good))) for _ in range(random.choice((1, 2, 3)))]
    return json.dumps("".join(parts)).encode()


_PODS: Final = [pod({"x": "f"}, ("x/l",), ("x/r",)), pod({"x": "b"}, ("x",))]
_STATUS: Final = [
    b'{"kind":"Status","status":"Failure","message":"no","reason":"Conflict","code":409}',
    b"upstream connect error",
]
_KNOWN: Final = [[made, its] for made in _claims() for its in _PODS]

SUBJECTS: Final = (
    Subject("claim", DamagedJson(_claims(), strings_only=True, free=_FREE), _plan),
    Subject(
        "opaque-config",
        DamagedJson([_PACKING], strings_only=True, free=_FREE),
        lambda data, _: read_config(json.loads(data), "claim team/a"),
    ),
    Subject("prepare", DamagedJson(_KNOWN, strings_only=True, free=_FREE), _prepare),
    Subject("names", _name, _names),
    Subject("api-errors", one_of(Damaged(_STATUS), DamagedJson([json.loads(_STATUS[0])])), _error),
)
