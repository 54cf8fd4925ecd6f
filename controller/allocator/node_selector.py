"""Node selectors (core/v1 NodeSelector): which nodes one allows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Node = Mapping[str, Any]


def selector_matches(selector: Mapping[str, Any], node: Node) -> bool:
    """Whether a NodeSelector (core/v1) allows the node: any of its terms, all of a term."""
    return any(_term_matches(term, node) for term in selector.get("nodeSelectorTerms") or ())


def selected_name(selector: Mapping[str, Any] | None) -> str | None:
    """The one node that a selector as allocators write it names; None for any other selector."""
    match (selector or {}).get("nodeSelectorTerms"):
        case [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]:
            return str(name)
    return None


def requirement_holds(requirement: Mapping[str, Any], found: str | None) -> bool:
    """Whether a NodeSelectorRequirement (core/v1) allows this value of what it names; None where
    the node has none."""
    given = requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return found in given
        case "NotIn":
            return found not in given
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" as operator:
            return _ordered(operator, found, given)
    return False


def name_of(node: Node) -> str:
    return str(node["metadata"]["name"])


def labels_of(node: Node) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _term_matches(term: Mapping[str, Any], node: Node) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:  # an empty term matches nothing, core/v1 NodeSelectorTerm
        return False
    by_field = {"metadata.name": name_of(node)}
    return all(
        requirement_holds(each, labels_of(node).get(each["key"])) for each in expressions
    ) and all(requirement_holds(each, by_field.get(each["key"])) for each in fields)


def _ordered(operator: str, found: str | None, given: Iterable[str]) -> bool:
    try:
        left, right = int(found or ""), int(next(iter(given)))
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right
