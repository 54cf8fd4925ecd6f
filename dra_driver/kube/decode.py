"""JSON from the API server, hostile JSON included.

The server accepts JSON that is nested 10,000 levels deep: in the ``parameters`` of a claim, which
any user may write. Python's own parser fails below 1,000, as does each function that recurses into
an object. One such claim would make a whole list unreadable. So would bytes that are no UTF-8,
which the server passes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypedDict

import msgspec
from pydantic_core import from_json

from dra_driver.model.claims.claim import Object

Text = bytes | msgspec.Raw  # of one object
# Levels; what we read is below 20, and `from_json` takes 200.
_DEEPEST: Final = 150
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class Decoder(Protocol):
    """Its maker and the handler of the watch agree on what it returns: a dict, or the object in
    another form. Safe for several threads."""

    def decode(self, text: Text) -> Any:
        """An object from its JSON. Raises ValueError for what is no JSON."""


class Whole:
    """Decodes all fields."""

    def decode(self, text: Text) -> Object:
        found: Object = decode(bytes(text))
        return found


class Typed:
    """Decodes the fields that `model` has, and gives plain dicts; `transform` gives what is handed
    on of each. All other fields are skipped unread. An object that differs from the model is
    returned with all fields, so that its reader can set it aside by its name.

    The model is written as the object is: a field, and its type or its fields. A list has the type
    of its items.
    """

    def __init__(
        self, model: Mapping[str, Any], transform: Callable[[Object], Any] = lambda obj: obj
    ) -> None:
        self._type = _type_of(model)
        self._decoder = msgspec.json.Decoder(self._type)
        self._transform = transform

    def decode(self, text: Text) -> Any:
        try:
            return self._transform(self._decoder.decode(text))
        except (ValueError, LookupError, OverflowError, RecursionError):  # `decode` may go on
            obj = decode(bytes(text))
        try:
            return self._transform(msgspec.convert(obj, self._type))
        except (ValueError, LookupError, OverflowError):
            return obj


def _type_of(fields: Any) -> Any:
    """A TypedDict of these fields, none of them required, for msgspec."""
    if isinstance(fields, list):
        return list[_type_of(fields[0])]  # type: ignore[misc]  # made while the program runs
    if isinstance(fields, Mapping):
        make: Any = TypedDict
        return make("Fields", {name: _type_of(each) for name, each in fields.items()}, total=False)
    return fields


WHOLE: Final = Whole()


_ListMeta = TypedDict("_ListMeta", {"resourceVersion": str, "continue": str}, total=False)


class _Page(TypedDict, total=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None


class _Event(msgspec.Struct):  # msgspec reads no Raw in the fields of a TypedDict
    type: str
    object: msgspec.Raw


_PAGE: Final = msgspec.json.Decoder(_Page)
_EVENT: Final = msgspec.json.Decoder(_Event)
_PLAIN: Final = frozenset({"BOOKMARK", "ERROR"})


def decode_page(text: bytes, decoder: Decoder) -> tuple[list[Any], Mapping[str, Any]]:
    """The objects of a page of a list, and the page's own metadata. Raises ValueError."""
    try:
        page = _PAGE.decode(text)
        items: Iterable[Text] = page.get("items") or ()
    except (ValueError, RecursionError):  # one object is nested too deep
        page = decode(text)
        items = map(_readable, page.get("items") or ())
    return list(map(decoder.decode, items)), page["metadata"]


def decode_event(line: bytes, decoder: Decoder) -> tuple[str, Any]:
    """The type of a line of a watch, and its object; with all fields where that is none of the
    kind. Raises ValueError."""
    try:
        event = _EVENT.decode(line)
        kind, text = event.type, event.object
    except (ValueError, RecursionError):
        plain = decode(line)
        kind, text = plain["type"], _readable(plain["object"])
    return kind, (WHOLE if kind in _PLAIN else decoder).decode(text)


def _readable(obj: Object) -> msgspec.Raw:
    """The JSON of an object that `decode` has cut."""
    return msgspec.Raw(json.dumps(obj).encode())


def decode(text: bytes) -> Any:
    """The value; what is nested too deep in it is None. Raises ValueError for what is no JSON."""
    try:
        # Names of fields recur from object to object; a cache of other texts would only grow.
        return from_json(text, cache_strings="keys")
    except ValueError:  # too deep, or bytes or half a character as \ud800, which Go passes on
        return json.loads(b"".join(_cut(text)).decode(errors="replace"))


def _cut(text: bytes) -> Iterator[bytes]:
    """The pieces of the text with null in place of what is nested too deep."""
    depth = begin = 0
    for token in _TOKEN.finditer(text):
        if token[0] in b"[{":
            depth += 1
            if depth == _DEEPEST + 1:
                yield text[begin : token.start()] + b"null"
        elif token[0] in b"]}":
            if depth == _DEEPEST + 1:
                begin = token.end()
            depth -= 1
    yield text[begin:]
