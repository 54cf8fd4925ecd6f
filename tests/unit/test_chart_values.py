"""The table of the chart's README, from a text of values."""

from __future__ import annotations

from tests.chart_values import table

TEXT = """\
# A group,
# in two lines.
group:
  # A list: a | b.
  #   - {one: entry}
  # Empty: nobody.
  list: []

  bare: 1
  resources:
    limits: {memory: 1Gi}
# Another one.

other:
  flow: {a: "<x>"}
"""


def test_groups_comments_and_defaults() -> None:
    head, line, *rows = table(TEXT).splitlines()
    assert (head, line) == ("| value | default | meaning |", "|---|---|---|")
    assert rows == [
        "| `group` |  | A group, in two lines. |",
        "| `group.list` | `[]` | A list: a \\| b. `- {one: entry}` Empty: nobody. |",
        "| `group.bare` | `1` |  |",
        '| `group.resources` | `{"limits": {"memory": "1Gi"}}` |  |',
        '| `other.flow` | `{"a": "<x>"}` |  |',
    ]
