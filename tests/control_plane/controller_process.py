"""The controller as a process of its own, as a pod would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.control_plane.program_process import ProgramProcess
from tests.forked.programs import MEMORY

_CHECKOUT: Final = Path(__file__).parents[2]


class ControllerProcess(ProgramProcess):
    """A replica; `name` is its pod's."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *flags: str,
        name: str = "replica-0",
        program: Sequence[str] = ("controller.main",),
    ) -> None:
        module, *first = program
        super().__init__(
            module,
            log,
            *first,
            f"--kubeconfig={kubeconfig}",
            f"--pod-name={name}",
            "--http-port=0",
            *flags,
        )


class MeasuredController(ControllerProcess):
    """One whose start and memory are its own: with an interpreter that nothing was imported into,
    and the variables of the image."""

    def _begin(self, module: str, flags: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", module, *flags],
                cwd=_CHECKOUT,
                env={**os.environ, **MEMORY},
                stdout=output,
                stderr=output,
            )
