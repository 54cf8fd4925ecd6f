"""JSON of any depth, as the API server takes and gives it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_driver.kube.decode import Typed, decode, decode_event, decode_page
from dra_driver.model.claims.claim import Object


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


NAMED = Typed({"metadata": {"name": str}})
NAMED_A = b'{"metadata": {"name": "a", "more": 1}, "spec": {"n": [1]}}'


def test_only_declared_fields_are_decoded() -> None:
    assert NAMED.decode(NAMED_A) == {"metadata": {"name": "a"}}


def in_a_page(odd: bytes) -> Object:
    """The object, listed between two others."""
    page = b'{"metadata": {"resourceVersion": "7"}, "items": [%s, %s, %s]}'
    (first, found, last), metadata = decode_page(page % (NAMED_A, odd, NAMED_A), NAMED)
    assert isinstance(found, dict)
    assert first == last == {"metadata": {"name": "a"}}
    assert metadata["resourceVersion"] == "7"
    assert decode_event(b'{"type": "ADDED", "object": %s}' % odd, NAMED) == ("ADDED", found)
    return found


@pytest.mark.parametrize("levels", [140, 990, 5000])
def test_what_is_nested_too_deep_costs_no_other_object_of_its_page(levels: int) -> None:
    odd = b'{"metadata": {"name": "b"}, "parameters": %s}' % nested(levels).encode()
    assert in_a_page(odd) == {"metadata": {"name": "b"}}


@pytest.mark.parametrize(
    ("text", "name"),
    [(b"a\xff", "a\ufffd"), (b"\\ud800", "\ud800")],
    ids=["no characters", "half a character"],
)
def test_a_text_that_msgspec_refuses_costs_no_other_object_of_its_page(
    text: bytes, name: str
) -> None:
    assert in_a_page(b'{"metadata": {"name": "%s", "n": 1}}' % text) == {"metadata": {"name": name}}
    assert in_a_page(b'{"metadata": {}, "spec": {"%s": "%s"}}' % (text, text)) == {"metadata": {}}


def test_of_what_is_ordinary_undeclared_fields_are_skipped_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(f"{decode.__module__}.decode")
    assert in_a_page(NAMED_A) == {"metadata": {"name": "a"}}


def test_another_type_than_declared_is_handed_on_with_all_fields() -> None:
    odd = {"metadata": {"name": 1, "more": 2}, "spec": 3}
    page = json.dumps({"metadata": {}, "items": [odd]}).encode()
    assert decode_page(page, NAMED)[0] == [odd]


@pytest.mark.parametrize("kind", ["BOOKMARK", "ERROR"])
def test_what_is_no_object_of_the_kind_has_all_its_fields(kind: str) -> None:
    line = b'{"type": "%s", "object": %s}' % (kind.encode(), NAMED_A)
    assert decode_event(line, NAMED) == (kind, json.loads(NAMED_A))


def test_a_page_without_objects() -> None:
    for items in (b"null", b"[]"):
        assert decode_page(b'{"metadata": {}, "items": %s}' % items, NAMED) == ([], {})
