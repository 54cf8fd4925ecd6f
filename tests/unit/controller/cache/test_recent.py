"""Which results are remembered."""

from __future__ import annotations

from controller.cache.recent import Recent


def test_those_that_were_asked_for_last_are_remembered() -> None:
    found: list[str] = []

    def find(key: str) -> int:
        def result() -> int:
            found.append(key)
            return 0  # a result, too

        return recent.of(key, result)

    recent = Recent[str, int](2)
    assert [find(key) for key in "abacb"] == [0] * 5
    assert found == ["a", "b", "c", "b"]
    assert list(recent) == ["c", "b"]
