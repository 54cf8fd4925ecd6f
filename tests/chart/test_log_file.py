"""The programs' logs in files of the node, by values."""

from __future__ import annotations

from pathlib import Path

from controller.settings import ControllerSettings
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
    assert settings.log_file is not None
    assert (settings.log_file_mib, settings.log_files) == (3, 4)
    folder = str(settings.log_file.parent)
    assert host_paths(pod)[folder] == "DirectoryOrCreate"
    assert folder not in host_paths(helm.render(SIMULATED).agent)


def test_the_controllers_log_file(helm: Helm) -> None:
    """It is not root, so an init container gives it the folder, and has no other right."""
    chosen = {"enabled": True, "maxMiB": 3, "files": 4}
    pod = helm.render({"controller": {"logFile": chosen}}).controller
    [container], [folder] = pod["containers"], pod["initContainers"]
    settings = load(ControllerSettings, [], environment(container), prog="p", description="")
    assert settings.log_file is not None
    assert (settings.log_file_mib, settings.log_files) == (3, 4)
    assert host_paths(pod) == {"/var/log/enflame/controller": "DirectoryOrCreate"}
    [mount] = folder["volumeMounts"]
    assert mount in container["volumeMounts"]
    assert Path(mount["mountPath"]) == settings.log_file.parent
    user = pod["securityContext"]["runAsUser"]
    assert folder["command"] == ["chown", f"{user}:{user}", mount["mountPath"]]
    assert folder["securityContext"] == {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "runAsGroup": 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]},
    }
    plain = helm.render().controller
    assert "initContainers" not in plain
    assert host_paths(plain) == {}
