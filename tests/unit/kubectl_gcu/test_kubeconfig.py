"""Which cluster `kubectl gcu` reads: that of kubectl."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.errors import InvalidValue
from kubectl_gcu import main

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def kubeconfig(monkeypatch: pytest.MonkeyPatch, *arguments: str, **environ: str) -> Path | None:
    """By which file a command connects; None for the service account of a pod."""
    used: list[Path | None] = []

    def connect(path: Path | None, **_: Any) -> None:
        used.append(path)
        raise InvalidValue("no server")

    monkeypatch.setattr(main, "connect", connect)
    code = main.run(["inspect", *arguments], environ, io.StringIO(), io.StringIO())
    assert code == main.FAILED
    [path] = used
    return path


def test_a_file_comes_before_the_service_account_of_the_pod(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    default = tmp_path / ".kube" / "config"
    home = {"HOME": str(tmp_path)}
    assert kubeconfig(monkeypatch, **home) == default
    assert kubeconfig(monkeypatch, **home, **POD) is None
    default.parent.mkdir()
    default.touch()
    assert kubeconfig(monkeypatch, **home, **POD) == default
    nowhere = {"HOME": f"{default}"}  # a home that cannot be looked into
    assert kubeconfig(monkeypatch, **nowhere, **POD) is None
    assert kubeconfig(monkeypatch, **home, **POD, KUBECONFIG="/a:/b") == Path("/a:/b")
    assert kubeconfig(monkeypatch, "--kubeconfig=/c", **home, **POD) == Path("/c")
