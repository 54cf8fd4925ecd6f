"""Logs as text or JSON, one line an event, with an id that joins all lines of one call.

``2026-01-01T12:00:00.123Z INFO node.preparer [prepare-4f2a-7] claim default/one prepared``
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from dra_driver.telemetry.log_file import LogFileHandler
from dra_driver.util.paths import AbsolutePath

LogFormat = Literal["text", "json"]

call_id: ContextVar[str] = ContextVar("call_id", default="-")

_counter = itertools.count(1)
# Two agents can run on one node; their ids differ by process.
_process: Final = f"{os.getpid():x}"

# Control characters but the tab and those that end a line (`str.splitlines`), and lone halves of
# characters, which no stream takes.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_NEW_LINE: Final = "\n    "


class LogSettings(BaseModel):
    """The settings of a program's log, beside those of its own."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe lines to log."
    )
    log_format: LogFormat = Field(
        default="text", description="Lines for people, or JSON with the keys of Kubernetes."
    )
    log_file: AbsolutePath | None = Field(
        default=None, description="File that has the log once more; it is rotated."
    )
    log_file_mib: int = Field(
        default=10, ge=1, le=1024, description="MiB at which the log file is rotated."
    )
    log_files: int = Field(
        default=5,
        ge=2,
        le=100,
        description="How many log files there are at most, the present one included.",
    )

    @property
    def rotated_log(self) -> LogFileHandler | None:
        """None if there is no log file."""
        path = self.log_file
        return None if path is None else LogFileHandler(path, self.log_file_mib, self.log_files)


@contextmanager
def new_call(name: str) -> Iterator[str]:
    """Give every line logged inside, in this thread, the id ``<name>-<process>-<n>``. A thread
    that works for the call keeps the id when it runs in a copy of the context
    (`contextvars.copy_context`)."""
    token = call_id.set(f"{name}-{_process}-{next(_counter)}")
    try:
        yield call_id.get()
    finally:
        call_id.reset(token)


def configure(
    level: str, log_format: LogFormat = "text", file: logging.Handler | None = None
) -> None:
    """Send the root logger's lines to standard error in the project's form, and to `file`."""
    handlers = [logging.StreamHandler(sys.stderr), *([] if file is None else [file])]
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if log_format == "json" else LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(level.upper())
    # urllib3 logs each of its connections.
    logging.getLogger("urllib3").setLevel(logging.WARNING)


class LineFormatter(logging.Formatter):
    """Time in UTC, level, module, call id, message.

    All lines after a record's first one (a trace, a message of several lines) are indented, so
    that they do not look like records. Control characters are written as numbers.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(where)s [%(call)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.where = _where(record)
        record.call = call_id.get()
        text = _CONTROL.sub(_as_number, super().format(record))
        return _NEW_LINE.join(text.splitlines())


class JsonFormatter(logging.Formatter):
    """An object on one line, with the keys of Kubernetes' own components (component-base, package
    logs/json): ``ts`` in milliseconds since 1970, ``caller``, ``msg``, ``logger``, ``v`` (0, or 4
    for debug lines) where it is no error, ``err`` with the trace; and ``level`` and ``call``."""

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "level": record.levelname.lower(),
            "caller": f"{record.filename}:{record.lineno}",
            "logger": _where(record),
            "msg": record.getMessage(),
            "call": call_id.get(),
        }
        if record.levelno < logging.ERROR:
            found["v"] = _DEBUG_VERBOSITY if record.levelno < logging.INFO else 0
        if record.exc_info:
            found["err"] = self.formatException(record.exc_info)
        return json.dumps(found)


_DEBUG_VERBOSITY: Final = 4


def _where(record: logging.LogRecord) -> str:
    return record.name.removeprefix("dra_driver.")


def _as_number(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"
