"""Settings of a program: file < environment < flags.

A program describes its settings as one pydantic model; from it come the flags
(``--kebab-case``), the environment variables (``GCU_UPPER_CASE``), the keys of the YAML file
(camelCase, as in the Helm values) and the whole of ``--help``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from dra_driver.model.errors import InvalidValue

ENV_PREFIX = "GCU_"


class Settings(BaseModel):
    """Base of every program's settings: frozen, and an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


S = TypeVar("S", bound=Settings)


def load(
    model: type[S],
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    prog: str,
    description: str,
) -> S:
    """The settings from the file named by ``--config``, the environment and the flags.

    Raises InvalidValue that names the setting, where it came from, and what it takes.
    ``--help`` prints and exits as argparse does.
    """
    parser = _parser(model, prog, description)
    given = {k: v for k, v in vars(parser.parse_args(argv)).items() if v is not None}
    path = given.pop("config", None) or environ.get(f"{ENV_PREFIX}CONFIG")
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for source, layer in (
        (f"file {path}", _from_file(model, path) if path else {}),
        ("the environment", _from_environment(model, environ)),
        ("the flags", given),
    ):
        values |= layer
        origin |= dict.fromkeys(layer, source)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _readable(model, error, origin) from error


def flag(name: str) -> str:
    """``node_name`` → ``--node-name``."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """``node_name`` → ``GCU_NODE_NAME``."""
    return ENV_PREFIX + name.upper()


def _parser(model: type[S], prog: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog="A flag wins over its environment variable, which wins over the file.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"YAML file with the settings in camelCase [{ENV_PREFIX}CONFIG]",
    )
    for name, field in model.model_fields.items():
        parser.add_argument(
            flag(name),
            dest=name,
            metavar=_metavar(field),
            help=f"{field.description} {_default(field)}[{variable(name)}]".replace("%", "%%"),
        )
    return parser


def _metavar(field: FieldInfo) -> str:
    kind = getattr(field.annotation, "__name__", "value")
    return {"int": "N", "float": "SECONDS", "bool": "true|false", "Path": "PATH"}.get(kind, "TEXT")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "(required) "
    return "" if field.default in (None, "") else f"(default {field.default}) "


def _from_file(model: type[S], path: str) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidValue(
            f"settings file {path} cannot be read: {error.strerror}",
            remedy="name an existing file with --config",
        ) from error
    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise InvalidValue(f"settings file {path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise InvalidValue(f"settings file {path} holds no mapping of settings")
    by_key = {to_camel(name): name for name in model.model_fields}
    unknown = sorted(str(key) for key in content if key not in by_key)
    if unknown:
        raise InvalidValue(
            f"settings file {path}: unknown {', '.join(unknown)}",
            remedy=f"the settings are {', '.join(sorted(by_key))}",
        )
    return {by_key[key]: value for key, value in content.items()}


def _from_environment(model: type[S], environ: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: environ[variable(name)]
        for name in model.model_fields
        if environ.get(variable(name), "") != ""
    }


def _readable(model: type[S], error: ValidationError, origin: Mapping[str, str]) -> InvalidValue:
    lines = []
    for problem in error.errors(include_url=False):
        key = str(problem["loc"][0]) if problem["loc"] else ""
        name = next((n for n in model.model_fields if key in (n, to_camel(n))), key)
        where = origin.get(name, "no source")
        given = (
            ""
            if problem["type"] == "missing"
            else f" (given {json.dumps(problem['input'], default=str)})"
        )
        lines.append(f"{flag(name)} [{variable(name)}] from {where}: {problem['msg']}{given}")
    return InvalidValue("; ".join(lines), remedy="see --help")


def load_or_exit(
    model: type[S],
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    prog: str,
    description: str,
) -> S:
    """`load`, with an error printed in one line and exit status 2, as argparse does it."""
    try:
        return load(model, argv, environ, prog=prog, description=description)
    except InvalidValue as error:
        sys.stderr.write(f"{prog}: {error}\n")
        raise SystemExit(2) from error
