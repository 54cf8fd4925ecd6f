"""The journal's file on a disk that fails; what it holds is in test_journal."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dra_driver.model.effects import Effects
from dra_driver.model.errors import JournalError
from dra_driver.node.checkpoint.logfile import JournalFile


def test_a_disk_that_does_not_even_tell_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    file = JournalFile(tmp_path, effects=Effects(), capacity=1024)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refuse)
        with pytest.raises(JournalError, match="cannot be used: Input/output error"):
            file.exists()
