"""JSON of any depth, as the API server takes and gives it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_driver.kube.decode import decode


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [1, 20, 140])
def test_what_kubernetes_has_is_read_as_it_is(levels: int) -> None:
    text = f'["é\\u00e9[\\"{{", {nested(levels)}, {{"n": [1, 1.5, -0, true, null, 9e99]}}]'
    assert decode(text.encode()) == json.loads(text)


def test_half_a_character_is_read_as_it_is() -> None:
    assert decode(b'["\\ud800"]') == ["\ud800"]


def test_bytes_that_are_no_characters_are_replaced_and_all_else_is_there() -> None:
    """The server hands opaque parameters on as they came."""
    text = (
        b'{"items": [{"n": 1}, {"parameters": {"\xff": "a\xc3(\xed\xa0\x80"}}, {"n": "\xc3\xa9"}]}'
    )
    first, second, third = decode(text)["items"]
    assert (first, third) == ({"n": 1}, {"n": "\u00e9"})
    assert second == {"parameters": {"\ufffd": "a\ufffd(\ufffd\ufffd\ufffd"}}


@pytest.mark.parametrize("levels", [201, 990, 4000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [("[", "]"), ('{"a":[', "]}"), ('["]", {"\\"}": ', '}, "["]'), ('[["\\\\"],', "]")],
    ids=["lists", "objects", "brackets in texts", "backslashes"],
)
def test_what_is_too_deep_is_none_and_all_else_is_there(
    levels: int, opening: str, closing: str
) -> None:
    deep = f"{opening * levels}0{closing * levels}"
    text = f'{{"items": [{{"n": 1}}, {{"deep": {deep}, "n": 2}}, {{"n": 3}}]}}'
    items = decode(text.encode())["items"]
    assert [each["n"] for each in items] == [1, 2, 3]
    assert 100 < depth(items[1]["deep"]) < 201
    json.dumps(items)


@pytest.mark.parametrize(
    "text", [b"", b"<html>", b"[" * 5000, b'{"a":' * 500, b"]" * 500, b'"', b"[1,]"]
)
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match="char "):
        decode(text)


def depth(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, children), default=0)
