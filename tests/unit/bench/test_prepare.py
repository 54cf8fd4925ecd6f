"""What of ``make bench-prepare`` needs no cluster."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from bench.prepare.__main__ import Figures
from bench.prepare.caller import PROGRAM, Caller
from dra_driver.kube.http.cluster_config import in_pod
from dra_driver.model.claims.claim import ClaimRef
from tests.cluster.pki import Authority
from tests.cluster.versions import DEFAULT_KUBERNETES
from tests.control_plane.pod import Pod

# Plays the Go program: tells what it was called with.
_PROGRAM = """#!/usr/bin/env python3
import json, sys
[claim] = json.load(sys.stdin)
assert "-socket=/dra.sock" in sys.argv and "-callers=3" in sys.argv and claim["uid"] == "u"
print(json.dumps({"prepare": [1.0], "unprepare": [], "seconds": len(sys.argv)}))
"""


def test_the_helper_is_of_the_release_that_the_cluster_runs() -> None:
    sources = PROGRAM.sources()
    assert {"go.mod", "go.sum", "main.go", "plugin.go"} <= sources.keys()
    release = DEFAULT_KUBERNETES.split(".", 1)[1]
    assert PROGRAM.version == f"0.{release}"
    wanted = f"k8s.io/dynamic-resource-allocation v0.{release}\n"
    assert wanted in sources["go.mod"].read_text()


def test_figures_are_percentiles_of_all_turns() -> None:
    figures = Figures(
        single=[float(n) for n in range(1, 101)],
        single_unprepare=[2.0],
        together=[3.0],
        cycles=[10.0, 30.0, 20.0],
        rss_mib=40.0,
    )
    rows = figures.rows()
    assert (rows["p50_ms"], rows["p99_ms"], rows["cycles_per_s"]) == (51.0, 100.0, 20.0)
    assert {"p50_ms", "p99_ms", "c64_p50_ms", "cycles_per_s", "rss_mib"} <= rows.keys()


def test_the_caller_is_told_the_claims(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    found = Caller(program, Path("/dra.sock")).run([ClaimRef("n", "c", "u")], callers=3)
    assert (found.prepare, found.unprepare) == ([1.0], [])


def test_a_pod_has_what_the_agent_looks_for(tmp_path: Path) -> None:
    Authority(tmp_path)
    server = "https://10.77.0.1:6443"
    authority = (tmp_path / "ca.crt").read_bytes()
    cluster = {"server": server, "certificate-authority-data": b64(authority)}
    kubeconfig = tmp_path / "kubeconfig"
    content = {"clusters": [{"cluster": cluster}], "users": [{"user": {"token": "secret"}}]}
    kubeconfig.write_text(json.dumps(content))
    pod = Pod.of(kubeconfig, tmp_path / "pod")
    access = in_pod(pod.environment(), pod.folder)
    assert (access.server, access.token()) == (server, "secret")
    assert pod.command("agent", "--flag")[-2:] == ["agent", "--flag"]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
