"""Names of what is reconciled."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from dra_driver.model.claims.claim import Object


class Subject(StrEnum):
    POD = "pod"
    CLAIM = "claim"
    TEMPLATE = "template"


class Key(NamedTuple):
    """A pod, a claim or a claim template by name; the object is read when the key is reconciled.
    A tuple, because keys are hashed and compared in every step."""

    subject: Subject
    namespace: str
    name: str

    @classmethod
    def of_claim(cls, claim: Object) -> Key:
        return cls(Subject.CLAIM, claim["metadata"]["namespace"], claim["metadata"]["name"])

    @classmethod
    def of_template(cls, template: Object) -> Key:
        metadata = template["metadata"]
        return cls(Subject.TEMPLATE, metadata["namespace"], metadata["name"])

    def __str__(self) -> str:
        return f"{self.subject} {self.namespace}/{self.name}"


def full_name(obj: Mapping[str, Any]) -> str:
    """``namespace/name`` of an object, as client-go names what it caches, or its name."""
    namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else str(name)


def uid_of(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["uid"])
