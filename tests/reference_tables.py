"""Tables of docs/user/reference.md. Names, types and values are the code's; meanings are here.

A name without a meaning, or a meaning without a name, raises ValueError.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel

from controller.extender.gcushare import annotations as pod_annotations
from controller.extender.retry_queue import ANNOTATION_RETRY
from dra_driver.agent.slices.added_taints import DELETED_CLAIM, ORPHANED
from dra_driver.config.device_config import API_VERSION, ISOLATION, KIND, Amount, GcuConfig
from dra_driver.device_plugin import node_annotations
from dra_driver.model import names
from dra_driver.model.card import UNHEALTHY_VALUES
from dra_driver.model.claims.claim import Object
from dra_driver.model.claims.packing import Packing
from dra_driver.model.devices.device import whole_device
from dra_driver.model.devices.device_shares import drs_device, shared_device
from dra_driver.model.mode import Mode
from dra_driver.model.profile import Profile, ProfileTable
from dra_driver.simulator.description.catalog import catalog
from kubectl_gcu.main import FAILED, PARTIAL, WAITS
from tests.control_plane.cards import card
from tests.reference_meanings import (
    ANNOTATIONS,
    ATTRIBUTES,
    CAPACITIES,
    CONFIG,
    CONFIG_VALUES,
    EXIT_CODES,
    PACKINGS,
    TAINTS,
)

_CHECKOUT: Final = Path(__file__).parents[1]
Row = Sequence[str]


def attributes() -> str:
    """Of the three devices of one card: what has which attribute, of which type."""
    found: dict[str, tuple[str, str, list[str]]] = {}
    for device in _devices_of_an_s60():
        kind = device["attributes"][names.ATTR_TYPE]["string"]
        for name, value in device["attributes"].items():
            [(type_, example)] = value.items()
            found.setdefault(name, (type_, str(example), []))[2].append(kind)
    _compare(found, ATTRIBUTES, _constants(names, "ATTR_"))
    return _table(
        ("attribute", "type", "devices", "example", "meaning"),
        (
            (f"`{name}`", type_, _devices(kinds), f"`{example}`", ATTRIBUTES[name])
            for name, (type_, example, kinds) in found.items()
        ),
    )


def capacities() -> str:
    """What a request may ask for with `capacity.requests`, and what it gets if it asks nothing."""
    found: dict[str, tuple[str, Object]] = {}
    for device in _devices_of_an_s60():
        for name, capacity in device["capacity"].items():
            found[name] = (device["attributes"][names.ATTR_TYPE]["string"], capacity)
    _compare(found, CAPACITIES, _constants(names, "CAPACITY_"))
    return _table(
        ("capacity", "devices", "example", "a request", "meaning"),
        (
            (f"`{name}`", kind, f"`{each['value']}`", _policy(each), CAPACITIES[name])
            for name, (kind, each) in found.items()
        ),
    )


def config() -> str:
    """The fields of the opaque configuration."""
    found = dict(_fields(GcuConfig))
    _compare(found, CONFIG)
    found["apiVersion"], found["kind"] = f"`{API_VERSION}`", f"`{KIND}`"
    return _table(
        ("field", "values", "meaning"),
        ((f"`{name}`", found[name], CONFIG[name]) for name in found),
    )


def taints() -> str:
    values = {
        names.TAINT_ALLOCATED_BY: (names.ALLOCATOR_CONTROLLER,),
        names.TAINT_UNHEALTHY: UNHEALTHY_VALUES,
        names.TAINT_FAILING: ("", ORPHANED),
        names.TAINT_HELD: (DELETED_CLAIM,),
        names.TAINT_FOREIGN: ("",),
        names.TAINT_CHANGING: ("",),
        names.TAINT_ADMINISTRATORS: ("",),
    }
    _compare(values, TAINTS, _constants(names, "TAINT_"))
    return _table(
        ("taint", "values", "effect", "meaning"),
        (
            (f"`{key}`", ", ".join(f"`{v}`" if v else "none" for v in values[key]), *TAINTS[key])
            for key in values
        ),
    )


def labels_and_annotations() -> str:
    """Labels, annotations, finalizers and gates."""
    found = (
        _constants(names, "ANNOTATION_", "LABEL_", "FINALIZER", "SCHEDULING_GATE")
        | _constants(pod_annotations, "ASSIGNED", "REQUEST_")
        | _constants(node_annotations, "SHARED_CAPACITY", "DRS_CAPACITY", "GCUSHARE")
        | {ANNOTATION_RETRY}
        | _of_the_chart()
    )
    _compare(found, ANNOTATIONS)
    return _table(
        ("name", "is", "on", "written by", "meaning"),
        ((f"`{name}`", *meaning) for name, meaning in ANNOTATIONS.items()),
    )


def exit_codes() -> str:
    """Of every program of the package."""
    text = (_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    _compare(tomllib.loads(text)["project"]["scripts"], EXIT_CODES)
    assert tuple(EXIT_CODES["kubectl-gcu"])[1:] == (FAILED, 2, PARTIAL, WAITS)
    return _table(
        ("program", "code", "meaning"),
        (
            (f"`{program}`", str(code), meaning)
            for program, codes in EXIT_CODES.items()
            for code, meaning in codes.items()
        ),
    )


def _devices_of_an_s60() -> Iterator[Object]:
    rows = catalog().profile_tables["s60-ecc"].profiles
    table = ProfileTable.of(
        Profile(row.name, row.id, row.count, row.memory_mib, row.sips) for row in rows
    )
    s60, allocator = card(3), names.ALLOCATOR_CONTROLLER
    yield whole_device(s60, allocator=allocator, sips=table.sips)
    yield shared_device(s60, 6, allocator=allocator, sips=table.sips)
    yield drs_device(s60, table, allocator=allocator)


def _of_the_chart() -> set[str]:
    """Names in the driver's domain that its templates alone have."""
    return {f"{names.DRIVER}/issued", f"{names.DRIVER}/scheduling-gate"}


def _constants(module: object, *prefixes: str) -> set[str]:
    return {
        value
        for name, value in vars(module).items()
        if name.startswith(prefixes) and isinstance(value, str)
    }


def _compare(found: Iterable[str], meanings: Mapping[str, object], *others: set[str]) -> None:
    for each in (set(found), *others):
        if each != set(meanings):
            raise ValueError(f"only one of code and meanings has {sorted(each ^ set(meanings))}")


def _fields(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    for field, info in model.model_fields.items():
        name = f"{path}{info.alias or field}"
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _fields(info.annotation, f"{name}.")
        else:
            yield name, CONFIG_VALUES.get(name) or _values(name, info.annotation)


def _values(name: str, annotation: Any) -> str:
    """Of a field of that type. Raises ValueError if the type does not say them."""
    if annotation == Packing | None:
        return PACKINGS
    if get_origin(annotation) is Literal:
        return f"`{get_args(annotation)[0]}`"
    if annotation == Amount | None:
        return "whole number from 1"
    if Mode in (get_args(get_args(annotation)[0]) or ()):
        return " or ".join(f"`{word}`" for word in ISOLATION)
    raise ValueError(
        f"the values of {name} are not known by its type: "
        "enter them in CONFIG_VALUES (tests/reference_meanings.py)"
    )


def _devices(kinds: Sequence[str]) -> str:
    return "all" if len(kinds) == 3 else ", ".join(kinds)


def _policy(capacity: Object) -> str:
    if (policy := capacity.get("requestPolicy")) is None:
        return "up to that of the card"
    if "validValues" in policy:
        values = ", ".join(policy["validValues"])
        return f"{values}; between two, the next one; without one {policy['default']}"
    most = policy["validRange"]["max"]
    return f"1 to {most}; without one {policy['default']}"


def _table(head: Row, rows: Iterable[Row]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]]) + "\n"
