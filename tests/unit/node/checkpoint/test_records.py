from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import Orphan
from dra_driver.model.errors import InvalidValue
from dra_driver.model.instance import Instance
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import (
    CardRecordKind,
    ClaimStep,
    PreparedDevice,
    Record,
    card_record,
    decode,
    encode,
    record,
)
from tests.unit.node.world import CARDS, POOL, hold

REF = ClaimRef("team", "one", "uid-1")
SHARE = PreparedDevice(
    "slices",
    POOL,
    "shared-0000-0d-00-0",
    share_id="0b6a1f7e-3f0c-4f3a-9f29-5e7b0a5b6a11",
    consumed={"slices": "2"},
    visible_cards=CARDS[:2],
    total=6,
)


INSTANCE = replace(
    SHARE,
    device_name="drs-0000-0d-00-0",
    consumed={"size": "3"},
    instance=Instance(2, "3g.20gb", "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11"),
    instances_before=(Instance(1, "1g.6gb"),),
)


LEFT = record(ClaimStep.UNPREPARE_STARTED, Orphan("team", "one", "left-1"), (INSTANCE,))
RELEASED = record(ClaimStep.RELEASED, REF, (), {"gcu": ("whole-1", "whole-2")})
RECORDS: dict[str, Record] = {
    **{
        kind: record(kind, REF, (hold(0), SHARE, INSTANCE, hold(1, admin_access=True)))
        for kind in ClaimStep
    },
    **{kind: card_record(kind, CARDS[0]) for kind in CardRecordKind},
    "half a character, which the API server passes on": record(
        ClaimStep.PREPARE_COMPLETED, REF, (replace(hold(0), request="\ud800"),)
    ),
    "what a claim left": LEFT,
    "the names of a released claim": RELEASED,
}


@pytest.mark.parametrize("written", RECORDS.values(), ids=RECORDS)
def test_a_record_survives_the_file(written: Record) -> None:
    assert decode(encode(written.raw)) == written


def test_a_version_that_knows_no_remnants_takes_one_for_a_claim() -> None:
    """It would otherwise give out again what one holds."""
    assert LEFT.raw["kind"] == "unpreparing"
    assert LEFT.raw["claim"].keys() - {"left"} == {"namespace", "name", "uid"}


def test_a_released_claim_has_names_and_no_card() -> None:
    held = Ledger().apply(record(ClaimStep.PREPARE_COMPLETED, REF, (hold(0),))).apply(RELEASED)
    assert held.claims["uid-1"].names == {"gcu": ("whole-1", "whole-2")}
    assert held.holders_of(CARDS[0]) == ()


@pytest.mark.parametrize(
    ("device", "consumed", "amount"),
    [
        (SHARE.device_name, {"slices": "2"}, 2),
        (INSTANCE.device_name, {"size": "3", "slices": "2"}, 3),
        (INSTANCE.device_name, {"slices": "2"}, None),
        (SHARE.device_name, {"slices": "1500m"}, None),
        (SHARE.device_name, {"slices": "0"}, None),
        (SHARE.device_name, {"slices": "all"}, None),
        (hold(0).device_name, {"memory": "1Gi"}, None),
    ],
    ids=str,
)
def test_how_much_of_its_card_a_hold_takes(
    device: str, consumed: dict[str, str], amount: int | None
) -> None:
    assert replace(SHARE, device_name=device, consumed=consumed).amount == amount


@pytest.mark.parametrize(
    "instance",
    [
        pytest.param("1", id="text"),
        pytest.param({"id": "1", "profile": "1g.6gb"}, id="no number"),
        pytest.param({"id": 1, "profile": "1g"}, id="no profile"),
        pytest.param({"id": 1, "profile": "1g.6gb", "uuid": "a,b"}, id="hostile uuid"),
        pytest.param({"id": 1, "profile": "1g.6gb", "uuid": 1}, id="uuid of another shape"),
    ],
)
def test_an_instance_that_is_not_understood_makes_no_hold(instance: object) -> None:
    raw = record(ClaimStep.PREPARE_COMPLETED, REF, (INSTANCE,)).raw
    found = decode(encode({**raw, "holds": [{**raw["holds"][0], "instance": instance}]}))
    assert (found.kind, found.devices) == ("", ())


@pytest.mark.parametrize("total", [None, 0, -1, "6", True], ids=str)
def test_a_total_that_is_not_understood_is_none(total: object) -> None:
    raw = record(ClaimStep.PREPARE_COMPLETED, REF, (SHARE,)).raw
    found = decode(encode({**raw, "holds": [{**raw["holds"][0], "total": total}]}))
    assert found.devices == (replace(SHARE, total=None),)


def test_fields_of_a_newer_version_are_kept() -> None:
    raw = record(ClaimStep.PREPARE_STARTED, REF, (hold(0),)).raw
    newer = {**raw, "since": "2027", "holds": [{**raw["holds"][0], "colour": "red"}]}
    found = decode(encode(newer))
    assert (found.kind, found.owner, found.devices) == ("intent", REF, (hold(0),))
    assert found.raw == newer


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        pytest.param({"kind": "instance", "profile": "3g"}, "instance", id="unknown kind"),
        pytest.param({"kind": "intent"}, "", id="no claim"),
        pytest.param({"kind": "intent", "claim": {"uid": "../x"}}, "", id="hostile uid"),
        pytest.param({"kind": "intent", "claim": 7}, "", id="claim of another shape"),
        pytest.param({"kind": "drs-on", "card": "x"}, "", id="no card"),
        pytest.param(
            {
                "kind": "intent",
                "grant": {"devices": ["0000:0d:00.0/whole/0"], "total": 1e999, "answer": ""},
            },
            "",
            id="a number beyond numbers",
        ),
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
