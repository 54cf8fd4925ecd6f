"""The wheels of the driver and of what it needs, as the image gets them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cluster.errors import BuildError
from tests.cluster.image.inputs import Inputs


def wheels(folder: Path) -> list[Path]:
    """Made in the `folder`, sorted by name; each is pinned by its hash. Raises BuildError."""
    context = folder / "context"
    command = [str(Inputs().context_script), str(context)]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        raise BuildError(f"{' '.join(command)}: {made.stderr[-2000:]}")
    return sorted((context / "wheels").glob("*.whl"))
