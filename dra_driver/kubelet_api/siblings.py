"""The sockets of other agents of this driver: of one beside this agent, or of dead agents."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dra_driver.model.effects import Effects, Point
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

# As `socket_path` and its callers name them. Other drivers' sockets lie in the same folders.
_HASHED: Final = r"gcu-[0-9a-f]{16}"
SERVICES: Final = re.compile(rf"(dra(-.+)?|{_HASHED})\.sock")
REGISTRATIONS: Final = re.compile(rf"({re.escape(DRIVER)}(-.+)?|{_HASHED})-reg\.sock")
RESOURCES: Final = re.compile(rf"({re.escape(DRIVER)}-.+|{_HASHED})\.sock")


class Siblings:
    """Checks the sockets beside the agent's own, and removes those of dead agents.

    Every kubelet that starts would try the registration socket of a dead agent again and again. A
    socket is removed if two checks in a row found no listener: a new socket has none either
    between its bind and its listen.
    """

    def __init__(self, own: Mapping[Path, re.Pattern[str]], effects: Effects) -> None:
        """`own` are the agent's sockets, each with the names of others in the same folder."""
        self._own = own
        self._effects = effects
        self._alive: frozenset[Path] = frozenset()
        self._dead: frozenset[Path] = frozenset()

    def run_once(self) -> bool:
        """Check once; returns whether an agent has ended since the last check."""
        found = {path: has_listener(path) for path in self._found()}
        alive = frozenset(path for path, listens in found.items() if listens)
        dead = frozenset(found) - alive
        for path in sorted(dead & self._dead):
            self._remove(path)
        ended = self._alive - alive
        self._alive, self._dead = alive, dead
        return bool(ended)

    def _found(self) -> Iterator[Path]:
        for folder, names in {(own.parent, names) for own, names in self._own.items()}:
            try:
                paths = sorted(folder.iterdir())
            except OSError as error:
                logger.debug("%s cannot be listed: %s", folder, error.strerror)
                continue
            yield from (
                path
                for path in paths
                if path not in self._own and names.fullmatch(path.name) and path.is_socket()
            )

    def _remove(self, path: Path) -> None:
        try:
            with self._effects(Point.SOCKET_REMOVE):
                path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s, which a dead agent left, stays: %s", path, error.strerror)
        else:
            logger.info("removed %s, which a dead agent left", path)


def has_listener(path: Path) -> bool:
    """Whether a process listens on the socket; True if that is unknown."""
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.setblocking(False)
            caller.connect(str(path))
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError as error:
        # Such as a full queue: an agent that is slow to answer is not dead.
        logger.debug("%s cannot be connected: %s", path, error.strerror)
    return True
