"""Which device taints keep which requests away (resource.k8s.io/v1, DeviceTaint and
DeviceToleration)."""

from __future__ import annotations

import pytest

from controller.allocator.taints import Taint, untolerated
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import TAINT, claim, device, pool, request
from tests.unit.controller.allocator.decide import decide

OURS = Taint(TAINT["key"], TAINT["value"], TAINT["effect"])
THEIRS = Taint(TAINT["key"], "somebody-else", "NoSchedule")
BROKEN = Taint("example.com/broken", "fan", "NoSchedule")
EVICTING = Taint("example.com/broken", "fan", "NoExecute")
TOLD = Taint("example.com/broken", "fan", "None")
KEY: Object = {"key": "example.com/broken", "operator": "Exists"}

CASES: dict[str, tuple[Taint, list[Object], bool]] = {
    "no taint of others is tolerated unasked": (BROKEN, [], False),
    "NoExecute keeps away as well": (EVICTING, [], False),
    "what only informs keeps nobody away": (TOLD, [], True),
    "our own, which says who allocates": (OURS, [], True),
    "another allocator's": (THEIRS, [], False),
    "by key": (BROKEN, [KEY], True),
    "another key": (BROKEN, [KEY | {"key": "example.com/other"}], False),
    "by key and value": (BROKEN, [KEY | {"operator": "Equal", "value": "fan"}], True),
    "another value": (BROKEN, [KEY | {"operator": "Equal", "value": "psu"}], False),
    "Equal is what is meant without an operator": (BROKEN, [{"key": KEY["key"]}], False),
    "an unknown operator": (BROKEN, [KEY | {"operator": "Like"}], False),
    "every key": (BROKEN, [{"operator": "Exists"}], True),
    "the effect": (BROKEN, [KEY | {"effect": "NoSchedule"}], True),
    "another effect": (EVICTING, [KEY | {"effect": "NoSchedule"}], False),
    "for a time": (EVICTING, [KEY | {"effect": "NoExecute", "tolerationSeconds": 60}], True),
    "the second of two": (BROKEN, [KEY | {"key": "x"}, KEY], True),
}


@pytest.mark.parametrize(("taint", "tolerations", "allowed"), CASES.values(), ids=CASES)
def test_tolerated(taint: Taint, tolerations: list[Object], allowed: bool) -> None:
    assert untolerated([OURS, taint], tolerations) == (() if allowed else (taint,))
    given = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    wanted = claim("c", [request(tolerations=tolerations)])
    found = decide(pool("a", [device("whole", 0, taints=[given])]), [], wanted)
    assert isinstance(found, tuple) == allowed
