"""docs/user/why-is-my-claim-pending.md explains what the controller says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from controller.allocator.diagnosis import MODE_WORDS, TAINT_WORDS
from controller.allocator.nodes.signature import Feasibility
from tests.unit.controller.allocator.test_counters import CASES as COUNTERS
from tests.unit.controller.allocator.test_reasons import REASONS
from tests.unit.controller.allocator.test_request_forms import CASES as FORMS

CHECKOUT: Final = Path(__file__).parents[4]
PAGE: Final = CHECKOUT / "docs" / "user" / "why-is-my-claim-pending.md"
TOLD = "\n".join(str(case[-1]) for cases in (REASONS, FORMS, COUNTERS) for case in cases.values())
PHRASES = (
    " held",
    "held as a whole",
    "in shared mode",
    "in DRS mode",
    "with fewer than",
    "without a free slice",
    "of size free",
    "too small",
    ", no card has more than",
    "which no card has",
    "a card that is too small has",
    "with counters, which only kube-scheduler allocates",
    "unhealthy",
    "still held by a deleted claim",
    "tainted",
    "none selected by DeviceClass",
    "the profiles of cards are",
    "these cards are offered as",
    "on one node)",
    "with the same",
    "but not all requests fit together",
    "but not together",
    "all requested",
    "all requested, and a claim can hold 32",
    "no ResourceSlice of gcu.enflame.com is published",
    "nodes that fit the pod publishes a device",
    "is incomplete",
    "is invalid",
    "cannot be evaluated",
)


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_is_said_and_explained(phrase: str) -> None:
    assert phrase in TOLD
    assert phrase in PAGE.read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    """What each row of the page's tables quotes, in the parts between what is filled in. A part
    has two words at least."""
    cells = re.findall(r"^\| ([^|]*`[^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    quoted = [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    split = [re.split(r"…|\b[A-Z]\b|\d+", text) for text in quoted]
    parts = [[part.strip(" ,;:") for part in each] for each in split]
    return [found for each in parts if (found := [part for part in each if " " in part])]


def literal(node: ast.expr) -> str:
    """A text of the source, with … for what is filled in; empty for any other expression."""
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(value) or "…" for value in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else ""


def refusals() -> Iterator[str]:
    """What the allocator refuses a claim with, and the remedy."""
    allocator = CHECKOUT / "controller" / "allocator"
    for path in (*allocator.rglob("*.py"), CHECKOUT / "controller" / "filter" / "usage.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Refused":
                words = [node.args[0], *(keyword.value for keyword in node.keywords)]
                if literal(words[0]):
                    yield "; ".join(map(literal, words))


def test_each_refusal_has_a_row() -> None:
    found = list(refusals())
    assert len(found) > 10
    known = rows()
    assert [
        text for text in found if not any(all(part in text for part in row) for row in known)
    ] == []


def test_each_word_about_a_card_has_a_row() -> None:
    combined = {Feasibility.FULL, Feasibility.EXCLUDED, Feasibility.TAINTED}  # with further words
    words = {*map(str, set(Feasibility) - combined), *MODE_WORDS.values(), *TAINT_WORDS.values()}
    text = PAGE.read_text(encoding="utf-8")
    assert [word for word in sorted(words) if f"`N {word}" not in text] == []
