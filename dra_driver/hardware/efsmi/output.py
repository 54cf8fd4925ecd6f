"""Reads what a program prints, bounded in time and in bytes."""

from __future__ import annotations

import os
import selectors
import time
from typing import IO, Final

_CHUNK: Final = 64 * 1024


class TooMuchOutput(Exception):
    """The program printed more than the limit; it still runs."""


class Output:
    """What comes from the two pipes, up to `limit` bytes of both together.

    ``Popen.communicate`` keeps all that it reads, so a program that never stops printing would take
    the memory of the one that started it.
    """

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes], limit: int) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self._limit = limit
        self._pipes = (stdout, stderr)
        self._open = {stdout: self.stdout, stderr: self.stderr}

    def read(self, within: float) -> None:
        """Read until both pipes have ended. May be called again after a timeout.

        Raises TimeoutError after `within` seconds, and TooMuchOutput.
        """
        end = time.monotonic() + within
        with selectors.PollSelector() as selector:
            for pipe, kept in self._open.items():
                selector.register(pipe, selectors.EVENT_READ, (pipe, kept))
            while self._open:
                for key, _ in selector.select(max(end - time.monotonic(), 0)):
                    pipe, kept = key.data
                    chunk = os.read(key.fd, _CHUNK)
                    kept.extend(chunk)
                    if not chunk:
                        selector.unregister(pipe)
                        del self._open[pipe]
                if len(self.stdout) + len(self.stderr) > self._limit:
                    raise TooMuchOutput
                # Also while there is something to read, as a program may print slowly for ever.
                if self._open and time.monotonic() >= end:
                    raise TimeoutError

    def close(self) -> None:
        """Close the pipes; a program that still writes to them gets an error."""
        for pipe in self._pipes:
            pipe.close()
