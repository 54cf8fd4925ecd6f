"""Settings of a program: environment < flags.

A program describes its settings as one pydantic model; from it come the flags
(``--kebab-case``), the environment variables (``GCU_UPPER_CASE``) and the whole of ``--help``.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from dra_driver.model.errors import InvalidValue
from dra_driver.version import add_version_flag

logger = logging.getLogger(__name__)

ENV_PREFIX = "GCU_"

_LONGEST: Final = 120  # characters of a value in a message


class Settings(BaseModel):
    """What every program has: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    """The settings from the environment and the flags.

    An empty variable counts as not given. Raises InvalidValue with the setting's name in its
    source, the given value, and the allowed ones. An unknown variable with the driver's prefix is
    logged: it may be another program's, so it is no error. ``--help`` and ``--version`` print and
    exit as argparse does.
    """
    parser = _parser(model, prog, description)
    flags = {k: v for k, v in vars(parser.parse_args(argv)).items() if v is not None}
    _log_unknown_variables(model, environ, prog)
    variables = {
        name: environ[variable(name)] for name in model.model_fields if environ.get(variable(name))
    }
    try:
        return model.model_validate({**variables, **flags})
    except ValidationError as error:
        text = "; ".join(_readable(one, flags) for one in error.errors())
        raise InvalidValue(text, remedy=f"see {prog} --help") from error


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
        epilog="A flag wins over its environment variable. A variable that is empty counts as not "
        "given.",
        allow_abbrev=False,
    )
    add_version_flag(parser)
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


def _log_unknown_variables(model: type[S], environ: Mapping[str, str], prog: str) -> None:
    known = [variable(name) for name in model.model_fields]
    for name in sorted(environ.keys() - set(known)):
        if name.startswith(ENV_PREFIX):
            # Imported here: few programs ever need it, and it takes a quarter of a MiB.
            from difflib import get_close_matches  # noqa: PLC0415

            near = get_close_matches(name, known, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            logger.warning("%s has no setting for the variable %s%s", prog, name, hint)


def _readable(problem: Mapping[str, Any], flags: Mapping[str, str]) -> str:
    """One problem in the words of the place where the setting was given."""
    if not problem["loc"]:  # a rule between several settings
        return _message(problem)
    name = problem["loc"][0]
    if problem["type"] == "missing":
        return f"{flag(name)} [{variable(name)}] is missing"
    place = flag(name) if name in flags else f"{variable(name)} in the environment"
    return f"{place}: {_message(problem)} (given {given(problem['input'])})"


def problems(error: ValidationError, *, whole: str) -> str:
    """Each problem of a document with its place in it; `whole` is the document's own name."""
    return "; ".join(_problem(each, whole) for each in error.errors())


def _problem(problem: Mapping[str, Any], whole: str) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])
    place = "".join(parts).lstrip(".") or whole
    if word := {"extra_forbidden": "unknown", "missing": "missing"}.get(problem["type"]):
        return f"the field {place} is {word}"
    return f"{place}: {_message(problem)} (given {given(problem['input'])})"


def _message(problem: Mapping[str, Any]) -> str:
    # Pydantic puts this before the messages of our own validators.
    return str(problem["msg"]).removeprefix("Value error, ")


def given(value: object) -> str:
    """A given value for a message, as JSON, cut."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
