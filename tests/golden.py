"""Stored files that tests compare with what the code gives: ``make golden`` writes all of them.

They are the printed tables in `STORED`, the tables of docs/ (`tests.generated_docs`), and the code
that is generated from proto/.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tests import generated_docs
from tests.unit.kubectl_gcu.inventory import inspected

CHECKOUT: Final = Path(__file__).parents[1]

STORED: Final[Mapping[str, Callable[[], str]]] = {
    f"tests/unit/kubectl_gcu/inventory/{name}": partial(inspected.printed, name)
    for name in inspected.TABLES
}
"""By path in the checkout, what the file has."""


def write(checkout: Path, stored: Mapping[str, Callable[[], str]]) -> list[str]:
    """Write the files of `stored` that differ from what the code gives; returns their paths."""
    changed = []
    for name, make in stored.items():
        path, text = checkout / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed


def main() -> None:
    """Write all of them; prints which of `STORED` and of the tables of docs/ changed."""
    subprocess.run(
        [CHECKOUT / "scripts/generate-proto"],
        check=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    for name in [*write(CHECKOUT, STORED), *generated_docs.write(CHECKOUT)]:
        print(name)


if __name__ == "__main__":
    main()
