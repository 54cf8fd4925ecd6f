"""A builder leaves nothing behind, in whichever way it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.build import silent
from tests.cluster.errors import BuildError
from tests.cluster.image.contained import WORK, run_contained

pytestmark = pytest.mark.cluster

_BUILDER = """
import sys
from pathlib import Path
from tests.cluster.image.contained import run_contained

folder = Path(sys.argv[1])
command = ["flock", folder / "lock", "sh", "-c", "touch $TMPDIR/file; echo >$1; sleep inf", "sh"]
run_contained(
    [*command, folder / "ready"], title="", report=print, folder=folder, network=False
)
"""


def test_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    subprocess.run(["mkfifo", ready], check=True)
    with subprocess.Popen([sys.executable, "-c", _BUILDER, tmp_path]) as builder:
        ready.read_text()
        assert not _free(tmp_path / "lock", 0)
        builder.send_signal(signal.SIGKILL)
    # The kernel releases the lock of what it has ended.
    assert _free(tmp_path / "lock", 10)
    assert not list((tmp_path / WORK).iterdir())


def test_failed(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"exit status 3\nwhy$"):
        _run(tmp_path, "echo why; exit 3")


def test_has_no_network_that_it_did_not_ask_for(tmp_path: Path) -> None:
    _run(tmp_path, "test $(ip -oneline link show up | wc -l) = 0")


def test_output_and_temporary_files_go(tmp_path: Path) -> None:
    _run(tmp_path, "echo text; touch $TMPDIR/file")
    assert not list(tmp_path.iterdir())


def _run(folder: Path, script: str) -> None:
    run_contained(["sh", "-c", script], title="", report=silent, folder=folder, network=False)


def _free(lock: Path, seconds: int) -> bool:
    command = ["flock", "--wait", str(seconds), str(lock), "true"]
    return subprocess.run(command, check=False).returncode == 0
