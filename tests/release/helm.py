"""The Helm that the tests have, without the settings of whoever runs it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.cluster.build import Report, build
from tests.cluster.processes import run
from tests.cluster.versions import chosen_kubernetes, programs

CHECKOUT: Final = Path(__file__).parents[2]
CHART: Final = CHECKOUT / "charts" / "gcu-dra-driver"


def helm_program(report: Report) -> Path:
    """Helm, built if it is not in the cache. Raises BuildError."""
    [program] = [each for each in programs(chosen_kubernetes()) if each.name == "helm"]
    return build(program, report) / "helm"


def run_helm(program: Path, *arguments: str | Path) -> str:
    """Its output. Raises CommandError."""
    with tempfile.TemporaryDirectory() as home:
        kinds = ("CACHE", "CONFIG", "DATA")
        environment = {f"HELM_{kind}_HOME": f"{home}/{kind.lower()}" for kind in kinds}
        return run([program, *arguments], environment=environment)
