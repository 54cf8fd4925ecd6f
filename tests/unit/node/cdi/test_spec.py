from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.node.cdi.spec import Injection, device_id, read_record, render
from dra_driver.node.checkpoint.records import PreparedDevice
from tests.unit.node.world import CARDS, Machine, hold

REF = ClaimRef("team", "one", "uid-one")
MACHINE = Machine()
FOLDER = Path("/metadata")
TWO = (hold(0, visible_cards=CARDS[:2]), hold(1, request="other", visible_cards=CARDS[:2]))


def spec(holds: tuple[PreparedDevice, ...], injection: Injection = Injection.CDI) -> dict[str, Any]:
    cards = {address: MACHINE.card(address) for address in CARDS}
    found: dict[str, Any] = json.loads(render(REF, holds, cards, injection, FOLDER))
    return found


def test_the_specification_of_a_whole_card() -> None:
    found = spec((hold(0),))
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
    first, second = spec(TWO)["devices"]
    assert first["containerEdits"]["env"] == second["containerEdits"]["env"]
    assert first["containerEdits"]["env"] == ["ENFLAME_VISIBLE_DEVICES=2,3"]
    assert first["containerEdits"]["deviceNodes"][0]["path"] == "/dev/gcu3"
    assert second["containerEdits"]["deviceNodes"][0]["path"] == "/dev/gcu2"


def test_the_vendors_runtime_gets_variables_alone() -> None:
    (device,) = spec((hold(0),), Injection.RUNTIME)["devices"]
    assert device["containerEdits"] == {"env": ["ENFLAME_VISIBLE_DEVICES=3"]}


def test_every_share_of_a_claim_has_an_id_of_its_own() -> None:
    shares = [hold(0, mode=Mode.DRS, share_id=share) for share in ("a", "b")]
    assert [device_id(REF, share) for share in [hold(0), *shares]] == [
        "gcu.enflame.com/claim=uid-one-whole-0000-0d-00-0",
        "gcu.enflame.com/claim=uid-one-drs-0000-0d-00-0-a",
        "gcu.enflame.com/claim=uid-one-drs-0000-0d-00-0-b",
    ]


def test_the_file_tells_what_a_lost_journal_told() -> None:
    cards = {address: MACHINE.card(address) for address in CARDS}
    content = render(REF, TWO, cards, Injection.CDI, FOLDER)
    assert read_record(content, "uid-one") == (REF, TWO)
    assert render(REF, TWO, cards, Injection.CDI, FOLDER) == content


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
        pytest.param(
            render(ClaimRef("t", "n", "uid-other"), (), {}, Injection.CDI, FOLDER), id="no devices"
        ),
        pytest.param(
            render(
                ClaimRef("t", "n", "uid-other"),
                (hold(0),),
                {CARDS[0]: MACHINE.card(CARDS[0])},
                Injection.CDI,
                FOLDER,
            ),
            id="another claim's",
        ),
    ],
)
def test_a_file_that_tells_nothing_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidValue):
        read_record(content, "uid-one")
