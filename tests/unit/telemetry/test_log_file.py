"""The rotated file that has the log once more."""

from __future__ import annotations

import errno
import io
import logging
import os
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from dra_driver.telemetry import logs
from dra_driver.telemetry.log_file import LogFileHandler

LOGGER = logging.getLogger("dra_driver.agent")


def handler(path: Path) -> LogFileHandler:
    """Rotates after about ten lines of 100 characters."""
    made = LogFileHandler(path, mib=1, files=3)
    made.maxBytes = 1000
    return made


def write(to: LogFileHandler, *messages: str) -> None:
    for message in messages:
        to.emit(logging.LogRecord("a", logging.INFO, __file__, 1, message, (), None))


def test_the_file_has_what_standard_error_has(tmp_path: Path) -> None:
    path, printed = tmp_path / "agent.log", io.StringIO()
    with redirect_stderr(printed):
        logs.configure("info", "json", LogFileHandler(path, mib=1, files=2))
        LOGGER.info("claim %s prepared", "default/\u00fc\ud800")
        LOGGER.debug("not this")
    assert path.read_text(encoding="utf-8") == printed.getvalue()
    assert printed.getvalue().count("\n") == 1
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_that_cannot_be_opened_ends_nothing(tmp_path: Path) -> None:
    printed = io.StringIO()
    with redirect_stderr(printed):
        logs.configure("info", "text", LogFileHandler(tmp_path / "no" / "agent.log", 1, 2))
        LOGGER.info("it goes on")
    first, second = printed.getvalue().splitlines()
    assert first.endswith("it goes on")
    assert "is not written: FileNotFoundError" in second


def test_no_link_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "agent.log").symlink_to(target)
    write(handler(tmp_path / "agent.log"), "one")
    assert "symbolic links" in capsys.readouterr().err
    assert target.read_text() == ""


def test_old_files_are_dropped(tmp_path: Path) -> None:
    log = handler(tmp_path / "agent.log")
    write(log, *(f"{number:0>99}" for number in range(50)))
    log.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "agent.log",
        "agent.log.1",
        "agent.log.2",
    ]
    assert all(each.stat().st_size <= 1000 for each in tmp_path.iterdir())
    assert (tmp_path / "agent.log").read_text().splitlines()[-1] == f"{49:0>99}"


def test_two_agents_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    first, second = handler(path), handler(path)
    write(second, "of the second")
    write(first, *("x" * 99 for _ in range(10)))  # rotates it
    write(second, "after the rotation")
    for each in (first, second):
        each.close()
    assert "of the second" in (tmp_path / "agent.log.1").read_text()
    assert path.read_text().splitlines()[-1] == "after the rotation"


def test_a_file_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    log = handler(path)
    write(log, "one")
    path.unlink()
    write(log, "anew")
    log.close()
    assert path.read_text() == "anew\n"


def test_a_full_disk_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    log = handler(folder / "agent.log")
    write(log, "zero")
    (folder / "agent.log").unlink()
    folder.rmdir()
    write(log, "one", "two")
    printed = capsys.readouterr().err
    assert printed.count("is not written: FileNotFoundError") == 1
    folder.mkdir()
    write(log, "three")
    log.close()
    assert (folder / "agent.log").read_text() == "three\n"


@pytest.mark.parametrize("by", ["us", "another agent"])
def test_a_file_that_could_not_be_closed_ends_no_thread(
    tmp_path: Path, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full disk of the network may say so only when a file is closed. Whoever logs would get the
    error of each later line."""
    path = tmp_path / "agent.log"
    log = handler(path)
    write(log, "zero")
    assert log.stream is not None
    close = log.stream.close

    def fail() -> None:
        close()
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    log.stream.close = fail  # type: ignore[method-assign]
    if by == "us":
        write(log, *("x" * 99 for _ in range(10)))
    else:
        path.rename(tmp_path / "agent.log.1")
        write(log, "lost")
    assert "is not written: OSError(122" in capsys.readouterr().err
    write(log, "one", "two")
    log.close()
    assert path.read_text().splitlines()[-2:] == ["one", "two"]
