"""What is drawn of a dashboard's panel and the samples that its queries find."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tests.browser.panels import NoData, Series, page, text, ticks

NAN = math.nan


def dashboard(kind: str, unit: str = "short", legend: str = "", **fields: Any) -> dict[str, Any]:
    """A dashboard of one panel."""
    panel = {
        "title": "Cards & claims",
        "type": kind,
        "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit}},
        "targets": [{"expr": "up", "legendFormat": legend}],
        **fields,
    }
    return {"title": "GCU: test", "panels": [panel]}


def drawn(wanted: dict[str, Any], *found: Series) -> str:
    return page(wanted, lambda _target: found)


def series(*values: float, **labels: str) -> Series:
    """A value each minute."""
    return Series(labels, [(60.0 * number, value) for number, value in enumerate(values)])


def test_a_stat_is_the_last_number() -> None:
    assert "<div class=stat>3 ms</div>" in drawn(dashboard("stat", "s"), series(1, 0.003, NAN))


def test_a_bar_gauge_has_a_bar_for_each_series_by_the_largest() -> None:
    html = drawn(
        dashboard("bargauge", legend="{{mode}}"), series(4, mode="drs"), series(2, mode="whole")
    )
    assert re.findall(r"bar>(\w+)<b>(\d)</b><i style=\"width:(\d+)%", html) == [
        ("drs", "4", "100"),
        ("whole", "2", "50"),
    ]


def test_a_line_has_a_gap_where_there_is_no_number() -> None:
    html = drawn(dashboard("timeseries", legend="{{a}} {{b}}"), series(1, 2, NAN, 1, a="x", b="<"))
    [path] = re.findall(r'<path d="([^"]*)" fill="none"', html)
    assert re.sub(r"[\d. ]+", "", path) == "MLM"
    assert "</i>x &lt;</span>" in html
    assert "Cards &amp; claims" in html


def test_a_table_has_the_columns_that_the_panel_chooses() -> None:
    options = {
        "excludeByName": {"__name__": True, "job": True},
        "indexByName": {"pod": 0, "Value": 1},
        "renameByName": {"Value": "amount"},
    }
    html = drawn(
        dashboard("table", transformations=[{"id": "organize", "options": options}]),
        series(1, __name__="up", job="gcu", pod="b", card="y"),
        series(2, __name__="up", job="gcu", pod="a"),
    )
    assert re.findall(r"<th>(.*?)</th>", html) == ["pod", "amount", "card"]
    assert re.findall(r"<td>(.*?)</td>", html) == ["a", "2", "", "b", "1", "y"]


@pytest.mark.parametrize("found", [(), (series(NAN, NAN),)])
def test_a_query_without_data_is_named(found: tuple[Series, ...]) -> None:
    with pytest.raises(NoData, match="GCU: test: Cards & claims: no data of up"):
        drawn(dashboard("timeseries"), *found)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (12, "short", "12"),
        (0, "s", "0 s"),
        (0.0005, "s", "0.5 ms"),
        (0.25, "s", "250 ms"),
        (2.5, "s", "2.5 s"),
        (90, "s", "1.5 min"),
        (0.125, "ops", "0.125 ops/s"),
        (64 * 2**20, "bytes", "64 MiB"),
    ],
)
def test_values_have_their_unit(value: float, unit: str, expected: str) -> None:
    assert text(value, unit) == expected


@pytest.mark.parametrize(
    ("most", "expected"),
    [(0, [0, 0.5, 1]), (3, [0, 1, 2, 3]), (8, [0, 2, 4, 6, 8]), (1, [0, 0.2, 0.4, 0.6, 0.8, 1])],
)
def test_marks_of_an_axis_are_round(most: float, expected: list[float]) -> None:
    assert ticks(most) == pytest.approx(expected)
