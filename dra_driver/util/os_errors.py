"""Errors of the operating system as errors of this driver."""

from __future__ import annotations

from os import PathLike
from types import TracebackType

from dra_driver.model.errors import GcuError


class OsErrorAs:
    """Around file operations: an OSError is raised again as `error`, which names `what` and `path`
    and has the `remedy`. A class, not a generator: a call enters and leaves many of these."""

    __slots__ = ("_error", "_path", "_remedy", "_what")

    def __init__(
        self, error: type[GcuError], what: str, path: str | PathLike[str], *, remedy: str
    ) -> None:
        self._error = error
        self._what = what
        self._path = path
        self._remedy = remedy

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise self._error(
                f"{self._what} {self._path} cannot be used: {error.strerror or error}",
                remedy=self._remedy,
            ) from error
