"""Settings: file < environment < flags, and errors that name the setting and its source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from dra_driver.config.loader import Settings, load
from dra_driver.model.errors import InvalidValue


class Example(Settings):
    node_name: str = Field(min_length=1, description="name of the node")
    probe_port: int = Field(default=8080, le=65535, description="a port, 100 % local")


def settings(argv: list[str], environ: dict[str, str]) -> Example:
    return load(Example, argv, environ, prog="example", description="an example")


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("nodeName: from-file\nprobePort: 1\n")
    environ = {"GCU_CONFIG": str(file), "GCU_PROBE_PORT": "2"}
    assert settings([], environ) == Example(node_name="from-file", probe_port=2)
    assert settings(["--probe-port", "3"], environ).probe_port == 3


@pytest.mark.parametrize(
    ("argv", "environ", "message"),
    [
        ([], {}, r"--node-name \[GCU_NODE_NAME\]"),
        (["--node-name", "n", "--probe-port", "x"], {}, r"--probe-port .* from the flags"),
        ([], {"GCU_NODE_NAME": "n", "GCU_PROBE_PORT": "70000"}, "from the environment"),
        (["--config", "/nowhere.yaml"], {}, "/nowhere.yaml cannot be read"),
    ],
    ids=["missing", "not a number", "out of range", "no such file"],
)
def test_a_bad_setting_is_named(argv: list[str], environ: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        settings(argv, environ)


def test_an_unknown_key_of_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("nodeNam: n\n")
    with pytest.raises(InvalidValue, match="unknown nodeNam"):
        settings(["--config", str(file)], {})


def test_help_names_flag_variable_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings(["--help"], {})
    text = capsys.readouterr().out
    assert "--probe-port" in text
    assert "[GCU_PROBE_PORT]" in text
    assert "100 % local" in text
