"""A command of `kubectl gcu`, run on a stand-in for the API server."""

from __future__ import annotations

import io
from typing import Any

import pytest

from kubectl_gcu import main


def gcu(server: Any, command: str, *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what is printed as output and as errors. A `server` of None must not be
    connected to. The namespace is ``default`` unless the arguments have another."""
    out, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        connect = pytest.fail if server is None else lambda *_, **__: server
        patch.setattr(main, "connect", connect)
        code = main.run([command, "--namespace=default", *arguments], {}, out, errors)
    return code, out.getvalue(), errors.getvalue()
