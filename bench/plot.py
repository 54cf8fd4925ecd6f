"""Bars as SVG, without a library."""

from __future__ import annotations

from collections.abc import Mapping

_WIDTH, _BAR, _GAP, _LEFT = 640, 16, 28, 210
_LEAST = 0.9  # where the bars begin: all that is of interest lies above


def bars(groups: Mapping[str, Mapping[str, float]]) -> str:
    """A group of bars for each key, labelled with their values."""
    lines: list[str] = []
    y = 24
    for title, values in groups.items():
        lines.append(_text(8, y, title.replace("_", " "), weight="bold"))
        y += 8
        for name, value in values.items():
            length = max(0.0, value - _LEAST) / (1.02 - _LEAST) * (_WIDTH - _LEFT - 70)
            color = "#2b6cb0" if name == "ours" else "#a0aec0"
            lines.append(
                f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR - 3}" '
                f'fill="{color}"/>'
            )
            lines.append(_text(24, y + 11, name.replace("_", " ")))
            lines.append(_text(_LEFT + length + 6, y + 11, f"{value:.4f}"))
            y += _BAR
        y += _GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y}">'
    note = _text(8, y - 10, f"bars begin at {_LEAST}", weight="normal")
    background = f'<rect width="{_WIDTH}" height="{y}" fill="white"/>'
    return "\n".join([head, background, *lines, note, "</svg>", ""])


def _text(x: float, y: float, text: str, *, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-family="sans-serif" font-size="12" '
        f'font-weight="{weight}">{text}</text>'
    )
