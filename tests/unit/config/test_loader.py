"""Settings: environment < flags, and errors that name the setting and its source."""

from __future__ import annotations

import logging
import re
from datetime import date
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field, model_validator

from controller.settings import ControllerSettings
from dra_driver.agent.settings import AgentSettings
from dra_driver.config.loader import Settings, flag, given, listed_names, load, variable
from dra_driver.model.errors import InvalidValue


class Example(Settings):
    node_name: str = Field(min_length=1, description="name of the node")
    probe_port: int = Field(default=8080, le=65535, description="a port, 100 % local")
    interval: float = Field(default=5.0, gt=0, description="seconds between looks")
    least: float = Field(default=1.0, description="at least this")
    state_dir: Path | None = Field(default=None, description="a folder")
    injection: Literal["cdi", "runtime"] = Field(default="cdi", description="who injects")
    verbose: bool = Field(default=False, description="more words")

    @model_validator(mode="after")
    def _in_order(self) -> Example:
        if self.least > self.interval:
            raise ValueError("least must not be above interval")
        return self


def settings(*argv: str, environ: dict[str, str] | None = None) -> Example:
    return load(Example, argv, environ or {}, prog="example", description="an example")


def test_flags_win_over_the_environment() -> None:
    environ = {"GCU_NODE_NAME": "n", "GCU_PROBE_PORT": "2", "GCU_INTERVAL": "7"}
    found = settings(environ=environ)
    assert (found.node_name, found.probe_port, found.interval) == ("n", 2, 7)
    assert (found.verbose, found.state_dir, found.injection) == (False, None, "cdi")
    assert settings("--probe-port", "3", environ=environ).probe_port == 3


def test_what_is_empty_counts_as_not_given() -> None:
    environ = {"GCU_NODE_NAME": "n", "GCU_PROBE_PORT": "", "GCU_STATE_DIR": ""}
    assert settings(environ=environ) == Example(node_name="n")


def test_kinds_of_values() -> None:
    found = settings(
        "--node-name=n", "--state-dir=/state", "--verbose=true", "--injection=runtime", "--least=.5"
    )
    assert (found.state_dir, found.verbose) == (Path("/state"), True)
    assert (found.injection, found.least) == ("runtime", 0.5)


@pytest.mark.parametrize(
    ("argv", "environ", "message"),
    [
        ([], {}, r"^--node-name \[GCU_NODE_NAME\] is missing; see example --help$"),
        (
            ["--node-name=n", "--probe-port=x"],
            {},
            r'^--probe-port: Input should be a valid integer, .* \(given "x"\); see',
        ),
        (
            [],
            {"GCU_NODE_NAME": "n", "GCU_PROBE_PORT": "70000"},
            r"^GCU_PROBE_PORT in the environment: .* less than or equal to 65535 \(given",
        ),
        (["--node-name="], {}, r'^--node-name: .* at least 1 character \(given ""\)'),
        (["--node-name=n", "--interval=inf"], {}, r"^--interval: Input should be a finite number"),
        (["--node-name=n", "--interval=nan"], {}, r"^--interval: Input should be a finite number"),
        (["--node-name=n", "--injection=x"], {}, r"^--injection: .*'cdi' or 'runtime'"),
        (["--node-name=n", "--verbose=maybe"], {}, r"^--verbose: .*valid boolean"),
        (
            ["--node-name=n", "--interval=0", "--probe-port=x"],
            {},
            r"^--probe-port: .*; --interval: .*greater than 0 \(given \"0\"\); see",
        ),
        (["--node-name=n", "--least=9"], {}, r"^least must not be above interval; see example"),
    ],
    ids=[
        *("missing", "not a number", "out of range", "empty", "infinite", "not a number at all"),
        *("not a choice", "not a truth", "two at once", "a rule between two"),
    ],
)
def test_a_bad_setting_is_named_as_it_was_given(
    argv: list[str], environ: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        settings(*argv, environ=environ)


@pytest.mark.parametrize("word", ["--prob-port=1", "--probe=1"], ids=["misspelt", "cut off"])
def test_an_unknown_flag_is_named(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        settings("--node-name=n", word)
    assert caught.value.code == 2
    assert f"unrecognized arguments: {word}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"GCU_NODENAME": "n"}, ["variable GCU_NODENAME; did you mean GCU_NODE_NAME?"]),
        ({"GCU_XYZZY": "1"}, ["variable GCU_XYZZY"]),
        ({"GCU_STATE_DIR": "", "GCU_VERBOSE": "true", "PATH": "/bin", "XGCU_A": "1"}, []),
    ],
    ids=["misspelt", "like nothing", "known"],
)
def test_an_unknown_variable_is_told(
    environ: dict[str, str], told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        settings("--node-name=n", environ=environ)
    assert caplog.messages == [f"example has no setting for the {text}" for text in told]


def help_of(model: type[Settings], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        load(model, ["--help"], {}, prog="example", description="an example")
    assert caught.value.code == 0
    return re.sub(r"\s+", " ", capsys.readouterr().out)


def test_help_tells_all_of_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(Example, capsys)
    assert "an example" in text
    for line in (
        "--node-name TEXT name of the node (required) [GCU_NODE_NAME]",
        "--probe-port N a port, 100 % local (default 8080) [GCU_PROBE_PORT]",
        "--interval SECONDS seconds between looks (default 5.0) [GCU_INTERVAL]",
        "--state-dir PATH a folder [GCU_STATE_DIR]",
        "--injection cdi|runtime who injects (default cdi) [GCU_INJECTION]",
        "--verbose true|false more words (default false) [GCU_VERBOSE]",
        "A flag wins over its environment variable.",
    ):
        assert line in text


def test_a_list_of_names() -> None:
    assert listed_names(" a, b,,c ") == ("a", "b", "c")
    assert listed_names("") == ()


@pytest.mark.parametrize("model", [AgentSettings, ControllerSettings])
def test_help_of_the_programs_is_complete(
    model: type[Settings], capsys: pytest.CaptureFixture[str]
) -> None:
    text = help_of(model, capsys)
    for name, field in model.model_fields.items():
        assert field.description, name
        assert f"{flag(name)} " in text
        assert f"[{variable(name)}]" in text
        assert re.sub(r"\s+", " ", field.description) in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (True, "true"),
        (None, "null"),
        (date(2026, 1, 1), '"2026-01-01"'),
        ([1, [2]], "[1, [2]]"),
        ("x" * 500, '"' + "x" * 118 + "…"),
    ],
    ids=["text", "truth", "nothing", "a date", "a list", "long"],
)
def test_what_was_given_is_shown(value: object, text: str) -> None:
    assert given(value) == text
