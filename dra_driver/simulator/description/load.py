"""From YAML to a validated description, with errors that name the path of a wrong key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from dra_driver.model.errors import InvalidValue
from dra_driver.simulator.description.spec import MachineSpec

_MACHINES = resources.files("dra_driver.simulator.description") / "machines"
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*")
_Model = TypeVar("_Model", bound=BaseModel)


class _Loader(yaml.SafeLoader):
    """Leaves every scalar but null a string: YAML 1.1 would read the address ``0000:01:00.0``
    as a number of base 60 and the version ``1.5`` as a float. Refuses a key given twice."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.composer.ComposerError(
                    problem="a key is no single word", problem_mark=key.start_mark
                )
            if key.value in seen:
                raise yaml.composer.ComposerError(
                    problem=f"the key {key.value} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def shipped_machines() -> tuple[str, ...]:
    """The names that `machine_spec` knows without a file."""
    names = (entry.name for entry in _MACHINES.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def machine_spec(source: MachineSpec | Mapping[str, Any] | Path | str) -> MachineSpec:
    """A description from a file, the name of a shipped machine, or its keys.

    Raise InvalidValue, one line for each wrong key (``cards[3].memoryMiB: …``).
    """
    match source:
        case MachineSpec():
            return source
        case Mapping():
            return validated(MachineSpec, source, of="the machine")
        case str() if source in shipped_machines():
            text = (_MACHINES / f"{source}.yaml").read_text(encoding="utf-8")
            return validated(MachineSpec, parse_yaml(text, of=source), of=f"machine {source}")
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(
            f"cannot read the machine {str(source)!r}: {error}",
            remedy=f"give a YAML file, or one of {', '.join(shipped_machines())}",
        ) from error
    return validated(MachineSpec, parse_yaml(text, of=str(path)), of=f"machine {path}")


def parse_yaml(text: str, *, of: str) -> Any:
    """The document with all scalars but null as strings. Raise InvalidValue when malformed."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - _Loader is a SafeLoader
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        # Beside YAMLError, what constructors raise for a scalar that is not of its tag
        # (``!!int ''``, ``!!bool maybe``), and what is raised for one that is nested too deep.
        raise InvalidValue(f"{of} is not YAML: {error}") from error


def validated(model: type[_Model], raw: Any, *, of: str) -> _Model:
    """`raw` as a `model`. Raise InvalidValue with one line for each wrong key."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        lines = [
            f"{path(detail['loc'])}: {_words(detail['type'], detail['msg'])}"
            for detail in error.errors(include_url=False)
        ]
        raise InvalidValue("\n".join(f"{of}: {line}" for line in lines)) from error


def path(location: Iterable[str | int]) -> str:
    """A place in a document as a person writes it: ``cards[3].errors[SIP Error]``."""
    text = ""
    for part in location:
        if part == "[key]":  # pydantic's mark for "the key itself is wrong"
            continue
        if isinstance(part, str) and _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part}]"
    return text or "the document"


def _words(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "there is no such key"
    if kind == "missing":
        return "must be given"
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
