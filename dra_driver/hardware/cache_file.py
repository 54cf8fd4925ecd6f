"""Files of the state directory that save asking the hardware again."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from dra_driver.model.effects import NO_FAULTS, Effects, Point
from dra_driver.util.files import write_synced

logger = logging.getLogger(__name__)

Content = TypeVar("Content")


class CacheFile(Generic[Content]):
    """JSON. Constructing has no effect. The log says when the file cannot be read or written:
    then what it had is learnt anew."""

    def __init__(self, path: Path, form: type[Content], *, effects: Effects = NO_FAULTS) -> None:
        self._path = path
        self._form = form
        self._effects = effects

    def read(self) -> Content:
        """Empty where there is no file, or none that can be read."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=self._form)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, RecursionError):
            logger.exception("%s cannot be read; it is written anew", self._path)
        return self._form()

    def write(self, content: Content) -> None:
        """The whole file, or the earlier one stays."""
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            with self._effects(Point.CACHE_WRITE):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_synced(new, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
            with self._effects(Point.CACHE_RENAME):
                new.replace(self._path)
        except OSError:
            logger.exception("%s cannot be written", self._path)
