"""What `kubectl-gcu` begins with: the packages in it are unpacked once, and then run.

Modules in machine code cannot be imported from an archive.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

KEY = "@KEY@"  # of the contents
PYTHON = "@PYTHON@"  # for which they are built


def unpacked(archive: Path) -> Path:
    """The folder with the contents of the archive, made unless it is there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubectl-gcu"
    made = cache / KEY
    if not made.exists():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache))
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(fresh)
        try:
            fresh.rename(made)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    return made


def main() -> None:
    if f"{sys.version_info.major}.{sys.version_info.minor}" != PYTHON:
        sys.exit(f"kubectl-gcu is built for Python {PYTHON}; name it: python{PYTHON} {sys.argv[0]}")
    sys.path[0] = str(unpacked(Path(sys.argv[0])))
    from kubectl_gcu.main import main as run  # noqa: PLC0415 (it is there from now on)

    run()


if __name__ == "__main__":
    main()
