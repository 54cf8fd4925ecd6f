"""A kubelet that is a process of its own: it listens to the agent's health, and can be killed.

``python -m tests.unit.kubelet_api.listener SOCKET`` prints a line as soon as a list has come, and
stays.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.unit.kubelet_api import fake_kubelet


def main(path: Path) -> None:
    with fake_kubelet.watch_v1alpha1(path) as lists:
        for _ in lists:
            print("heard", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
