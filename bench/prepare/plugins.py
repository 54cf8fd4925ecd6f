"""The two plugins as processes of their own, each with a kubelet's folders."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.prepare.caller import Caller
from bench.prepare.place import NODE, OTHERS, SHARED, SLICES, Place
from bench.prepare.slow_disk import SYNC_DELAY
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.names import DRIVER
from dra_driver.simulator.machine import SimulatedMachine
from tests.control_plane.pod import Pod
from tests.kill.kubelet import Kubelet

_CHECKOUT: Final = Path(__file__).parents[2]
_POD: Final = "pod-1"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0
_TAIL: Final = 4000  # characters of a log
# The time of the simulated tool itself is not what is measured.
_NEVER: Final = 86400


class Plugin:
    """A plugin that serves; `stop` ends it."""

    def __init__(
        self,
        name: str,
        root: Path,
        pod: Pod,
        command: Sequence[str],
        program: Path,
        *,
        sync_delay: float = 0.0,
    ) -> None:
        """`root` has the kubelet's folders; `program` is the caller's."""
        self.name = name
        with (root / "log").open("wb") as log:
            self._process = subprocess.Popen(
                pod.command(*command),
                cwd=_CHECKOUT,
                env={**pod.environment(), SYNC_DELAY: str(sync_delay)},
                stdout=log,
                stderr=log,
            )
        sockets = Sockets.of(root / "kubelet", _POD)
        try:
            Kubelet(sockets.registration).wait(_START_SECONDS)
        except BaseException as error:
            self.stop()
            error.add_note((root / "log").read_text(errors="replace")[-_TAIL:])
            raise
        self.caller = Caller(program, sockets.service)

    @property
    def rss_mib(self) -> float:
        """Its resident memory now."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        [kibibytes] = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
        return int(kibibytes) / 1024

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(_STOP_SECONDS)


def start_ours(
    place: Place,
    program: Path,
    module: str = "dra_driver.agent.main",
    *,
    sync_delay: float = 0.0,
) -> Plugin:
    """The agent with a simulated machine; or `module`, which is given the agent's flags. Each sync
    takes `sync_delay` seconds longer."""
    module = "bench.prepare.slow_disk" if sync_delay else module
    root = _folders(place.root / module.rpartition(".")[2])
    cards = [{"bdf": str(card), "model": "S60"} for card in (*SHARED, *OTHERS)]
    machine = SimulatedMachine.create({"cards": cards}, root / "machine", plain_device_files=True)
    rules = root / "rules.json"
    rules.write_text(json.dumps({"sliceCount": SLICES}))
    flags: dict[str, object] = {
        "node-name": NODE,
        "host-root": machine.root,
        "efsmi-path": machine.efsmi_path,
        "kubelet-root": root / "kubelet",
        "cdi-dir": root / "cdi",
        "pod-uid": _POD,
        "probe-port": 0,
        "mode": "dra",  # the Node object names no kubelet
        "card-rules": rules,
        "inventory-interval": _NEVER,
        "reconcile-interval": _NEVER,
    }
    command = [sys.executable, "-m", module, *(f"--{key}={value}" for key, value in flags.items())]
    return Plugin("ours", root, place.pod, command, program, sync_delay=sync_delay)


def start_go(place: Place, program: Path, *, sync_delay: float = 0.0) -> Plugin:
    """The plugin on upstream's helper. Each sync takes `sync_delay` seconds longer."""
    root = _folders(place.root / "go")
    flags = {
        "driver": DRIVER,
        "node": NODE,
        "kubelet-root": root / "kubelet",
        "cdi-dir": root / "cdi",
        "pod-uid": _POD,
        "sync-delay": f"{sync_delay}s",
    }
    command = [str(program), "serve", *(f"-{key}={value}" for key, value in flags.items())]
    return Plugin("go", root, place.pod, command, program)


def _folders(root: Path) -> Path:
    for folder in ("kubelet/plugins_registry", f"kubelet/plugins/{DRIVER}", "cdi"):
        (root / folder).mkdir(parents=True)
    return root
