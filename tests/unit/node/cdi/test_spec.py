from __future__ import annotations

import json
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.node.cdi.spec import Injection, device_id, read_record, render
from dra_driver.node.checkpoint.records import PreparedDevice
from tests.unit.node.world import CARDS, Machine, hold

REF = ClaimRef("team", "one", "uid-one")
OTHER = ClaimRef("t", "n", "uid-other")
MACHINE = Machine()
THERE = {address: MACHINE.card(address) for address in CARDS}
TWO = (hold(0, visible_cards=CARDS[:2]), hold(1, request="other", visible_cards=CARDS[:2]))


def written(*holds: PreparedDevice, ref: ClaimRef = REF) -> bytes:
    return render(ref, holds, THERE, Injection.CDI, Path("/metadata"))


def test_the_specification_of_a_whole_card() -> None:
    found = json.loads(written(hold(0)))
    del found["annotations"]
    assert found == {
        "cdiVersion": "0.6.0",
        "kind": "gcu.enflame.com/claim",
        "devices": [
            {
                "name": "uid-one-whole-0000-0d-00-0",
                "containerEdits": {
                    "env": ["ENFLAME_VISIBLE_DEVICES=3"],
                    "deviceNodes": [
                        {
                            "path": "/dev/gcu3",
                            "hostPath": "/host/dev/gcu3",
                            "permissions": "rw",
                        },
                        {"path": "/dev/gcuctl", "permissions": "rw"},
                    ],
                },
            }
        ],
    }


def test_each_device_names_all_cards_and_brings_its_own_nodes() -> None:
    first, second = json.loads(written(*TWO))["devices"]
    assert first["containerEdits"]["env"] == second["containerEdits"]["env"]
    assert first["containerEdits"]["env"] == ["ENFLAME_VISIBLE_DEVICES=2,3"]
    assert first["containerEdits"]["deviceNodes"][0]["path"] == "/dev/gcu3"
    assert second["containerEdits"]["deviceNodes"][0]["path"] == "/dev/gcu2"


def test_every_share_of_a_claim_has_an_id_of_its_own() -> None:
    shares = [hold(0, mode=Mode.DRS, share_id=share) for share in ("a", "b")]
    assert [device_id(REF, share) for share in [hold(0), *shares]] == [
        "gcu.enflame.com/claim=uid-one-whole-0000-0d-00-0",
        "gcu.enflame.com/claim=uid-one-drs-0000-0d-00-0-a",
        "gcu.enflame.com/claim=uid-one-drs-0000-0d-00-0-b",
    ]


def test_the_file_tells_what_a_lost_journal_told() -> None:
    assert read_record(written(*TWO), "uid-one") == (REF, TWO)
    assert written(*TWO) == written(*TWO)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"annotations": {}}', id="no annotation"),
        pytest.param(b'{"annotations": {"gcu.enflame.com/prepared": 7}}', id="a number"),
        pytest.param(b'{"annotations": {"gcu.enflame.com/prepared": "{}"}}', id="no record"),
        pytest.param(written(ref=OTHER), id="no devices"),
        pytest.param(written(hold(0), ref=OTHER), id="another claim's"),
    ],
)
def test_a_file_that_tells_nothing_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidValue):
        read_record(content, "uid-one")
