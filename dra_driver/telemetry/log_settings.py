"""The settings of a program's log, beside those of its own."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from dra_driver.telemetry.log_file import LogFileHandler
from dra_driver.telemetry.logs import LogFormat
from dra_driver.util.paths import AbsolutePath


class LogSettings(BaseModel):
    """A part of agent's and controller's settings."""

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
