"""Build the cluster's programs from Go modules, once a machine, into the cache."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from tests.cluster.cache import build_once, cache_root
from tests.cluster.errors import BuildError
from tests.cluster.stand_ins import StandIn
from tests.cluster.versions import Program, programs

Report = Callable[[str], None]
"""Takes one line for people, about what is being done."""

_REPORT_SECONDS = 10.0
_TAIL_LINES = 40


def silent(_line: str) -> None:
    """A Report for those who wait for nothing."""


def build_all(kubernetes: str, report: Report) -> Path:
    """A folder with every program of that Kubernetes version, by its ordinary name.

    Builds what is missing: some 13 minutes on two cores the first time, nothing later.
    Raises BuildError with the end of the compiler's output.
    """
    wanted = programs(kubernetes)
    built = [build(program, report) for program in wanted]
    view = cache_root() / "programs" / ("bin-" + "-".join(program.key() for program in wanted))

    def link_all(folder: Path) -> None:
        for directory in built:
            for binary in directory.iterdir():
                (folder / binary.name).symlink_to(binary)

    return build_once(view, link_all)


def build(program: Program, report: Report) -> Path:
    """The `bin` folder of one program, built if it is not in the cache.

    Raises BuildError.
    """
    title = f"{program.name} {program.version}"
    target = cache_root() / "programs" / program.key()

    def waiting(seconds: float) -> None:
        report(f"{title}: another build of it is under way, waiting ({seconds:.0f} s)")

    def make(folder: Path) -> None:
        started = time.monotonic()
        report(f"{title}: building (once a machine)")
        _compile(program, folder, lambda line: report(f"{title}: {line}"))
        report(f"{title}: built in {time.monotonic() - started:.0f} s")

    return build_once(target, make, waiting) / "bin"


def _compile(program: Program, folder: Path, report: Report) -> None:
    source, compiled, binaries = folder / "src", folder / "compiled", folder / "bin"
    for each in (source, compiled, binaries):
        each.mkdir()
    for place, file in program.sources().items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, source / place)
    if program.toolchain:
        _fetch_toolchain(program, report)
    for stand_in in program.stand_ins:
        stand_in.write(_module(program, stand_in), source / stand_in.folder)
    command = ["go", "build", "-v", "-trimpath", "-ldflags", program.linker_flags]
    command += ["-o", f"{binaries}/", *program.packages]
    # Nothing else uses these packages: three gigabytes for each version of Kubernetes.
    _run_go(command, source, {"GOCACHE": str(compiled), **_toolchain(program)}, report)
    for alias in program.aliases:
        (binaries / alias).symlink_to(program.name)
    shutil.rmtree(source)
    shutil.rmtree(compiled)


def _toolchain(program: Program) -> dict[str, str]:
    """What makes `go` the version that the program needs, if it needs a particular one."""
    return {"GOTOOLCHAIN": program.toolchain} if program.toolchain else {}


def _fetch_toolchain(program: Program, report: Report) -> None:
    """Have `go` fetch it as a module, which it checks by the public checksum database."""
    report(f"{program.toolchain}, unless it is there")
    try:
        _run_go(["go", "version"], Path.cwd(), _toolchain(program), silent)
    except BuildError as refused:
        raise BuildError(
            f"{program.name} {program.version} is built by {program.toolchain}, which go cannot "
            f"fetch; install that version of Go, and put it first on PATH\n{refused}"
        ) from refused


def _module(program: Program, stand_in: StandIn) -> Path:
    """The files of the module from which it is made, in the module cache of `go`."""
    pinned = program.module_file(stand_in.pinned_by)
    with TemporaryDirectory() as folder:
        for file in (pinned, pinned.with_name("go.sum")):
            shutil.copy(file, folder)
        command = ["go", "mod", "download", "-json", stand_in.source]
        lines = _run_go(command, Path(folder), {}, silent)
    described = json.loads("\n".join(line for line in lines if not line.startswith("go: ")))
    return Path(described["Dir"])


def _run_go(
    command: list[str], directory: Path, variables: Mapping[str, str], report: Report
) -> Sequence[str]:
    """Gives the last lines of what it printed. Raises BuildError with them."""
    # Without cgo the binaries need nothing of the machine, and no C compiler is needed.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", **variables}
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except FileNotFoundError as missing:
        raise BuildError("go: not found; install Go 1.26 or newer to build the programs") from (
            missing
        )
    with process:
        assert process.stdout is not None
        tail = _follow(process.stdout, report)
    if process.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n" + "\n".join(tail))
    return tail


def _follow(output: IO[str], report: Report) -> deque[str]:
    """Read to the end, telling how far it is every ten seconds; gives the last lines."""
    lines: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_forward, args=(output, lines), daemon=True)
    reader.start()
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    downloaded = compiled = 0
    started = last_report = time.monotonic()
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            line = ""
        if line is None:
            reader.join()
            return tail
        if line.startswith("go: downloading "):
            downloaded += 1
        elif line:
            compiled += 1
        if line:
            tail.append(line.rstrip())
        now = time.monotonic()
        if now - last_report >= _REPORT_SECONDS:
            last_report = now
            report(
                f"{now - started:.0f} s, {downloaded} modules downloaded, "
                f"{compiled} packages compiled"
            )


def _forward(output: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in output:
        lines.put(line)
    lines.put(None)
