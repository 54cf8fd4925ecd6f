"""Draws a Grafana dashboard as a page of HTML: each panel at its place, of given samples.

Only what the chart's dashboards have: the panels `stat`, `bargauge`, `timeseries` and `table`, four
units, and the transformation `organize`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from tests.cluster.errors import ClusterError

Object = Mapping[str, Any]

WIDTH: Final = 1280
"""CSS pixels of the page."""

_GAP: Final = 8
_COLUMN: Final = (WIDTH - _GAP) / 24  # of Grafana's grid
_ROW: Final = 38
_HEAD: Final = 34  # the title of the page, and of a panel
_LEGEND_ROW: Final = 20
_LEFT: Final = 76  # for the labels of an axis
_MIB: Final = 2**20
_COLOURS: Final = (
    "#1f78c1", "#e0752d", "#3f9a4b", "#8f3bb8", "#c4162a", "#b08900",
    "#0f8c8c", "#d16ba5", "#5b6b7b", "#7a5230", "#6f9f1f", "#3d4fd1",
)  # fmt: skip
_STYLE: Final = """
body { margin: 0; background: #f4f5f5; font: 13px "DejaVu Sans", sans-serif; color: #24292e; }
h1 { position: absolute; margin: 0; left: 8px; top: 9px; font-size: 15px; }
section { position: absolute; background: #fff; border: 1px solid #dcdfe3; border-radius: 3px;
  box-sizing: border-box; overflow: hidden; }
h2 { margin: 0; padding: 8px 10px 0; height: 26px; box-sizing: border-box; font-size: 12px; }
.stat { text-align: center; font-size: 40px; padding-top: 62px; }
.bar { margin: 6px 10px; } .bar i { display: block; height: 18px; background: #8fb4dc; }
.bar b { float: right; }
.legend { padding: 0 10px; font-size: 11px; line-height: 20px; }
.legend span { margin-right: 14px; white-space: nowrap; }
.legend i { display: inline-block; width: 12px; height: 3px; margin: 0 5px 3px 0; }
table { border-collapse: collapse; width: calc(100% - 20px); margin: 4px 10px; font-size: 11px; }
th, td { text-align: left; padding: 3px 8px; border-bottom: 1px solid #e7e9ec; height: 17px;
  white-space: nowrap; }
th { color: #1f60c4; } text { font-size: 11px; fill: #5a6570; }
"""


class NoData(ClusterError):
    """A query of a panel found nothing to draw."""


@dataclass(frozen=True, slots=True)
class Series:
    """What a query found: labels, and (seconds since 1970, value) in order of time."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        """The last value that is a number; NaN where there is none."""
        return next(
            (value for _, value in reversed(self.points) if not math.isnan(value)), math.nan
        )


Found = Sequence[tuple[str, Series]]
"""The series of a panel, each with its name in the legend."""


def height(dashboard: Object) -> int:
    """CSS pixels of the whole page."""
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    rows: int = max(place["y"] + place["h"] for place in places)
    return _HEAD + rows * _ROW + _GAP


def page(dashboard: Object, read: Callable[[Object], Sequence[Series]]) -> str:
    """The dashboard as HTML. `read` gives what a target of a panel finds.

    Raises NoData with the panel and the query, where one finds no number.
    """
    parts = [_panel(dashboard["title"], panel, read) for panel in dashboard["panels"]]
    title = f"<h1>{escape(dashboard['title'])}</h1>"
    return f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style>{title}{''.join(parts)}"


def _panel(of: str, panel: Object, read: Callable[[Object], Sequence[Series]]) -> str:
    found: list[tuple[str, Series]] = []
    for target in panel["targets"]:
        series = [each for each in read(target) if not math.isnan(each.last)]
        if not series:
            raise NoData(f"{of}: {panel['title']}: no data of {target['expr']}")
        found += [(_name(target["legendFormat"], each.labels), each) for each in series]
    place = panel["gridPos"]
    x, y = _GAP + place["x"] * _COLUMN, _HEAD + place["y"] * _ROW
    wide, high = place["w"] * _COLUMN - _GAP, place["h"] * _ROW - _GAP
    unit = panel["fieldConfig"]["defaults"].get("unit", "short")
    match panel["type"]:
        case "stat":
            body = f"<div class=stat>{text(found[0][1].last, unit)}</div>"
        case "bargauge":
            body = "".join(_bars(found, unit))
        case "table":
            body = _table(panel, [series for _, series in found])
        case _:
            body = _chart(found, unit, wide, high - 30)
    at = f"left:{x:.0f}px;top:{y:.0f}px;width:{wide:.0f}px;height:{high:.0f}px"
    return f'<section style="{at}"><h2>{escape(panel["title"])}</h2>{body}</section>\n'


def _name(template: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), template).strip()


def text(value: float, unit: str) -> str:
    """The value as Grafana prints it in the unit `short`, `s`, `ops` or `bytes`."""
    if unit == "bytes":
        return f"{value / _MIB:.3g} MiB"
    if unit == "ops":
        return f"{value:.3g} ops/s"
    if unit == "short":
        return f"{value:.4g}"
    for factor, name in ((60, "min"), (1, "s"), (0.001, "ms")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value / 0.001:.2g} ms" if value else "0 s"


def _bars(found: Found, unit: str) -> Iterator[str]:
    most = max(series.last for _, series in found) or 1
    for name, series in found:
        bar = f'<i style="width:{100 * series.last / most:.0f}%"></i>'
        yield f"<div class=bar>{escape(name)}<b>{text(series.last, unit)}</b>{bar}</div>"


def _table(panel: Object, found: Sequence[Series]) -> str:
    rows = [{**each.labels, "Value": text(each.last, "short")} for each in found]
    options: dict[str, Any] = {}
    for each in panel.get("transformations", ()):
        options |= each["options"]
    hidden, order = options.get("excludeByName", {}), options.get("indexByName", {})
    names = sorted({name for row in rows for name in row if not hidden.get(name)})
    names.sort(key=lambda name: order.get(name, len(order)))
    renamed = options.get("renameByName", {})
    head = "".join(f"<th>{escape(renamed.get(name, name))}</th>" for name in names)
    lines = (
        "".join(f"<td>{escape(row.get(name, ''))}</td>" for name in names)
        for row in sorted(rows, key=lambda row: [row.get(name, "") for name in names])
    )
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def ticks(most: float) -> list[float]:
    """Round values from 0 to the first that is not below `most`: three to six."""
    if most <= 0:
        return [0.0, 0.5, 1.0]
    power = 10 ** math.floor(math.log10(most))
    step = next(part * power for part in (0.2, 0.25, 0.5, 1, 2) if most <= 5 * part * power)
    return [number * step for number in range(math.ceil(most / step) + 1)]


def _chart(found: Found, unit: str, wide: float, high: float) -> str:
    letters = sum(len(name) + 5 for name, _ in found)
    rows = math.ceil(letters * 7 / (wide - 20))
    bottom = high - rows * _LEGEND_ROW - 24
    begin = min(series.points[0][0] for _, series in found)
    end = max(series.points[-1][0] for _, series in found)
    values = [value for _, series in found for _, value in series.points if not math.isnan(value)]
    scale = _MIB if unit == "bytes" else 1
    marks = [mark * scale for mark in ticks(max(values) / scale)]

    def x(at: float) -> float:
        return _LEFT + (at - begin) / ((end - begin) or 1) * (wide - _LEFT - 16)

    def y(value: float) -> float:
        return bottom - value / marks[-1] * (bottom - 12)

    drawn = [
        f'<path d="M{_LEFT} {y(mark):.1f}H{wide - 16:.0f}" stroke="#e4e7ea"/>'
        f'<text x="{_LEFT - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{text(mark, unit)}</text>'
        for mark in marks
    ]
    drawn += [
        f'<text x="{x(at):.1f}" y="{bottom + 18:.1f}" text-anchor="middle">'
        f"{datetime.fromtimestamp(at, UTC):%H:%M}</text>"
        for at in range(math.ceil(begin / 60) * 60, int(end) + 1, 60)
        if _LEFT + 16 < x(at) < wide - 30
    ]
    legend = []
    for number, (name, series) in enumerate(found):
        colour = _COLOURS[number % len(_COLOURS)]
        path = _path(series, x, y)
        drawn.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        legend.append(f'<span><i style="background:{colour}"></i>{escape(name)}</span>')
    size = f'width="{wide:.0f}" height="{bottom + 24:.0f}"'
    return f"<svg {size}>{''.join(drawn)}</svg><div class=legend>{' '.join(legend)}</div>"


def _path(series: Series, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    """A line through the points, with a gap where there is no number."""
    parts, pen = [], "M"
    for at, value in series.points:
        if math.isnan(value):
            pen = "M"
        else:
            parts.append(f"{pen}{x(at):.1f} {y(value):.1f}")
            pen = "L"
    return "".join(parts)
