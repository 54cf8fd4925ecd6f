"""Expressions made by a grammar of all forms in which a device may be read."""

from __future__ import annotations

import re
from typing import Final

from hypothesis import strategies as st

_DEEPEST: Final = 4  # forms in forms
_SYMBOL: Final = re.compile(r"\b[A-Z_]{2,}\b")
_BOUND: Final = (
    'cel.bind(a, device.attributes, cel.bind(c, device.?capacity, cel.bind(g, a["gcu.enflame.com"],'
    ' cel.bind(o, a[?"example.com"], cel.bind(v, g.x, cel.bind(w, g.?y, cel.bind(k, "x", {})))))))'
)
"""Each kind of value has a variable, which the forms bind anew."""
_FORMS: Final = {
    "BOOL": (
        "w.hasValue()",
        "has(g.x)",
        "has(DOMAIN.x)",
        "has(DOMAINS.x)",
        "has(MAYBE_DOMAIN.y)",
        "has(MAYBE_DOMAINS.x)",
        "MAYBE.hasValue()",
        "(VALUE == VALUE)",
        "(DOMAIN == DOMAIN)",
        "(MAYBE_VALUE != MAYBE_VALUE)",
        "(KEY in DOMAIN)",
        '("example.com" in DOMAINS)',
        "(size(DOMAIN) > 1)",
        "(DOMAINS.size() == 1)",
        "!BOOL",
        "(BOOL && BOOL)",
        "(BOOL || BOOL)",
        "(BOOL ? BOOL : BOOL)",
        "MAYBE.optMap(z, true).orValue(false)",
        "MAYBE.optFlatMap(z, optional.of(false)).orValue(true)",
        "MAYBE_DOMAINS.optMap(a, BOOL).orValue(BOOL)",
        "MAYBE_DOMAIN.optMap(g, BOOL).orValue(BOOL)",
        "MAYBE_VALUE.optMap(v, BOOL).orValue(BOOL)",
        "MAYBE_DOMAIN.optFlatMap(g, optional.of(BOOL)).orValue(BOOL)",
        "MAYBE_VALUE.optFlatMap(v, optional.of(BOOL)).orValue(BOOL)",
        "MAYBE_VALUE.optMap(device, BOOL).hasValue()",
        "cel.bind(a, DOMAINS, BOOL)",
        "cel.bind(c, MAYBE_DOMAINS, BOOL)",
        "cel.bind(g, DOMAIN, BOOL)",
        "cel.bind(o, MAYBE_DOMAIN, BOOL)",
        "cel.bind(v, VALUE, BOOL)",
        "cel.bind(w, MAYBE_VALUE, BOOL)",
        "cel.bind(device, DOMAIN, BOOL)",
        "DOMAIN.all(k, BOOL)",
        "DOMAIN.exists(k, BOOL)",
        "DOMAINS.exists_one(k, BOOL)",
        "[DOMAIN, DOMAIN].exists(g, BOOL)",
        "[MAYBE_DOMAIN].all(o, BOOL)",
        "[MAYBE_VALUE, MAYBE_VALUE].exists_one(w, BOOL)",
        "([DOMAIN].filter(g, BOOL).size() == 1)",
        "([VALUE].map(v, BOOL, v).size() == 1)",
        "[MAYBE_VALUE].map(w, BOOL)[0]",
        "(DOMAIN.map(k, BOOL, k).size() == 1)",
        "(DOMAIN.map(k, DOMAIN[k]).size() == 1)",
        "([?MAYBE_VALUE].size() == 1)",
        '({?"a": MAYBE_VALUE, "b": VALUE}.size() == 1)',
        '{"a": BOOL}.a',
        "[MAYBE_DOMAIN].unwrapOpt().exists(g, BOOL)",
    ),
    "VALUE": (
        "v",
        "dyn(1)",
        "g[k]",
        "DOMAIN.x",
        'DOMAIN["y"]',
        "DOMAIN[KEY]",
        "MAYBE_VALUE.value()",
        "MAYBE_VALUE.orValue(VALUE)",
        "(BOOL ? VALUE : VALUE)",
        "dyn(BOOL)",
        "cel.bind(g, DOMAIN, VALUE)",
        "[VALUE][0]",
    ),
    "DOMAIN": (
        "g",
        'device.attributes["gcu.enflame.com"]',
        'device.capacity["gcu.enflame.com"]',
        'DOMAINS["gcu.enflame.com"]',
        'DOMAINS["example.com"]',
        "DOMAINS.x",
        "MAYBE_DOMAIN.value()",
        "MAYBE_DOMAIN.orValue(DOMAIN)",
        "(BOOL ? DOMAIN : DOMAIN)",
        "cel.bind(a, DOMAINS, DOMAIN)",
        '{"a": DOMAIN}.a',
    ),
    "DOMAINS": (
        "a",
        "device.attributes",
        "device.capacity",
        "MAYBE_DOMAINS.value()",
        "(BOOL ? DOMAINS : DOMAINS)",
        "[DOMAINS][0]",
    ),
    "MAYBE_VALUE": (
        "w",
        "g.?x",
        "DOMAIN.?x",
        'DOMAIN[?"y"]',
        "DOMAIN[?KEY]",
        "MAYBE_DOMAIN.x",
        "MAYBE_DOMAIN.?y",
        'MAYBE_DOMAIN["x"]',
        "optional.of(VALUE)",
        "optional.ofNonZeroValue(VALUE)",
        "optional.none()",
        "MAYBE_VALUE.or(MAYBE_VALUE)",
        "MAYBE.optMap(z, VALUE)",
        "MAYBE_DOMAIN.optMap(g, VALUE)",
        "MAYBE_DOMAIN.optFlatMap(g, MAYBE_VALUE)",
        "(BOOL ? MAYBE_VALUE : MAYBE_VALUE)",
        "[VALUE, VALUE].last()",
        "[?MAYBE_VALUE].first()",
    ),
    "MAYBE_DOMAIN": (
        "o",
        'device.attributes[?"gcu.enflame.com"]',
        'DOMAINS[?"gcu.enflame.com"]',
        "DOMAINS.?x",
        'MAYBE_DOMAINS["gcu.enflame.com"]',
        'MAYBE_DOMAINS[?"example.com"]',
        "optional.of(DOMAIN)",
        "optional.ofNonZeroValue(DOMAIN)",
        "MAYBE_DOMAIN.or(MAYBE_DOMAIN)",
        "MAYBE_VALUE.optMap(v, DOMAIN)",
        "MAYBE_DOMAINS.optMap(a, DOMAIN)",
        "(BOOL ? MAYBE_DOMAIN : MAYBE_DOMAIN)",
    ),
    "MAYBE_DOMAINS": (
        "c",
        "device.?attributes",
        "device.?capacity",
        "optional.of(DOMAINS)",
        "(BOOL ? MAYBE_DOMAINS : MAYBE_DOMAINS)",
    ),
    "MAYBE": ("w", "MAYBE_VALUE", "MAYBE_DOMAIN", "MAYBE_DOMAINS"),
    "KEY": ("k", '"x"', '"y"', '["x", "y"][0]'),
}
"""The first form of each symbol has no symbol in it."""


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """A bool of a device with the attributes and capacities `x` and `y`, in two domains."""

    def grown(symbol: str, depth: int) -> str:
        forms = _FORMS[symbol]
        form = draw(st.sampled_from(forms)) if depth < _DEEPEST else forms[0]
        return _SYMBOL.sub(lambda found: grown(found[0], depth + 1), form)

    return _BOUND.format(grown("BOOL", 0))
