"""Decoded as JSON says, with one object for equal parts."""

from __future__ import annotations

import json
import random
from typing import Any, cast

import pytest

from dra_driver.kube import decoding
from dra_driver.kube.client import ClientWatch
from dra_driver.kube.connections import Stream
from dra_driver.kube.decoding import SharingDecoder
from tests.unit.kube.test_client import Pieces, line


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def some(draw: random.Random, depth: int) -> Any:
    """A value of few kinds, so that equal parts and almost equal ones are frequent."""
    if depth == 0 or draw.random() < 0.3:
        return draw.choice([0, 1, 1.0, True, False, None, "", "1", "a", -0.0])
    if draw.random() < 0.3:
        return [some(draw, depth - 1) for _ in range(draw.randrange(3))]
    return {draw.choice("abc"): some(draw, depth - 1) for _ in range(draw.randrange(4))}


@pytest.mark.parametrize("most", [3, 10_000], ids=["forgetting", "remembering"])
def test_as_the_standard_library_decodes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_MOST_KNOWN", most)
    draw, decode = random.Random(0), SharingDecoder()
    kept = []
    for _ in range(3_000):
        text = encoded({"object": some(draw, 4)})
        kept.append((text, decode(text)))
    for text, decoded in kept:
        assert repr(decoded) == repr(json.loads(text))  # 1, 1.0 and True are equal


def test_equal_parts_are_one_object() -> None:
    decode = SharingDecoder()
    device = {"attributes": {"type": {"string": "whole"}}, "taints": [{"key": "k"}]}
    one = decode(encoded({"name": "one", "devices": [device, device]}))
    two = decode(encoded({"name": "two", "devices": [device]}))
    assert one["devices"][0] is one["devices"][1] is two["devices"][0]
    assert one is not two


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"a": 1}, {"a": True}, id="a number and a truth"),
        pytest.param({"a": 1}, {"a": 1.0}, id="an int and a float"),
        pytest.param({"a": []}, {"a": {}}, id="a list and an object"),
        pytest.param({"a": [1]}, {"a": [[1]]}, id="one list more"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="another order"),
    ],
)
def test_what_is_not_the_same_is_told_apart(one: object, other: object) -> None:
    decode = SharingDecoder()
    found = [decode(encoded(each)) for each in (one, other)]
    assert found[0] is not found[1]
    assert [repr(each) for each in found] == [repr(one), repr(other)]


def test_a_watch_shares_with_what_was_listed() -> None:
    decode = SharingDecoder()
    listed = decode(encoded({"spec": {"node": "a"}}))
    stream = cast("Stream", Pieces(line("MODIFIED", {"spec": {"node": "a"}, "n": 1})))
    [event] = ClientWatch(stream, "watch of pods", decode)
    assert event.object["spec"] is listed["spec"]


def test_what_is_no_json() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        SharingDecoder()(b"{")
