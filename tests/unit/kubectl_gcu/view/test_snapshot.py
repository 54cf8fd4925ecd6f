"""What is sent after the first time."""

from __future__ import annotations

from kubectl_gcu.view.snapshot import PageSnapshot, changes

A, B = {"name": "a"}, {"name": "b"}


def test_only_what_differs_is_sent() -> None:
    before = PageSnapshot({"claims/a": A, "claims/b": B}, {"totals": {"cards": 2}, "lost": ""})
    after = PageSnapshot(
        {"claims/b": B, "claims/c": {"name": "c"}}, {"totals": {"cards": 2}, "lost": "no answer"}
    )
    assert changes(before, after) == {
        "nodes": [{"name": "c"}],
        "gone": ["claims/a"],
        "lost": "no answer",
    }
    assert changes(after, after) == {}
    assert after.data() == {
        "nodes": [B, {"name": "c"}],
        "totals": {"cards": 2},
        "lost": "no answer",
    }
