from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.claim import ClaimRef
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.node.records import Hold, Kind, Record, check_id, decode, encode, record
from tests.unit.node.world import CARDS, POOL, hold

REF = ClaimRef("team", "one", "uid-1")
SHARE = Hold(
    "slices",
    POOL,
    "shared-0000-0d-00-0",
    share_id="0b6a1f7e-3f0c-4f3a-9f29-5e7b0a5b6a11",
    consumed={"slices": "2"},
    sees=CARDS[:2],
)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_record_survives_the_file(kind: Kind) -> None:
    written = record(kind, REF, (hold(0), SHARE))
    assert decode(encode(written.raw)) == written
    assert written.holds[1].mode is Mode.SHARED
    assert written.holds[1].card == CARDS[0]


def test_fields_of_a_newer_version_are_kept() -> None:
    raw = record(Kind.INTENT, REF, (hold(0),)).raw
    newer = {**raw, "since": "2027", "holds": [{**raw["holds"][0], "colour": "red"}]}
    found = decode(encode(newer))
    assert (found.kind, found.claim, found.holds) == ("intent", REF, (hold(0),))
    assert found.raw == newer


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        pytest.param({"kind": "instance", "profile": "3g"}, "instance", id="unknown kind"),
        pytest.param({"kind": "intent"}, "", id="no claim"),
        pytest.param({"kind": "intent", "claim": {"uid": "../x"}}, "", id="hostile uid"),
        pytest.param({"kind": "intent", "claim": 7}, "", id="claim of another shape"),
        pytest.param({}, "", id="empty"),
    ],
)
def test_what_is_not_understood_is_kept_and_means_nothing(
    raw: dict[str, object], kind: str
) -> None:
    assert decode(encode(raw)) == Record(kind, None, (), raw)


ANY_JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(ANY_JSON)
def test_any_json_is_read_or_refused(value: object) -> None:
    payload = json.dumps(value).encode()
    if isinstance(value, dict):
        assert decode(payload).raw == value
    else:
        with pytest.raises(InvalidValue):
            decode(payload)


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a/b", "a.b", "-a", "a-", "a\n", "ä", "a" * 64, "a\0b", " a"],
    ids=repr,
)
def test_an_identifier_that_is_no_file_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is not a UID"):
        check_id(text, "UID")


@given(st.text())
def test_no_identifier_leaves_its_folder(text: str) -> None:
    try:
        check_id(text, "UID")
    except InvalidValue:
        return
    assert text.isascii()
    assert not set(text) & set("/.\0")
