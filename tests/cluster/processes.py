"""Processes that outlive the one that starts them, and are found again without names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.cluster.errors import ClusterError, CommandError
from tests.cluster.waiting import wait_until

# Of proc(5) stat, counted after the command's name.
_STATE_FIELD, _THREADS_FIELD, _START_TIME_FIELD = 0, 17, 19

# The shell is a moment's parent: when it exits, init adopts the program, so that no process of
# ours has to reap it. It joins the cgroup before it forks: no instant remains at which a killed
# starter leaves a program that tear-down would not find.
_LAUNCH = """
if [ -n "$1" ]; then echo $$ >"$1/cgroup.procs"; fi; log=$2; shift 2
"$@" </dev/null >>"$log" 2>&1 &
echo $!
"""


@dataclass(frozen=True, slots=True)
class Process:
    """A process and the moment it began, in clock ticks since boot: a reused id differs."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process that has this id now. Raises ProcessLookupError when there is none."""
        fields = _stat(pid)
        if fields is None:
            raise ProcessLookupError(pid)
        return cls(pid, int(fields[_START_TIME_FIELD]))

    def alive(self) -> bool:
        """Whether it still runs; one that ended but was not reaped does not. Its first thread may
        be dead before the others, which keep its ports open."""
        fields = _stat(self.pid)
        if fields is None or int(fields[_START_TIME_FIELD]) != self.started:
            return False
        return fields[_STATE_FIELD] not in ("Z", "X") or int(fields[_THREADS_FIELD]) > 1

    def stop(self, timeout: float = 10.0) -> None:
        """SIGTERM, then SIGKILL after `timeout` seconds; returns when it has ended."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.send(number):
                return
            try:
                wait_until(lambda: not self.alive(), timeout, f"end of process {self.pid}")
            except ClusterError:
                if number == signal.SIGKILL:
                    raise
            else:
                return

    def send(self, number: signal.Signals) -> bool:
        """Send a signal; False when it has ended already."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


COLLECT_LESS: Final = {"GOGC": "300"}
"""For a Go program, which takes more memory then: there is some to spare, and no processor."""


class ProcessTable:
    """The components of one cluster, each by name, in files of one folder."""

    def __init__(self, directory: Path, log_directory: Path, cgroup: Path) -> None:
        self._directory = directory
        self._logs = log_directory
        self._cgroup = cgroup

    def log(self, name: str) -> Path:
        """Where a component's output goes."""
        return self._logs / f"{name}.log"

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> Process:
        """Start a component in the background, its output appended to its log.

        Raises ClusterError with that output when it has ended before it could be looked at.
        """
        return self._start(name, command, self._cgroup, environment)

    def start_outside(self, name: str, command: Sequence[str]) -> Process:
        """Start what has to survive the cluster's tear-down, because it carries it out."""
        return self._start(name, command, None, None)

    def _start(
        self,
        name: str,
        command: Sequence[str],
        cgroup: Path | None,
        environment: Mapping[str, str] | None,
    ) -> Process:
        launch = ["sh", "-euc", _LAUNCH, "launch", str(cgroup or ""), str(self.log(name))]
        # A session of its own: an interrupt at the terminal is not for the cluster.
        started = subprocess.run(
            [*launch, *command],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **COLLECT_LESS, **(environment or {})},
        )
        try:
            process = Process.of(int(started.stdout))
        except ProcessLookupError as error:
            raise ClusterError(f"{name} ended at once:\n{self.tail(name)}") from error
        (self._directory / f"{name}.json").write_text(json.dumps(asdict(process)))
        return process

    def get(self, name: str) -> Process:
        """The process last started under that name. Raises ClusterError if none ever was."""
        try:
            return Process(**json.loads((self._directory / f"{name}.json").read_text()))
        except FileNotFoundError as error:
            raise ClusterError(f"{name} was never started in this cluster") from error

    def stop(self, name: str) -> None:
        """Stop a component, if it runs."""
        self.get(name).stop()

    def end(self, name: str) -> None:
        """Stop a component that need not run any more."""
        self.stop(name)
        (self._directory / f"{name}.json").unlink()

    def check(self, name: str) -> None:
        """Raises ClusterError with the end of its log if the component does not run."""
        if not self.get(name).alive():
            raise ClusterError(f"{name} has ended; the end of {self.log(name)}:\n{self.tail(name)}")

    def names(self) -> tuple[str, ...]:
        """All components that were ever started, but for those that were ended."""
        return tuple(sorted(path.stem for path in self._directory.glob("*.json")))

    def tail(self, name: str, lines: int = 30) -> str:
        """The end of a component's log; empty when there is none."""
        log = self.log(name)
        if not log.exists():
            return ""
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def is_stopped(pid: int) -> bool:
    """Whether none of its threads goes on after SIGSTOP: each stops only when its turn on a
    processor comes."""
    states = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # of a thread that ended
            states.append((task / "stat").read_text().rpartition(")")[2].split()[_STATE_FIELD])
    return set(states) == {"T"}


def run(
    command: Sequence[str | Path],
    *,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 300.0,
    both: bool = False,
) -> str:
    """Run a command to its end and give its standard output; with `both`, standard error, too.

    Raises CommandError with all of its output when the status is not 0, and ClusterError after
    `timeout` seconds.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            check=False,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **environment} if environment else None,
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(words)}: not done within {timeout:g} s") from error
    except FileNotFoundError as error:
        raise ClusterError(
            f"{words[0]}: not found; `python -m tests.cluster packages` installs what is missing"
        ) from error
    if done.returncode:
        raise CommandError(words, done.returncode, done.stdout + done.stderr)
    return done.stdout + done.stderr if both else done.stdout


def require_root() -> None:
    """Raises ClusterError unless this process may make namespaces and mounts."""
    if os.geteuid() != 0:
        raise ClusterError("the test cluster makes namespaces and mounts; run this as root")


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name is in parentheses and may itself hold spaces and parentheses.
    return text.rpartition(")")[2].split()
