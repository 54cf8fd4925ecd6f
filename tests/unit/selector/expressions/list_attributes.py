"""Attributes that have several values: alpha in 1.36, behind the gate DRAListTypeAttributes."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.selector.expressions.theme import Theme

LIST_DEVICE: Final[dict[str, Any]] = {
    "name": "whole-0000-0d-00-0",
    "attributes": {
        "lanes": {"ints": [4, 8]},
        "tags": {"strings": ["x", "y"]},
        "flags": {"bools": [True]},
        "versions": {"versions": ["1.0.0", "2.0.0"]},
        "speed": {"int": 16},
    },
}
LIST_ATTRIBUTES: Final = Theme(
    matches=(
        "GCU.lanes.includes(8) && !GCU.lanes.includes(16)",
        "GCU.speed.includes(16) && !GCU.speed.includes(8)",
        'GCU.tags.includes("x") && GCU.flags.includes(true)',
        'GCU.versions.includes(semver("1.0.0"))',
        "GCU.lanes.all(lane, lane > 3) && 8 in GCU.lanes && GCU.lanes[0] == 4",
        "size(GCU.lanes) == 2 && GCU.lanes.sum() == 12 && GCU.lanes.max() == 8",
        "GCU.lanes == [4, 8] && GCU.flags[0] && GCU.tags.isSorted()",
        'GCU.tags.indexOf("y") == 1 && GCU.tags.exists_one(tag, tag == "x")',
        "GCU.versions.exists(version, version.major() == 2)",
        "GCU.flags.reverse()[0]",
        "dyn(optional.of(GCU.flags[0]))",
        "GCU.flags.first().value() && GCU.flags[?0].orValue(false)",
        "GCU.?lanes.hasValue() && !GCU.?nothing.hasValue() && GCU.?lanes[0].value() == 4",
        "GCU.?lanes[1] == optional.of(8) && !GCU.?lanes[2].hasValue()",
        "7.includes(7) && !7.includes(8) && [7.includes(7), 3 .includes(3)] == [true, true]",
        "-7.includes(-7) && - 7.includes(-7) && --7.includes(7) && - -7.includes(7)",
        "7u.includes(7u) && 7.5.includes(7.5) && .5.includes(.5) && -0x7.includes(-7)",
        "-9223372036854775808.includes(-9223372036854775808) && 1e-5.includes(1e-5)",
        "cel.bind(_, 3, _.includes(3) && 7.includes(7)) && true.includes(true)",
    ),
    differs=(
        'GCU.versions.includes("1.0.0")',
        "GCU.lanes.exists(lane, lane > 8)",
        'GCU.lanes.includes("8")',
    ),
    fails=(
        "GCU.lanes[2] == 1",
        "GCU.lanes > 4",
        "GCU.speed.exists(lane, lane > 8)",
        "GCU.nothing.includes(1)",
        "GCU.lanes",
        "GCU.lanes.reverse()[0]",
        "GCU.tags.reverse()",
        "-7u.includes(7u)",
        "7.x == 1",
        "7. == 7.0",
        "GCU.7.includes(7)",
        "9223372036854775808.includes(1)",
    ),
)
