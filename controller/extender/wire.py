"""The protocol's JSON (k8s.io/kube-scheduler/extender/v1, 1.36.3), to and from values. Pure.

Its types have no JSON names, so keys are written as Go writes the fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.extender.decide import Filtered
from dra_driver.model.claim import Object
from dra_driver.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Question:
    """``ExtenderArgs``: where could the pod run?"""

    pod: Object
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """``ExtenderBindingArgs``: bind that very pod to the node."""

    namespace: str
    name: str
    uid: str
    node: str


def parse_question(body: bytes) -> Question:
    """Raises InvalidValue, for whoever wrote the scheduler's configuration."""
    raw = _object(body)
    pod, names = raw.get("Pod"), raw.get("NodeNames")
    if names is None:
        raise InvalidValue(
            "kube-scheduler sent whole nodes, and names are read",
            remedy="set nodeCacheCapable: true in the extender's configuration",
        )
    if not isinstance(pod, dict) or "metadata" not in pod or "spec" not in pod:
        raise InvalidValue("the call names no pod", remedy="call it as ExtenderArgs has it")
    return Question(pod, tuple(str(each) for each in names))


def parse_bind(body: bytes) -> Bind:
    """Raises InvalidValue."""
    raw = _object(body)
    try:
        return Bind(*(str(raw[key]) for key in ("PodNamespace", "PodName", "PodUID", "Node")))
    except KeyError as error:
        raise InvalidValue(f"the call to bind has no {error}") from error


def render_filtered(found: Filtered) -> bytes:
    """``ExtenderFilterResult``. Preemption would change nothing, as nobody is preempted for a
    card: that is what unresolvable means."""
    return _render(
        {"NodeNames": list(found.fit), "FailedAndUnresolvableNodes": dict(found.unfit), "Error": ""}
    )


def render_scores(scores: Mapping[str, int]) -> bytes:
    """``HostPriorityList``."""
    return _render([{"Host": node, "Score": score} for node, score in scores.items()])


def render_error(error: str) -> bytes:
    """What filter and bind answer where they cannot; with no error, what bind answers where it
    could."""
    return _render({"Error": error})


def _render(answer: object) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        raw = json.loads(body)
    except ValueError as error:
        raise InvalidValue(f"the call's body is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise InvalidValue("the call's body is not an object")
    return raw
