"""The protocol's JSON (k8s.io/kube-scheduler/extender/v1, 1.36.3), to and from values. Pure.

Its types have no JSON names, so keys are written as Go writes the fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from controller.extender.decide import Filtered
from dra_driver.kube.decode import decode
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class FilterArgs:
    """``ExtenderArgs``: which of `nodes` can take the pod?"""

    pod: Object
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindArgs:
    """``ExtenderBindingArgs``: bind the pod to the node."""

    namespace: str
    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """``ExtenderPreemptionArgs``: would the pod fit if these `victims` were preempted? They are by
    node, as kube-scheduler chose them (``MetaVictims``); where it chose none, the pod fits as it
    is."""

    pod: Object
    victims: Mapping[str, Object]


def parse_filter(body: bytes) -> FilterArgs:
    """Raises InvalidValue, for whoever wrote the scheduler's configuration."""
    raw = _object(body)
    names = _by_name(raw.get("NodeNames"), "nodes")
    # Each node once: a call holds the shared lock while it filters.
    return FilterArgs(_pod(raw, "ExtenderArgs"), tuple(dict.fromkeys(map(str, names))))


def parse_bind(body: bytes) -> BindArgs:
    """Raises InvalidValue."""
    raw = _object(body)
    try:
        return BindArgs(*(str(raw[key]) for key in ("PodNamespace", "PodName", "PodUID", "Node")))
    except KeyError as error:
        raise InvalidValue(f"the call to bind has no {error}") from error


def parse_preemption(body: bytes) -> PreemptionArgs:
    """Raises InvalidValue, for whoever wrote the scheduler's configuration."""
    raw = _object(body)
    victims = _by_name(raw.get("NodeNameToMetaVictims"), "victims")
    if not isinstance(victims, dict):
        raise InvalidValue("the call names victims of no nodes")
    by_node = {node: _meta_victims(node, its) for node, its in victims.items()}
    return PreemptionArgs(_pod(raw, "ExtenderPreemptionArgs"), by_node)


def render_filtered(filtered: Filtered) -> bytes:
    """``ExtenderFilterResult``. The nodes are unresolvable: no pod is preempted for a card."""
    unfit = dict(filtered.unfit)
    return _render(
        {"NodeNames": list(filtered.fit), "FailedAndUnresolvableNodes": unfit, "Error": ""}
    )


def render_victims(victims: Mapping[str, Object]) -> bytes:
    """``ExtenderPreemptionResult``: the nodes with their victims."""
    return _render({"NodeNameToMetaVictims": dict(victims)})


def render_scores(scores: Mapping[str, int]) -> bytes:
    """``HostPriorityList``."""
    return _render([{"Host": node, "Score": score} for node, score in scores.items()])


def render_error(error: str) -> bytes:
    """The answer of filter and bind after an error; with an empty text, of bind after success."""
    return _render({"Error": error})


def _by_name(field: Any, what: str) -> Any:
    """The field that kube-scheduler fills for an extender with ``nodeCacheCapable``. Raises
    InvalidValue if it is empty."""
    if field is None:
        raise InvalidValue(
            f"kube-scheduler sent whole {what} instead of names",
            remedy="set nodeCacheCapable: true in the extender's configuration",
        )
    return field


def _meta_victims(node: str, raw: Any) -> Object:
    """With a list of pods. kube-scheduler sends empty ones since 1.38 (kubernetes#135486). Raises
    InvalidValue."""
    if not isinstance(raw, dict | None):
        raise InvalidValue(
            f"the victims of node {node} are no object",
            remedy="write them as MetaVictims of kube-scheduler's extender/v1 has them",
        )
    victims = raw or {}
    return victims | {"Pods": victims.get("Pods") or []}


def _pod(raw: Mapping[str, Any], kind: str) -> Object:
    pod = raw.get("Pod")
    if not _is_pod(pod):
        raise InvalidValue("the call names no pod", remedy=f"call it as {kind} has it")
    return pod


def _is_pod(raw: Any) -> TypeGuard[Object]:
    """Whether it has all fields that are read later: an error in the thread that retries pods would
    end that thread."""
    try:
        metadata, spec = raw["metadata"], raw["spec"]
        texts = [metadata[key] for key in ("namespace", "name", "uid")]
        for key in ("initContainers", "containers"):
            texts += [container["name"] for container in spec.get(key) or ()]
        priority = spec.get("priority") or 0
    except (AttributeError, LookupError, TypeError):
        return False
    return isinstance(priority, int) and all(
        isinstance(text, str) and text.isascii() for text in texts
    )


def _render(answer: object) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        raw = decode(body)
    except ValueError as error:
        raise InvalidValue(f"the call's body is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise InvalidValue("the call's body is not an object")
    return raw
