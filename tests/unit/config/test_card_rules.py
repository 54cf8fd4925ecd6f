"""Rules for cards: what wins, and what is said of a wrong file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from dra_driver.config.card_rules import CardConfig, load_card_rules
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress

CARD, OTHER = PciAddress.parse("0000:0d:00.0"), PciAddress.parse("0000:0e:00.0")
ALL = frozenset(Mode)

FILE = """
sliceCount: 8
rules:
- nodeSelector: {use: inference, zone: a}
  modes: [shared]
- nodes: [one, two]
  sliceCount: 4
- nodes: [two]
  cards: ["0000:0d:00.0"]
  modes: [whole, drs]
- cards: ["0000:0E:00.0"]
  sliceCount: 2
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "cards.yaml"
    file.write_text(text)
    return file


def test_without_a_file_every_card_takes_every_mode_in_six_slices() -> None:
    assert load_card_rules(None).offer("any", {}, CARD) == CardConfig(6, ALL)


@pytest.mark.parametrize(
    ("node", "labels", "card", "offer"),
    [
        pytest.param("other", {}, CARD, CardConfig(8, ALL), id="the defaults"),
        pytest.param(
            "other",
            {"use": "inference", "zone": "a", "more": "x"},
            CARD,
            CardConfig(8, frozenset({Mode.SHARED})),
            id="by label",
        ),
        pytest.param(
            "other", {"use": "inference"}, CARD, CardConfig(8, ALL), id="all labels must be"
        ),
        pytest.param("one", {}, CARD, CardConfig(4, ALL), id="by name"),
        pytest.param(
            "two",
            {"use": "inference", "zone": "a"},
            CARD,
            CardConfig(4, frozenset({Mode.WHOLE, Mode.DRS})),
            id="the later one wins",
        ),
        pytest.param("two", {}, OTHER, CardConfig(2, ALL), id="by card, however it is written"),
    ],
)
def test_which_rules_hold(
    tmp_path: Path, node: str, labels: dict[str, str], card: PciAddress, offer: CardConfig
) -> None:
    assert load_card_rules(written(tmp_path, FILE)).offer(node, labels, card) == offer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sliceCount: 17", ["sliceCount", "16", "17"]),
        ("sliceCount: 0", ["sliceCount", "1", "0"]),
        ("modes: []", ["modes"]),
        ("modes: [half]", ["modes", "whole", "shared", "drs", "half"]),
        ("rules: [{cards: [somewhere]}]", ["rules[0].cards[0]", "somewhere"]),
        ("rules: [{node: one}]", ["rules[0].node", "unknown"]),
        ("rules: [{nodes: []}]", ["rules[0].nodes"]),
        ("slices: 4", ["slices", "unknown"]),
        ("- sliceCount: 4", ["the file", "dictionary"]),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InvalidValue) as refused:
        load_card_rules(file)
    for word in (str(file), *words):
        assert word in str(refused.value)


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert load_card_rules(written(tmp_path, "")).offer("one", {}, CARD) == CardConfig()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"nowhere\.yaml cannot be read"):
        load_card_rules(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a: !!int ''", id="no number"),
        pytest.param(b"a: !!bool maybe", id="no truth"),
        pytest.param(b"a: !!timestamp never", id="no time"),
        pytest.param(b"a: 2026-13-45", id="no date"),
        pytest.param(b"a: " + b"9" * 5000, id="more digits than a number has"),
        pytest.param(b"[" * 600, id="deep"),
        pytest.param(b"a: *nobody", id="no anchor"),
        pytest.param(b"a: [", id="no end"),
        pytest.param(b"a: !!python/name:os.system", id="a tag that runs code"),
    ],
)
def test_what_is_no_yaml_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    with pytest.raises(InvalidValue, match=r"\.yaml is not YAML: .*key: value$"):
        load_card_rules(file)


def test_a_few_lines_that_stand_for_more_than_there_is_memory(tmp_path: Path) -> None:
    lines = [b"rules:", b"- &a [" + b"x, " * 9 + b"x]"]
    for name, below in zip(b"bcdefghijklm", b"abcdefghijkl", strict=True):
        lines.append(b"- &%c [" % name + b", ".join([b"*%c" % below] * 10) + b"]")
    file = tmp_path / "cards.yaml"
    file.write_bytes(b"\n".join(lines))
    tracemalloc.start()
    with pytest.raises(InvalidValue, match=r"rules\[0\]: .*given \['x', "):
        load_card_rules(file)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "cards.yaml"
    file.write_bytes(b"\xff\xfe\x00n")
    with pytest.raises(InvalidValue, match="cannot be read: it is not UTF-8"):
        load_card_rules(file)
