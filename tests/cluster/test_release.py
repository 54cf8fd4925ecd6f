"""`kubectl-gcu` of a release, run by the system's Python."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from dra_driver.version import VERSION
from kubectl_gcu.view import page
from tests.release.wheels import wheels
from tests.release.zipapp import PROGRAM, write_zipapp

pytestmark = [pytest.mark.matrix]

_PYTHON = "/usr/bin/python3"


def test_the_program_runs_without_the_virtual_environment(tmp_path: Path) -> None:
    program = tmp_path / PROGRAM
    write_zipapp(wheels(tmp_path), program, 1_700_000_000)

    with zipfile.ZipFile(program) as archive:
        names = set(archive.namelist())
    assert {f"kubectl_gcu/view/static/{name}" for name in page.FILES} <= names

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [_PYTHON, "-I", str(program), *arguments]
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            command, env=environment, cwd="/", capture_output=True, text=True, check=False
        )

    assert run("--version").stdout == f"kubectl-gcu {VERSION}\n"
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"server": "https://127.0.0.1:1"}
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        f"clusters: [{{name: a, cluster: {cluster}}}]\nusers: [{{name: a, user: {{}}}}]\n"
    )
    for command in ("inspect", "view", "doctor"):
        found = run(command, f"--kubeconfig={kubeconfig}")
        assert found.returncode == 1, found
        assert "GET /version" in found.stderr or "127.0.0.1" in found.stderr
