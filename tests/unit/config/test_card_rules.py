"""Rules for cards: what wins, and what is said of a wrong file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.config.card_rules import CardConfig, load_card_rules
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress

CARD, OTHER = PciAddress.parse("0000:0d:00.0"), PciAddress.parse("0000:0e:00.0")
ALL = frozenset(Mode)

FILE = """
{"sliceCount": 8, "rules": [
  {"nodeSelector": {"use": "inference", "zone": "a"}, "modes": ["shared"]},
  {"nodes": ["one", "two"], "sliceCount": 4},
  {"nodes": ["two"], "cards": ["0000:0d:00.0"], "modes": ["whole", "drs"]},
  {"cards": ["0000:0E:00.0"], "sliceCount": 2}
]}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "cards.json"
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
        ('{"sliceCount": 17}', ["sliceCount", "16", "17"]),
        ('{"sliceCount": 0}', ["sliceCount", "1", "0"]),
        ('{"modes": []}', ["modes"]),
        ('{"modes": ["half"]}', ["modes", "whole", "shared", "drs", "half"]),
        ('{"rules": [{"cards": ["somewhere"]}]}', ["rules[0].cards[0]", "somewhere"]),
        ('{"rules": [{"node": "one"}]}', ["rules[0].node", "unknown"]),
        ('{"rules": [{"nodes": []}]}', ["rules[0].nodes"]),
        ('{"slices": 4}', ["slices", "unknown"]),
        ('[{"sliceCount": 4}]', ["the file", "object"]),
        ("sliceCount: 4", ["the file", "JSON"]),
        ("", ["the file", "JSON"]),
        ("\x00\xff", ["the file", "JSON"]),
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


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="nowhere cannot be read"):
        load_card_rules(tmp_path / "nowhere")
