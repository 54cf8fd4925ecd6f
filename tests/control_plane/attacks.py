"""Claims of one tenant, as costly to decide about as the API allows."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import NamedTuple

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_WHOLE

Requests = list[Object]

_LETTERS = f"[{','.join(repr(each) for each in string.ascii_letters + string.digits)}]"
_FORTY = f"[{','.join(['1'] * 40)}]"


def literal_patterns(number: int) -> Requests:
    """250 in one selector; each took RE2 150 ms and 4 MiB."""
    texts = (rf"'x'.matches(r'\pL{{400}}{number:02}{n:03}')" for n in range(250))
    return [request("gcu", "||".join(texts))]


def built_patterns(number: int) -> Requests:
    """3,844 of them, in 543 bytes."""
    built = rf"!'x'.matches('\\pL{{400}}{number:02}'+a+b)"
    return [request("gcu", f"{_LETTERS}.all(a,{_LETTERS}.all(b,{built}))")]


def many_selectors(number: int) -> Requests:
    """1,024, each with three loops."""
    loops = f"{_FORTY}.all(a,{_FORTY}.all(b,{_FORTY}.all(c,a==b)))"
    return [
        request(f"r{r}", *(f"{number}{r:02}{n:02}>0&&{loops}" for n in range(32)))
        for r in range(32)
    ]


def many_alternatives(number: int) -> Requests:
    """32 requests of 8 alternatives each."""
    del number
    return [
        {
            "name": f"r{r}",
            "firstAvailable": [
                {"name": f"s{n}", "deviceClassName": CLASS_WHOLE, "count": 1} for n in range(8)
            ],
        }
        for r in range(32)
    ]


def request(name: str, *selectors: str) -> Object:
    found = [{"cel": {"expression": each}} for each in selectors]
    return {"name": name, "exactly": {"deviceClassName": CLASS_WHOLE, "selectors": found}}


class Attack(NamedTuple):
    """So many pods, which have so many claims between them, on so many nodes."""

    requests: Callable[[int], Requests]
    claims: int
    pods: int
    nodes: int


ATTACKS = {
    "literal patterns": Attack(literal_patterns, claims=50, pods=50, nodes=4),
    "built patterns": Attack(built_patterns, claims=50, pods=50, nodes=4),
    "many selectors": Attack(many_selectors, claims=2, pods=50, nodes=4),
    "many alternatives": Attack(many_alternatives, claims=60, pods=60, nodes=100),
}
