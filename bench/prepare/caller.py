"""The caller that plays the kubelet for both plugins: the Go program's own, as the kubelet's is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_driver.model.claims.claim import ClaimRef
from tests.cluster.build import build
from tests.cluster.versions import Program

Report = Callable[[str], None]

PROGRAM: Final = Program("go-plugin", "0.37.2", packages=(".",), home=Path(__file__).parent)

_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Timings:
    """What the calls of one run took, in milliseconds; the whole run in seconds."""

    prepare: Sequence[float]
    unprepare: Sequence[float]
    seconds: float


def build_program(report: Report) -> Path:
    """The Go program, built once a machine; raises BuildError."""
    return build(PROGRAM, report) / PROGRAM.name


class Caller:
    """Calls whichever plugin listens on `socket`, over one connection a run."""

    def __init__(self, program: Path, socket: Path) -> None:
        self._program = program
        self._socket = socket

    def run(
        self,
        refs: Sequence[ClaimRef],
        *,
        callers: int = 1,
        rounds: int = 1,
        do: str = "both",
        together: bool = False,
    ) -> Timings:
        """See the program's `call`. Raises CalledProcessError when a call gave an error, which
        it has printed."""
        claims = [{"namespace": r.namespace, "name": r.name, "uid": r.uid} for r in refs]
        command = [str(self._program), "call", f"-socket={self._socket}", "-claims=/dev/stdin"]
        command += [f"-callers={callers}", f"-rounds={rounds}", f"-do={do}"]
        command += ["-together"] if together else []
        done = subprocess.run(
            command,
            input=json.dumps(claims),
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            timeout=_SECONDS,
        )
        return Timings(**json.loads(done.stdout))
