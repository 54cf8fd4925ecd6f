"""Descriptions: what is shipped, what a wrong key is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.simulator.description.load import machine_spec, shipped_machines
from dra_driver.simulator.description.resolve import first_state
from dra_driver.simulator.state import MachineState

S60 = {"bdf": "0000:0d:00.0", "model": "S60"}
OTHER = {"bdf": "0000:0e:00.0", "model": "S60"}


def loaded(source: Any) -> MachineState:
    return first_state(machine_spec(source))


def test_shipped_machines() -> None:
    assert shipped_machines() == ("mixed-t20", "s60-4", "s60-ecc-8", "s60-ecc-8-nested")


def test_eight_cards_with_ecc() -> None:
    cards = loaded("s60-ecc-8").cards

    assert {card.form.memory_mib for card in cards} == {42976}
    assert [card.numa_node for card in cards] == [0] * 4 + [1] * 4
    switches = [card.pci_path.rsplit("/", 1)[0] for card in cards]
    assert {switches.count(switch) for switch in switches} == {2}
    assert [card.minor for card in cards] != [card.efsmi_index for card in cards]


def test_eight_cards_below_nested_switches() -> None:
    """As the manual of the vendor's device plugin shows them."""
    above = [card.pci_path.split("/") for card in loaded("s60-ecc-8-nested").cards]

    assert {len(path) for path in above} == {6}
    assert [path[-2][5:7] for path in above] == ["0f", "0f", "13", "16", "9a", "9a", "9e", "a2"]
    assert [path[2][5:7] for path in above] == ["0d"] * 4 + ["98"] * 4


def test_four_cards_without_ecc() -> None:
    cards = loaded("s60-4").cards

    assert {card.form.memory_mib for card in cards} == {49120}
    assert len({card.pci_path.rsplit("/", 1)[0] for card in cards}) == 1
    assert [row.name for row in cards[0].form.profiles] == ["1g.7gb", "3g.23gb", "6g.46gb"]
    assert cards[0].form.assumed


def test_mixed_machine_has_a_card_without_drs() -> None:
    cards = loaded("mixed-t20").cards

    assert [(card.model, card.drs, bool(card.form.profiles)) for card in cards] == [
        ("S60", True, True),
        ("S60", True, True),
        ("S60", True, True),
        ("T20", False, False),
    ]


def test_scalars_of_a_file_are_taken_as_written(tmp_path: Path) -> None:
    """YAML 1.1 reads 0000:01:00.0 as a number of base 60, and 1.5 as a float."""
    file = tmp_path / "machine.yaml"
    file.write_text(
        "driverVersion: 1.50\ncards: [{bdf: 0000:01:00.0, model: S60, pciId: 1e36:0021, drs: no}]\n"
    )

    machine = loaded(file)

    card = machine.cards[0]
    assert (machine.driver_version, card.bdf, card.device_id) == ("1.50", "0000:01:00.0", "0021")
    assert not card.drs


def test_wrong_key_of_a_file_names_file_and_path(tmp_path: Path) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text("cards:\n- {bdf: 0000:01:00.0, model: S60, memoryMib: 3}\n")

    with pytest.raises(InvalidValue) as caught:
        machine_spec(file)

    assert str(caught.value) == f"machine {file}: cards[0].memoryMib: there is no such key"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("cards: [", "is not YAML", id="syntax"),
        pytest.param("cards: []\ncards: []\n", "the key cards is given twice", id="twice"),
        pytest.param("? [a]\n: b\n", "a key is no single word", id="a list as key"),
        pytest.param("a: !!int ''\n", "is not YAML", id="no number"),
        pytest.param("[" * 600, "is not YAML", id="deep"),
        pytest.param("- a\n", "the document: ", id="not-a-mapping"),
        pytest.param("", "the document: ", id="empty"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text(text)

    with pytest.raises(InvalidValue, match=error):
        machine_spec(file)


def test_a_name_that_is_neither_shipped_nor_a_file() -> None:
    with pytest.raises(
        InvalidValue,
        match=r"give a YAML file, or one of mixed-t20, s60-4, s60-ecc-8, s60-ecc-8-nested",
    ):
        machine_spec("s61")


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"card": []}, "the machine: card: there is no such key"),
        ({"placement": "best"}, "placement: input should be 'any' or 'aligned'"),
        (
            {"cards": [S60, {**OTHER, "memoryMiB": "x"}]},
            "cards[1].memoryMiB: input should be a valid",
        ),
        ({"cards": [{"model": "S60"}]}, "cards[0].bdf: must be given"),
        ({"cards": [{**S60, "bdf": "0d:00.0"}]}, "cards[0].bdf: '0d:00.0' is not a PCI address"),
        (
            {"cards": [{**S60, "bdf": "000000000:0d:00.0"}]},
            "cards[0].bdf: '000000000:0d:00.0' is not a PCI address",
        ),
        ({"cards": [{**S60, "pciPath": "/sys"}]}, "cards[0].pciPath: '/sys' is not a PCIe root"),
        (
            {"cards": [{**S60, "instances": [{"profile": "1g.6gb", "uuid": "1"}]}]},
            "cards[0].instances[0].uuid: '1' is not an RFC 4122 uuid in lower case",
        ),
        ({"cards": [{**S60, "errors": {"Sip": 1}}]}, "cards[0].errors.Sip: 'Sip' is none of User"),
        ({"cards": [{**S60, "powerWatts": "x"}]}, "cards[0].powerWatts: input should be a valid"),
        ({"delaysMs": {"create": 1}}, "delaysMs.create: 'create' is none of list, query,"),
        ({"faults": [{"fault": "boom"}]}, "faults[0].fault: 'boom' is none of create-fails,"),
        ({"cards": [S60, S60]}, "cards[1].bdf: 0000:0d:00.0 is also the bdf of cards[0]"),
        (
            {"cards": [S60, {**OTHER, "minor": 0}]},
            "cards[1].minor: 0 is also the minor of cards[0]",
        ),
        (
            {"cards": [{**S60, "index": 1}, OTHER]},
            "cards[1].index: 1 is also the index of cards[0]",
        ),
        ({"cards": [{**S60, "model": "X"}]}, "cards[0].pciId: must be given for model X"),
        (
            {"cards": [{**S60, "model": "X", "pciId": "1e36:c033"}]},
            "cards[0].memoryMiB: must be given for model X",
        ),
        ({"cards": [{**S60, "profileTable": "t"}]}, "cards[0].profileTable: there is no table t"),
        (
            {"cards": [{**S60, "instances": [{"profile": "9g.9gb"}]}]},
            "cards[0].instances[0]: there is no profile 9g.9gb, only 1g.6gb, 3g.20gb, 6g.40gb",
        ),
        (
            {"cards": [{**S60, "instances": [{"profile": "6g.40gb"}] * 2}]},
            "cards[0].instances[1]: GCU 0 has no room for 6g.40gb",
        ),
        (
            {"cards": [S60], "faults": [{"fault": "efsmi-slow", "card": "0000:99:00.0"}]},
            "faults[0].card: the machine has no card at 0000:99:00.0",
        ),
        (
            {"cards": [S60, {**OTHER, "pciPath": "pci0000:00/0000:0d:00.0"}]},
            "cards[1].pciPath: 0000:0d:00.0 is a card, not a bridge",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_a_wrong_value_names_its_path(keys: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        loaded({"cards": [S60], **keys})

    assert error in str(caught.value)


def test_all_wrong_keys_are_told_at_once() -> None:
    with pytest.raises(InvalidValue) as caught:
        machine_spec({"cards": [{**S60, "healthy": 1}], "driver": 2})

    assert len(str(caught.value).splitlines()) == 2


def test_an_unknown_model_needs_only_what_the_catalog_cannot_tell() -> None:
    card = {**S60, "model": "S60G", "pciId": "1e36:c033", "powerCapWatts": 200, "memoryMiB": 8192}

    (made,) = loaded({"cards": [card]}).cards

    assert (made.form.memory_mib, made.drs, made.numa_node) == (8192, False, -1)


@pytest.mark.parametrize(
    ("bdf", "in_sysfs"),
    [
        ("00000000:0d:00.0", "0000:0d:00.0"),
        ("10000:01:00.0", "10000:01:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
    ],
    ids=["eight digits", "five digits", "five digits of eight"],
)
def test_sysfs_has_only_the_digits_that_a_domain_needs(bdf: str, in_sysfs: str) -> None:
    (card,) = loaded({"cards": [{**S60, "bdf": bdf}]}).cards

    assert (card.bdf, card.efsmi_bdf) == (in_sysfs, bdf)


def test_identity_tells_machines_of_one_description_apart() -> None:
    spec = machine_spec({"cards": [S60]})

    uuids = [first_state(spec, identity=node).cards[0].uuid for node in ("a", "b", "a")]

    assert uuids[0] == uuids[2] != uuids[1]
    assert len(uuids[0]) == 12
