"""The agent's settings, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.agent.settings import AgentSettings
from dra_driver.config.loader import load
from dra_driver.model.errors import InvalidValue


def settings(*argv: str, **environ: str) -> AgentSettings:
    return load(AgentSettings, argv, environ, prog="gcu-dra-agent", description="an agent")


def test_a_node_name_is_all_it_needs() -> None:
    found = settings(GCU_NODE_NAME="n1")
    assert found.node_name == "n1"
    assert (found.host_root, found.efsmi_path) == (Path("/"), "efsmi")


def test_nothing_evicts_unless_it_is_named() -> None:
    assert settings("--node-name=n1").evicting == frozenset()
    assert settings("--node-name=n1", GCU_EVICT_ON="lost, rma").evicting == {"lost", "rma"}


@pytest.mark.parametrize(
    ("argv", "directory"),
    [
        ([], "/var/lib/kubelet/plugins/gcu.enflame.com"),
        (["--kubelet-root=/data/kubelet"], "/data/kubelet/plugins/gcu.enflame.com"),
        (["--kubelet-root=/data/kubelet", "--state-dir=/elsewhere"], "/elsewhere"),
    ],
    ids=["by default", "below the kubelet's", "its own"],
)
def test_where_the_journal_lies(argv: list[str], directory: str) -> None:
    assert settings("--node-name=n1", *argv).state_directory == Path(directory)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "--node-name [GCU_NODE_NAME]"),
        (["--node-name="], "--node-name"),
        (["--node-name=../n1"], "--node-name"),
        (["--node-name=n1,spec.driver=x"], "--node-name"),
        (["--node-name=" + "n" * 254], "--node-name"),
        (["--node-name=n1", "--efsmi-timeout=0"], "--efsmi-timeout"),
        (["--node-name=n1", "--efsmi-timeout=301"], "--efsmi-timeout"),
        (["--node-name=n1", "--presence-interval=0"], "--presence-interval"),
        (["--node-name=n1", "--inventory-interval=-1"], "--inventory-interval"),
        (["--node-name=n1", "--probe-port=70000"], "--probe-port"),
        (["--node-name=n1", "--error-limit=-1"], "--error-limit"),
        (["--node-name=n1", "--evict-on=lost,dusty"], "dusty is no reason of a taint; they are"),
        (["--node-name=n1", "--injection=magic"], "--injection"),
        (["--node-name=n1", "--log-level=loud"], "--log-level"),
        (["--node-name=n1", "--host-root=machine"], "--host-root"),
        (["--node-name=n1", "--kubelet-root=kubelet"], "--kubelet-root"),
        (["--node-name=n1", "--cdi-dir=cdi"], "--cdi-dir"),
        (["--node-name=n1", "--state-dir=state"], "--state-dir"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) and value else None,
)
def test_a_wrong_value_is_named(argv: list[str], told: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        settings(*argv)
    assert told in str(raised.value)
