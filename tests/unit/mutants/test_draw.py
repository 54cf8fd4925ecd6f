"""Which mutants a seed gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.mutants.draw import PROGRAMS, draw, sources
from tests.mutants.edits import Kind

CHECKOUT = Path(__file__).parents[3]
TEXTS = {
    f"{folder}/{name}.py": "".join(
        f"def f{n}(x):\n    if x < {n} and not x:\n        return {name!r}\n" for n in range(5)
    )
    for folder in ("a", "a/b", "c")
    for name in ("one", "two")
}


def test_a_seed_gives_the_same_mutants_and_another_one_others() -> None:
    drawn = draw(TEXTS, seed=1, count=20)
    assert draw(dict(reversed(TEXTS.items())), seed=1, count=20) == drawn
    assert draw(TEXTS, seed=1, count=10) == drawn[:10]
    assert draw(TEXTS, seed=2, count=20) != drawn


def test_all_folders_and_kinds_have_their_share() -> None:
    drawn = draw(TEXTS, seed=3, count=60)
    assert Counter(each.file.rpartition("/")[0] for each in drawn) == {"a": 20, "a/b": 20, "c": 20}
    assert {each.file for each in drawn} == TEXTS.keys()
    assert {each.kind for each in drawn} == {*Kind} - {Kind.OPERATOR}


def test_no_mutant_is_drawn_twice_and_there_may_be_fewer_than_asked_for() -> None:
    drawn = draw(TEXTS, seed=4, count=10_000)
    assert len(set(drawn)) == len(drawn) < 10_000
    assert draw({"a/x.py": '"""Nothing to change."""\n'}, seed=0, count=5) == []


def test_what_does_not_compile_is_drawn_again() -> None:
    text = "match x:\n    case {'': 1, 'b': 1}:\n        pass\n"
    drawn = draw({"a.py": text}, seed=0, count=100)
    assert len([each for each in drawn if each.kind is Kind.TEXT]) == 1
    for each in drawn:
        edit = each.edit(text)
        assert edit is not None
        compile(edit.applied(text), "a.py", "exec")


def test_the_programs_sources() -> None:
    texts = sources(CHECKOUT)
    assert {each.partition("/")[0] for each in texts} == {*PROGRAMS}
    assert not any("_pb2" in each for each in texts)
    assert "controller/allocator/order.py" in texts
