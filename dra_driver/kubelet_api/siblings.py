"""The sockets of other agents of this driver: one beside us during an update, or dead ones."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.effects import Effects, Point
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

# As `Sockets.of` names them. Other drivers' sockets lie in the kubelet's plugins_registry, too.
_HASHED: Final = r"gcu-[0-9a-f]{16}"
_SERVICE: Final = re.compile(rf"(dra(-.+)?|{_HASHED})\.sock")
_REGISTRATION: Final = re.compile(rf"({re.escape(DRIVER)}(-.+)?|{_HASHED})-reg\.sock")


def dra_siblings(own: Sockets) -> Mapping[Path, re.Pattern[str]]:
    """The two sockets of a DRA plugin."""
    return {own.service: _SERVICE, own.registration: _REGISTRATION}


class Siblings:
    """Looks at the sockets beside ours, and removes those on which nobody listens any more.

    A dead agent's registration is tried by each kubelet that starts, again and again. A socket
    is removed when two looks in a row found it deaf: between its bind and its listen it is deaf
    as well.
    """

    def __init__(self, own: Mapping[Path, re.Pattern[str]], effects: Effects) -> None:
        """`own` are our sockets, each with the names that an agent's socket of its kind can have
        in the same folder."""
        self._own = own
        self._effects = effects
        self._alive: frozenset[Path] = frozenset()
        self._deaf: frozenset[Path] = frozenset()

    def run_once(self) -> bool:
        """One look; says whether an agent has left since the one before."""
        heard = {path: is_heard(path) for path in self._found()}
        alive = frozenset(path for path, listens in heard.items() if listens)
        deaf = frozenset(heard) - alive
        for path in sorted(deaf & self._deaf):
            self._remove(path)
        left = self._alive - alive
        self._alive, self._deaf = alive, deaf
        return bool(left)

    def _found(self) -> Iterator[Path]:
        for own, names in self._own.items():
            try:
                paths = sorted(own.parent.iterdir())
            except OSError as error:
                logger.debug("%s cannot be listed: %s", own.parent, error.strerror)
                continue
            yield from (
                path
                for path in paths
                if path != own and names.fullmatch(path.name) and path.is_socket()
            )

    def _remove(self, path: Path) -> None:
        try:
            with self._effects(Point.SOCKET_REMOVE):
                path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s, which a dead agent left, stays: %s", path, error.strerror)
        else:
            logger.info("removed %s, which a dead agent left", path)


def is_heard(path: Path) -> bool:
    """Whether somebody listens on the socket; True where it cannot be told."""
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.setblocking(False)
            caller.connect(str(path))
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError as error:
        # A full queue, among others: one who is slow to answer is not dead.
        logger.debug("%s cannot be called: %s", path, error.strerror)
    return True
