"""The agent's log in a file of the node, by a value."""

from __future__ import annotations

from dra_driver.agent.settings import AgentSettings
from dra_driver.config.loader import load
from tests.chart.helm import Helm, environment
from tests.chart.test_agent import SIMULATED, host_paths


def test_a_log_file(helm: Helm) -> None:
    chosen = {"enabled": True, "maxMiB": 3, "files": 4}
    pod = helm.render({"agent": {"logFile": chosen}} | SIMULATED).agent
    settings = load(
        AgentSettings,
        ["--node-name=n"],
        environment(pod["containers"][0]),
        prog="p",
        description="",
    )
    assert settings.rotated_log is not None
    assert (settings.rotated_log.mib, settings.rotated_log.files) == (3, 4)
    folder = str(settings.rotated_log.path.parent)
    assert host_paths(pod)[folder] == "DirectoryOrCreate"
    assert folder not in host_paths(helm.render(SIMULATED).agent)
