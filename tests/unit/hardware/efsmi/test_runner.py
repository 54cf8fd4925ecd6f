"""Calls of a real executable: success, failure, a hang, and what is told of each."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from dra_driver.hardware.efsmi import runner as efsmi_module
from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiFailed, EfsmiHung
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import HardwareError
from tests.descriptors import readable
from tests.unit.hanging import time_is_up_when


class Recorded(Effects):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def before(self, point: Point) -> None:
        self.seen.append(f"before {point}")

    def after(self, point: Point) -> None:
        self.seen.append(f"after {point}")


def tool(
    folder: Path, script: str, *, timeout: float = 60, effects: Effects | None = None
) -> Efsmi:
    path = folder / "efsmi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Efsmi(path, timeout=timeout, effects=effects or Effects())


def test_a_name_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "echo found")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert Efsmi(Path("efsmi"), timeout=60, effects=Effects()).run() == "found\n"


def test_each_call_has_the_library_that_the_link_leads_to_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reinstall of the vendor's driver does it: files of another name, and a new link."""
    link = tmp_path / "libefml.so"
    for version in ("1.0", "1.1"):
        (tmp_path / version).write_text(f"library {version}")
    link.symlink_to("1.0")
    tool(tmp_path, 'cat "${LD_LIBRARY_PATH%%:*}/libefml.so"; echo " ${LD_LIBRARY_PATH#*:}"')
    efsmi = Efsmi(tmp_path / "efsmi", timeout=60, effects=Effects(), library=link)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert efsmi.run() == "library 1.0 /elsewhere\n"
    (tmp_path / "new").symlink_to("1.1")
    (tmp_path / "new").rename(link)
    (tmp_path / "1.0").unlink()
    assert efsmi.run() == "library 1.1 /elsewhere\n"


def test_without_a_library_the_search_path_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert tool(tmp_path, 'echo "${LD_LIBRARY_PATH-unset}:$LC_ALL"').run() == "unset:C.UTF-8\n"


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    assert tool(tmp_path, r"printf '35 \342\204\203 \377'").run("-q") == "35 ℃ \ufffd"


_OUTLIVES_ITS_OUTPUT = "echo table; exec >&- 2>&-; sleep 0.05"


def test_the_kernel_tells_when_a_call_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool closes its output some time before it has ended."""

    def pause(_seconds: float) -> None:
        raise AssertionError("the end of the call is looked for now and then")

    monkeypatch.setattr(time, "sleep", pause)
    assert tool(tmp_path, _OUTLIVES_ITS_OUTPUT).run("-q") == "table\n"


@pytest.mark.parametrize("error", [OSError(errno.ENOSYS, ""), AttributeError()], ids=repr)
def test_a_kernel_or_a_python_that_tells_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def unknown(_pid: int) -> int:
        raise error

    monkeypatch.setattr(os, "pidfd_open", unknown)
    assert tool(tmp_path, _OUTLIVES_ITS_OUTPUT).run("-q") == "table\n"


def test_it_reads_no_input(tmp_path: Path) -> None:
    assert tool(tmp_path, "wc -c").run("-q").strip() == "0"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo table; echo no device >&2; exit 3", "`efsmi -q` ended with 3: no device"),
        ("echo Error: no device; echo; exit 1", "`efsmi -q` ended with 1: Error: no device"),
        ("exit 1", "`efsmi -q` ended with 1: no output"),
        ("echo table; kill -9 $$", "`efsmi -q` was killed by signal 9: table"),
    ],
    ids=["error beside output", "error text on stdout", "nothing said", "killed"],
)
def test_failure_tells_code_and_words(tmp_path: Path, script: str, message: str) -> None:
    effects = Recorded()
    with pytest.raises(EfsmiFailed, match=f"^{re.escape(message)}$"):
        tool(tmp_path, script, effects=effects).run("-q")
    assert effects.seen == ["before efsmi.call", "after efsmi.call"]


def test_a_hang_ends_with_its_children_and_gives_back_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo DEV ID 0; echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
    time_is_up_when(monkeypatch, lambda _: pids.exists())
    effects = Recorded()
    with pytest.raises(EfsmiHung, match=r"within 0\.5 s \(it had printed: DEV ID 0\); look at"):
        tool(tmp_path, script, timeout=0.5, effects=effects).run("-q")
    assert effects.seen == ["before efsmi.call"]
    child, parent = pids.read_text().split()
    assert not Path(f"/proc/{parent}").exists()
    assert ends(int(child))


def ends(pid: int) -> bool:
    """Whether a process that was killed, and is no child of ours, is gone or soon will be."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(readable(process, within=60))
    finally:
        os.close(process)


def test_a_tool_that_leaves_a_child_behind_is_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = tmp_path / "ended"
    time_is_up_when(monkeypatch, lambda _: ended.exists())
    with pytest.raises(EfsmiHung, match="had printed: done"):
        tool(tmp_path, f"sleep 600 & echo done; touch {ended}").run("-q")


# Prints for as long as anybody reads, and ends by itself at 400 MB.
ENDLESS = "yes 'Dev UUID : TPUH90200803' | head -c 400000000"


@pytest.mark.parametrize(
    "script",
    [
        ENDLESS,
        f"{ENDLESS} >&2",
        f"{ENDLESS} & {ENDLESS} >&2; wait",
        f"trap '' PIPE TERM; {ENDLESS}; sleep 600",
    ],
    ids=["stdout", "stderr", "both", "it stays when nobody reads"],
)
def test_a_tool_that_prints_without_end_is_killed_and_reported(tmp_path: Path, script: str) -> None:
    efsmi = tool(tmp_path, f"echo $$ > {tmp_path}/pid; {script}")
    with pytest.raises(EfsmiFailed, match=r"^`efsmi -q` printed more than 2 MiB .* killed; run it"):
        efsmi.run("-q")
    assert ends(int((tmp_path / "pid").read_text()))


def grown_by(efsmi: Efsmi, work: str) -> int:
    """By how many MiB the `work` makes a process of its own larger, as the agent's limit counts
    them. It fails with an error of the hardware."""
    program = dedent(f"""
        from pathlib import Path
        from dra_driver.hardware.efsmi.runner import Efsmi
        from dra_driver.hardware.efsmi.survey import Surveyor
        from dra_driver.model.effects import Effects
        from dra_driver.model.errors import HardwareError
        from dra_driver.model.pci import PciAddress

        def peak():
            status = Path("/proc/self/status").read_text()
            return int(status.partition("VmHWM:")[2].split()[0]) >> 10

        efsmi = Efsmi(Path({str(efsmi.path)!r}), timeout=60, effects=Effects())
        before = peak()
        try:
            {work}
        except HardwareError:
            print(peak() - before)
    """)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return int(done.stdout)


def test_what_is_read_of_it_is_bounded(tmp_path: Path) -> None:
    assert grown_by(tool(tmp_path, ENDLESS), "efsmi.run()") < 16  # MiB


def test_much_output_is_read_whole(tmp_path: Path) -> None:
    lines = "yes 0123456789abcde | head -c 1048576"
    assert tool(tmp_path, f"{lines}; {lines} | head -c 1000000 >&2").run("-q") == (
        "0123456789abcde\n" * 65536
    )


def test_time_ends_a_call_that_always_has_something_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(efsmi_module, "_OUTPUT_LIMIT", 1 << 40)
    with pytest.raises(EfsmiHung, match="did not end within"):
        tool(tmp_path, "exec yes", timeout=0.05).run("-q")


@pytest.mark.parametrize(
    ("mode", "message"),
    [(None, "No such file"), (0o644, "Permission denied"), (0o755, "Exec format error")],
    ids=["missing", "not executable", "no program"],
)
def test_a_tool_that_cannot_be_run_names_the_setting(
    tmp_path: Path, mode: int | None, message: str
) -> None:
    path = tmp_path / "efsmi"
    if mode is not None:
        path.write_bytes(b"\x7fELF broken")
        path.chmod(mode)
    told: list[str] = []
    efsmi = Efsmi(path, timeout=1, effects=Effects(), measured=lambda *what: told.append(what[1]))
    with pytest.raises(HardwareError, match=f"{path} cannot be run: {message}.*efsmi.path"):
        efsmi.run("-q")
    assert told == ["error"]


def test_a_descriptor_is_inherited_only_when_asked(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        number = file.fileno()
        efsmi = tool(tmp_path, f"test -e /proc/self/fd/{number} && echo open || echo closed")
        assert efsmi.run("-q", inherit=[number]) == "open\n"
        assert efsmi.run("-q") == "closed\n"


MEASURED = [
    ("exit 0", ["-L"], "list", "ok"),
    ("exit 0", ["-i", "3", "-L"], "list", "ok"),
    ("exit 0", ["-q", "--json-format"], "query", "ok"),
    ("exit 0", [], "summary", "ok"),
    ("exit 0", ["-i", "3", "--drs", "on"], "drs-on", "ok"),
    ("exit 0", ["-i", "3", "--drs", "--create-instance", "1"], "create-instance", "ok"),
    ("exit 1", ["-q"], "query", "failed"),
    ("exec sleep 600", ["-q"], "query", "hung"),
]


@pytest.mark.parametrize(("script", "argv", "command", "outcome"), MEASURED)
def test_each_call_is_measured(
    tmp_path: Path, script: str, argv: list[str], command: str, outcome: str
) -> None:
    told: list[tuple[str, str]] = []
    efsmi = tool(tmp_path, script, timeout=60 if outcome != "hung" else 0.2)
    efsmi.measured = lambda *what: told.append(what[:2])
    with suppress(HardwareError):
        efsmi.run(*argv)
    assert told == [(command, outcome)]


def test_a_call_that_not_even_a_kill_ends_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process that sits in the kernel: others would pile up behind it."""
    started = tmp_path / "started"
    efsmi = tool(tmp_path, f"echo $$ >> {started}; exec sleep 600")

    def stuck(pid: int) -> bool:
        return started.exists() and str(pid) in started.read_text().split()

    time_is_up_when(monkeypatch, stuck, grace=0)
    kill = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    with pytest.raises(EfsmiHung, match="did not end within"):
        efsmi.run("-q")
    for _ in range(3):
        with pytest.raises(EfsmiHung, match="has not ended although it was killed"):
            efsmi.run("-q")
    [process] = started.read_text().split()
    monkeypatch.setattr(os, "killpg", kill)
    kill(int(process), signal.SIGKILL)
    efsmi._stuck["-q",].wait(60)
    with pytest.raises(EfsmiHung, match="did not end within"):
        efsmi.run("-q")
    assert len(started.read_text().split()) == 2
    for left in efsmi._stuck.values():
        left.wait(60)
