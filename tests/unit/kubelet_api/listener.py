"""A kubelet that is a process of its own: it listens to the agent's health, and can be killed.

``python -m tests.unit.kubelet_api.listener SOCKET COUNT`` prints a line as soon as a list has come
on each of so many streams, and stays.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from tests.unit.kubelet_api import fake_kubelet


def main(path: Path, count: int) -> None:
    with ExitStack() as streams:
        opened = [streams.enter_context(fake_kubelet.watch(path)) for _ in range(count)]
        for lists in opened:
            next(lists)
        print("heard", flush=True)
        fake_kubelet.rest(opened[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
