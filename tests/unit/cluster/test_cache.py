"""What is built once stays whole, whoever is killed and however many build it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster.cache import build_once, cache_root, locked

_CHECKOUT = Path(__file__).parents[3]

_STUCK_BUILDER = """
import sys
from pathlib import Path
from tests.cluster.cache import build_once

def make(folder: Path) -> None:
    (folder / "half").write_text("")
    print("half done", flush=True)
    sys.stdin.read()

build_once(Path(sys.argv[1]), make)
"""


def write_whole(folder: Path) -> None:
    (folder / "whole").write_text("")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"GCU_DRA_CACHE": "/a/b", "XDG_CACHE_HOME": "/x"}, "/a/b", id="own variable"),
        pytest.param({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/gcu-dra-driver", id="xdg"),
        pytest.param({"HOME": "/h"}, "/h/.cache/gcu-dra-driver", id="home"),
        pytest.param({"HOME": "/h", "XDG_CACHE_HOME": ""}, "/h/.cache/gcu-dra-driver", id="empty"),
    ],
)
def test_root(environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GCU_DRA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_root() == Path(expected)


def test_made_once(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        write_whole(folder)

    target = tmp_path / "target"
    assert build_once(target, make) == build_once(target, make) == target
    assert len(made) == 1
    assert [path.name for path in target.iterdir()] == ["whole"]


def test_failure_leaves_nothing_and_is_passed_on(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        write_whole(folder)
        raise ValueError("no good")

    target = tmp_path / "target"
    with pytest.raises(ValueError, match="no good"):
        build_once(target, fail)
    assert [path.name for path in tmp_path.iterdir()] == ["target.lock"]


def test_killed_builder_leaves_no_half_result(tmp_path: Path) -> None:
    target = tmp_path / "target"
    command = [sys.executable, "-c", _STUCK_BUILDER, str(target)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=_CHECKOUT) as builder:
        assert builder.stdout is not None
        assert builder.stdout.readline() == b"half done\n"
        builder.send_signal(signal.SIGKILL)
    assert not target.exists()
    assert len(list(tmp_path.glob(".target.*"))) == 1

    build_once(target, write_whole)
    assert [path.name for path in target.iterdir()] == ["whole"]
    assert list(tmp_path.glob(".target.*")) == []


def test_two_builders_at_once(tmp_path: Path) -> None:
    target = tmp_path / "target"
    other_waits = threading.Event()
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        assert other_waits.wait(60)
        write_whole(folder)

    def build() -> Path:
        return build_once(target, make, lambda _seconds: other_waits.set())

    with ThreadPoolExecutor(2) as pool:
        assert [future.result() for future in [pool.submit(build), pool.submit(build)]] == [
            target,
            target,
        ]
    assert len(made) == 1


def test_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), locked(tmp_path / "lock"):
        raise ValueError("inside")
    with locked(tmp_path / "lock", lambda _seconds: pytest.fail("had to wait")):
        pass
