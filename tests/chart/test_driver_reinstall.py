"""The vendor's driver is reinstalled on the node while the agent's container runs: real mounts, as
the chart has them, and the system's own loader."""

from __future__ import annotations

import _ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import Object
from tests.chart.helm import CHECKOUT, Helm, environment

UNSHARE = ("unshare", "--mount", "--propagation", "private")
Ask = Callable[[str], str | None]

# Prints which file the loader takes for the library.
_TOOL = f"""\
#!{sys.executable}
import ctypes
ctypes.CDLL("libefml.so")
with open("/proc/self/maps") as maps:
    [path] = {{line.split()[-1] for line in maps if "libefml" in line}}
print(path)
"""


class VendorNode:
    """A node's root with the vendor's files, laid out as on real machines."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "usr/local/efsmi"
        self.link = root / "usr/lib/libefml.so"
        for folder in (self.home, self.link.parent, root / "var/lock"):
            folder.mkdir(parents=True)

    def install(self, version: str) -> str:
        """Give the library's path on the node."""
        folder = self.home / f"efsmi-{version}"
        (folder / "lib").mkdir(parents=True)
        shutil.copy(_ctypes.__file__, folder / "lib/libefml.so.1.0.0")
        (folder / "efsmi").write_text(_TOOL)
        (folder / "efsmi").chmod(0o755)
        self._link(self.home / "efsmi", f"efsmi-{version}/efsmi")
        found = f"/usr/local/efsmi/efsmi-{version}/lib/libefml.so.1.0.0"
        self._link(self.link, found)
        return found

    def _link(self, path: Path, target: str) -> None:
        new = path.with_name("new")
        new.symlink_to(target)
        new.rename(path)


@pytest.fixture
def node(tmp_path: Path) -> VendorNode:
    return VendorNode(tmp_path / "node")


@pytest.fixture
def container(helm: Helm, node: VendorNode, tmp_path: Path) -> Iterator[Callable[[], Ask]]:
    """Starts a container, as often as it is called; `ask` it "call" or "problem"."""
    pod = helm.render().agent
    started: list[subprocess.Popen[str]] = []

    def start() -> Ask:
        scratch = tmp_path / f"scratch-{len(started)}"
        scratch.mkdir()
        process = subprocess.Popen(
            [*UNSHARE, sys.executable, "-m", "tests.chart.vendor_container"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        send, receive = process.stdin, process.stdout

        def ask(question: str) -> str | None:
            send.write(f"{question}\n")
            send.flush()
            answer: str | None = json.loads(receive.readline())
            return answer

        environ = {"GCU_NODE_NAME": "n", **environment(pod["containers"][0])}
        order = {"node": str(node.root), "scratch": str(scratch), "environ": environ}
        send.write(f"{json.dumps(order | {'mounts': vendor_mounts(pod)})}\n")
        return ask

    yield start
    for process in started:
        process.communicate()


def vendor_mounts(pod: Object) -> list[tuple[str, str]]:
    """(path of the node, path in the container) of efsmi.hostMounts."""
    volumes = {each["name"]: each.get("hostPath") for each in pod["volumes"]}
    return [
        (volumes[each["name"]]["path"], each["mountPath"])
        for each in pod["containers"][0]["volumeMounts"]
        if each["name"].startswith("efsmi-")
    ]


def test_a_running_container_has_the_library_of_a_reinstalled_driver(
    node: VendorNode, container: Callable[[], Ask]
) -> None:
    old = node.install("1.14.0")
    ask = container()
    assert ask("call") == old
    new = node.install("1.15.0")
    assert ask("call") == new
    shutil.rmtree(node.home / "efsmi-1.14.0")
    assert ask("call") == new
    assert ask("problem") is None


@pytest.mark.parametrize("aside", [True, False], ids=["renamed", "removed"])
def test_a_directory_that_is_made_anew_needs_a_new_container(
    node: VendorNode, container: Callable[[], Ask], aside: bool
) -> None:
    node.install("1.14.0")
    ask = container()
    assert ask("problem") is None
    if aside:
        node.home.rename(node.home.with_name("efsmi.old"))
    else:
        shutil.rmtree(node.home)
    node.home.mkdir()
    new = node.install("1.15.0")
    problem = ask("problem") or ""
    assert problem.startswith("/usr/local/efsmi was replaced on the node")
    again = container()
    assert again("call") == new
    assert again("problem") is None
