"""The table of `make bench-cluster`."""

from __future__ import annotations

import pytest

from bench.figures import Figures, Measure


def test_a_scenario_in_each_column_and_rows_of_one_kind_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = Figures()
    for nodes in (100, 1000):
        for what in ("pods/s", "writes"):
            figures.add(Measure(what, nodes, 0.9, "whole"), "ours", nodes + 0.123)
    figures.add(Measure("writes", 100, 0.9, "whole"), "other", 5.678)
    figures.add(Measure("writes", 100, 0.9, "whole"), "silent", None)
    figures.print_table("title", ["ours", "other", "silent"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[3:] == [
        ["pods/s", "100", "90%", "whole", "100"],
        ["pods/s", "1000", "90%", "whole", "1,000"],
        ["writes", "100", "90%", "whole", "100", "5.68"],
        ["writes", "1000", "90%", "whole", "1,000"],
    ]
