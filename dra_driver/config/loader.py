"""Settings of a program: file < environment < flags.

A program describes its settings as one pydantic model; from it come the flags
(``--kebab-case``), the environment variables (``GCU_UPPER_CASE``), the keys of the YAML file
(camelCase, as in the Helm values) and the whole of ``--help``.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from dra_driver.config.documents import brief, given, read_yaml
from dra_driver.model.errors import InvalidValue
from dra_driver.version import add_version_flag

logger = logging.getLogger(__name__)

ENV_PREFIX = "GCU_"


class Settings(BaseModel):
    """What every program has: frozen, and an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
    )

    kubeconfig: Path | None = Field(
        default=None, description="kubeconfig file; in a pod its service account is used"
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

    An empty variable in the environment, and null in the file, count as not given. Raises
    InvalidValue with the setting's name in its source, the given value, and the allowed ones. An
    unknown variable with the driver's prefix is logged: it may be another program's, so it is no
    error. ``--help`` and ``--version`` print and exit as argparse does.
    """
    parser = _parser(model, prog, description)
    flags = {k: v for k, v in vars(parser.parse_args(argv)).items() if v is not None}
    _log_unknown_variables(model, environ, prog)
    path = flags.pop("config", None) or environ.get(variable("config"))
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for layer, place in (
        (_from_file(model, path) if path else {}, lambda name: f"{to_camel(name)} in file {path}"),
        (_from_environment(model, environ), lambda name: f"{variable(name)} in the environment"),
        (flags, flag),
    ):
        values |= layer
        places |= {name: place(name) for name in layer}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(_readable(model, one, places) for one in error.errors())
        raise InvalidValue(problems, remedy=f"see {prog} --help") from error


def listed_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list, in order."""
    return tuple(filter(None, map(str.strip, text.split(","))))


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
        epilog="A flag wins over its environment variable, which wins over the file. A variable "
        "that is empty counts as not given.",
        allow_abbrev=False,
    )
    add_version_flag(parser)
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"YAML file with the settings in camelCase [{variable('config')}]",
    )
    for name, field in model.model_fields.items():
        parser.add_argument(
            flag(name),
            dest=name,
            metavar=_metavar(field.annotation),
            help=f"{field.description} {_default(field)}[{variable(name)}]".replace("%", "%%"),
        )
    return parser


def _metavar(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    # Of ``Path | None`` the first type describes the value.
    kind = next(iter(get_args(annotation)), annotation)
    names = {int: "N", float: "SECONDS", bool: "true|false", Path: "PATH"}
    return names.get(kind, "TEXT")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "(required) "
    if field.default in (None, ""):
        return ""
    default = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"(default {default}) "


def _from_file(model: type[S], path: str) -> dict[str, Any]:
    content = read_yaml(Path(path), "settings file", flag="--config")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidValue(
            f"settings file {path} holds no mapping of settings", remedy="write it as key: value"
        )
    by_key = {to_camel(name): name for name in model.model_fields}
    unknown = sorted(brief(str(key)) for key in content if key not in by_key)
    if unknown:
        raise InvalidValue(
            f"settings file {path}: unknown {', '.join(unknown)}",
            remedy=f"the settings are {', '.join(sorted(by_key))}",
        )
    return {by_key[key]: value for key, value in content.items() if value is not None}


def _from_environment(model: type[S], environ: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: environ[variable(name)] for name in model.model_fields if environ.get(variable(name))
    }


def _log_unknown_variables(model: type[S], environ: Mapping[str, str], prog: str) -> None:
    known = [variable(name) for name in ("config", *model.model_fields)]
    for name in sorted(environ.keys() - set(known)):
        if name.startswith(ENV_PREFIX):
            # Imported here: few programs ever need it, and it takes a quarter of a MiB.
            from difflib import get_close_matches  # noqa: PLC0415

            near = get_close_matches(name, known, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            logger.warning("%s has no setting for the variable %s%s", prog, name, hint)


def _readable(model: type[S], problem: Mapping[str, Any], places: Mapping[str, str]) -> str:
    """One problem in the words of the place where the setting was given."""
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not problem["loc"]:  # a rule between several settings
        return message
    key = problem["loc"][0]
    name = next(name for name in model.model_fields if key in {name, to_camel(name)})
    if problem["type"] == "missing":
        return f"{flag(name)} [{variable(name)}] is missing"
    return f"{places[name]}: {message} (given {given(problem['input'])})"
