"""Label and field selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from dra_driver.model.claims.claim import Object
from tests.fake_api.errors import Unplayed

Selects = Callable[[Object], bool]

FIELDS: Final = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "reason",
        "spec.driver",
        "spec.nodeName",
        "spec.schedulerName",
    }
)
"""Those by which our code selects; a real server knows some of them for each kind."""

_TERM: Final = re.compile(r"(!?)([\w./-]+)(?:(!=|==?)([\w./-]*))?")


def selects(label_selector: str, field_selector: str) -> Selects:
    """Whether an object is of the list. Raises Unplayed."""
    by_label = [_by_label(each) for each in _terms(label_selector)]
    by_field = [_by_field(each) for each in _terms(field_selector)]
    return lambda obj: all(each(obj) for each in (*by_label, *by_field))


def _terms(selector: str) -> list[re.Match[str]]:
    found = [_TERM.fullmatch(each) for each in selector.split(",") if each]
    if any(each is None for each in found):
        raise Unplayed(f"the selector {selector!r}")
    return [each for each in found if each is not None]


def _by_label(term: re.Match[str]) -> Selects:
    absent, key, operator, value = term.groups()
    if operator is None:
        return lambda obj: (key in _labels(obj)) is not bool(absent)
    return lambda obj: (_labels(obj).get(key) == value) is (operator != "!=")


def _by_field(term: re.Match[str]) -> Selects:
    absent, path, operator, value = term.groups()
    if absent or operator is None or path not in FIELDS:
        raise Unplayed(f"the field selector {term[0]!r}")
    return lambda obj: (_field(obj, path) == value) is (operator != "!=")


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _field(obj: Object, path: str) -> str:
    """Empty where there is none, as the server has it."""
    found: Any = obj
    for each in path.split("."):
        found = (found or {}).get(each)
    return str(found or "")
