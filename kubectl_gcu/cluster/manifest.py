"""What a manifest has for ``kubectl gcu plan``: pods, also those that its workloads make, claims
and claim templates."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import yaml

from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue

_COUNTS: Final = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}
_LISTS_OF_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})
_CLAIM, _TEMPLATE, _GROUP = "ResourceClaim", "ResourceClaimTemplate", "PodGroup"
_OLD_FORMS: Final = frozenset({"resource.k8s.io/v1alpha3", "resource.k8s.io/v1beta1"})
"""Versions that have the fields of `exactly` in the request itself."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Each object has namespace and name; pods have a UID."""

    pods: tuple[Object, ...] = ()
    claims: tuple[Object, ...] = ()
    templates: tuple[Object, ...] = ()
    groups: tuple[Object, ...] = ()


def load_documents(name: str) -> list[Any]:
    """The documents of a file of JSON or YAML; ``-`` is standard input. Raises InvalidValue."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        with suppress(json.JSONDecodeError):  # a hundred times as quick as YAML
            return [json.loads(text)]
        documents = list(yaml.safe_load_all(text))
        json.dumps(documents, default=str, skipkeys=True)  # fails where an alias is of itself
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InvalidValue(f"{name} cannot be read: {error}") from error
    return documents


def parse_manifest(documents: Iterable[Any], namespace: str) -> Manifest:
    """`namespace` is that of objects which name none. Raises InvalidValue for what is malformed,
    for a kind whose pods cannot be counted, and where there is no pod at all."""
    objects = [
        _named(_with_quantities(each), namespace, number)
        for number, each in enumerate(flat(documents), 1)
    ]
    pods: list[Object] = []
    for obj in objects:
        with malformed(obj):
            pods.extend(_pods(obj))
    if not pods:
        raise InvalidValue("the manifest has no pod to plan")
    return Manifest(
        tuple(_distinct(pods)),
        tuple(each for each in objects if each["kind"] == _CLAIM),
        tuple(each for each in objects if each["kind"] == _TEMPLATE),
        tuple(each for each in objects if each["kind"] == _GROUP),
    )


def flat(documents: Iterable[Any]) -> Iterator[Object]:
    """The documents without empty ones, and the items of lists. Raises InvalidValue for what is no
    object, and for claims and templates of versions that write requests in another form."""
    for document in documents:
        if not document:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise InvalidValue("the manifest has a document that is no Kubernetes object")
        if isinstance(document.get("items"), list):
            yield from flat(document["items"])
            continue
        version = document.get("apiVersion")
        if document["kind"] in {_CLAIM, _TEMPLATE} and version in _OLD_FORMS:
            raise InvalidValue(
                f"{_words(document)} is of {version}, whose requests are not read",
                remedy="write it as resource.k8s.io/v1 has it",
            )
        yield document


def _with_quantities(value: Any) -> Any:
    """A copy with amounts of resources and capacities as text, which API servers store of numbers,
    too."""
    if isinstance(value, list):
        return [_with_quantities(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: _quantity(amount) for name, amount in each.items()}
        if key in _LISTS_OF_AMOUNTS and isinstance(each, dict)
        else _with_quantities(each)
        for key, each in value.items()
    }


def _quantity(amount: Any) -> Any:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return str(amount) if is_number else amount


def _named(obj: Object, namespace: str, number: int) -> Object:
    """With a name of its own, also where the API server would generate it."""
    with malformed(obj):
        given = obj.get("metadata") or {}
        name = f"{given.get('generateName') or 'unnamed-'}{number}"
        metadata = {"namespace": namespace, "name": name}
        metadata |= {key: value for key, value in given.items() if value}
        return obj | {"metadata": metadata, "spec": dict(obj.get("spec") or {})}


def _distinct(pods: Iterable[Object]) -> Iterator[Object]:
    """A Deployment and a Job of one name make pods of different names, and claims for each."""
    owners: dict[tuple[str, str], object] = {}
    for pod in pods:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        owner = pod["metadata"].get("ownerReferences")
        names = chain((name,), (f"{name}-{number}" for number in count(2)))
        chosen = next(it for it in names if owners.get((namespace, it), owner) == owner)
        owners[namespace, chosen] = owner
        named = {"name": chosen, "uid": f"planned {namespace}/{chosen}"}
        yield pod | {"metadata": pod["metadata"] | named}


@contextmanager
def malformed(obj: Object) -> Iterator[None]:
    """Reading what a user wrote fails in the ways of dict, list and int."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"is malformed: {error}"
        raise InvalidValue(f"{_words(obj)} {what}") from error


def _words(obj: Object) -> str:
    """Its kind and name."""
    metadata = obj.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{obj['kind']} {name or 'without a name'}"


def _pods(obj: Object) -> list[Object]:
    kind, spec, metadata = obj["kind"], obj["spec"], obj["metadata"]
    if kind == "Pod":
        return [_pod(obj, metadata["namespace"], metadata["name"])]
    if kind in _COUNTS:
        names = [f"{metadata['name']}-{i}" for i in range(_replicas(kind, spec))]
        # As the pods of one ReplicaSet, StatefulSet or Job, which spreading keeps apart.
        uid = f"planned {kind} {metadata['namespace']}/{metadata['name']}"
        owner = {"kind": kind, "name": metadata["name"], "uid": uid, "controller": True}
        return [_pod(spec["template"], metadata["namespace"], name, owner) for name in names]
    if _has_containers(spec):
        raise InvalidValue(
            f"how many pods {kind} {metadata['namespace']}/{metadata['name']} makes is not known",
            remedy="give a Pod of it, or a Deployment, StatefulSet, ReplicaSet or Job",
        )
    return []


def _replicas(kind: str, spec: Object) -> int:
    """How many pods run at the same time."""
    wanted = spec.get(_COUNTS[kind])
    replicas = 1 if wanted is None else int(wanted)
    if kind == "Job" and spec.get("completions") is not None:
        return min(replicas, int(spec["completions"]))
    return replicas


def _pod(template: Object, namespace: str, name: str, owner: Object | None = None) -> Object:
    made: Object = {"namespace": namespace, "name": name, "uid": f"planned {namespace}/{name}"}
    if owner is not None:
        made["ownerReferences"] = [owner]
    spec = template["spec"]
    if not isinstance(spec["containers"], list):
        raise TypeError("containers are no list")
    metadata = dict(template.get("metadata") or {}) | made
    return {"kind": "Pod", "metadata": metadata, "spec": dict(spec)}


def _has_containers(value: Any) -> bool:
    """Whether there is a pod's specification somewhere in the value."""
    if isinstance(value, dict):
        return "containers" in value or any(map(_has_containers, value.values()))
    return isinstance(value, list) and any(map(_has_containers, value))
