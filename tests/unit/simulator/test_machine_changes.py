"""What happens to a machine: cards lost, reboots, the driver unloaded, keys and faults set."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.errors import GcuError, InvalidValue
from tests.unit.simulator.machines import MakeMachine, snapshot, with_instance

FIRST, SECOND = "0000:0d:00.0", "0000:0e:00.0"


def test_a_lost_card_is_gone_and_comes_back_with_other_numbers(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    with_instance(machine)
    before = snapshot(machine.root)

    machine.lose_card(FIRST)

    assert FIRST not in machine.efsmi("-L").stdout.decode()
    assert "DEV ID 0" not in machine.efsmi("-q").stdout.decode()
    assert not any(FIRST in path or path.startswith("dev/gcu0") for path in snapshot(machine.root))

    machine.restore_card(FIRST, index=5, minor=7)

    assert (machine.root / "dev/gcu7").exists()
    assert f"{FIRST}    0-7" in machine.efsmi("-i", "5", "-L").stdout.decode()
    assert len(machine.instances(FIRST)) == 1

    machine.set_card(FIRST, index=0, minor=0)
    assert snapshot(machine.root) == before


def test_a_card_cannot_come_back_with_the_number_of_another(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    machine.lose_card(FIRST)

    with pytest.raises(InvalidValue, match="minor: 1 is also the minor of"):
        machine.restore_card(FIRST, minor=1)

    assert machine.card(FIRST).lost


@pytest.mark.parametrize("survive", [True, False])
def test_reboot(make_machine: MakeMachine, survive: bool) -> None:
    machine = make_machine(2, instancesSurviveReboot=survive)
    with_instance(machine)

    machine.reboot(order=[SECOND, FIRST])

    card = machine.card(FIRST)
    assert len(card.instances) == int(survive)
    assert card.virtualization == ("DRS" if survive else "Disable")
    assert (card.efsmi_index, card.minor) == (1, 1)


def test_reboot_makes_pending_ecc_current_with_its_other_profiles(
    make_machine: MakeMachine,
) -> None:
    machine = make_machine(instancesSurviveReboot=True)
    with_instance(machine)
    machine.set_card(FIRST, eccPending="Disable")
    assert machine.card(FIRST).ecc_current == "Enable"

    machine.reboot()

    card = machine.card(FIRST)
    assert (card.ecc_current, card.form.memory_mib, card.instances) == ("Disable", 49120, ())


def test_reboot_order_must_name_every_card(make_machine: MakeMachine) -> None:
    with pytest.raises(InvalidValue, match="name each card once"):
        make_machine(2).reboot(order=[FIRST])


def test_driver_unloaded_and_loaded_again(make_machine: MakeMachine) -> None:
    machine = make_machine()
    before = snapshot(machine.root)

    machine.set_machine(driverLoaded=False)

    left = snapshot(machine.root)
    assert f"sys/bus/pci/devices/{FIRST}" in left
    assert not any("enflame" in path or path.startswith("dev/") for path in left)
    machine.set_machine(driverLoaded=True)
    assert snapshot(machine.root) == before


@pytest.mark.parametrize(
    ("keys", "read", "value"),
    [
        ({"health": False}, "health", False),
        ({"rma": "true"}, "rma", True),
        ({"eccPending": "Disable"}, "ecc_pending", "Disable"),
        ({"uuid": "TPUB00000001"}, "uuid", "TPUB00000001"),
        ({"powerWatts": "N/A"}, "power_watts", None),
        ({"errors": {"SIP Error": "3"}}, "errors", {"SIP Error": 3}),
        ({"virtualization": "SRIOV"}, "virtualization", "SRIOV"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_keys_of_a_card(
    make_machine: MakeMachine, keys: dict[str, Any], read: str, value: object
) -> None:
    machine = make_machine()

    machine.set_card(FIRST, **keys)

    assert getattr(machine.card(FIRST), read) == value


def test_keys_of_the_machine(make_machine: MakeMachine) -> None:
    machine = make_machine()

    machine.set_machine(
        driverVersion="2.0", efsmi={"header": "DEV"}, delaysMs={"list": "3"}, placement="aligned"
    )

    state = machine.state()
    assert (state.driver_version, state.efsmi.header, state.placement) == ("2.0", "DEV", "aligned")
    assert state.delays_ms == {"list": 3}
    assert (machine.root / "sys/module/enflame/version").read_text() == "2.0\n"


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"helth": 1}, "card 0000:0d:00.0: helth: there is no such key"),
        ({"health": "perhaps"}, "health: input should be a valid boolean"),
        ({"eccCurrent": "N/A"}, "what a S60 is with ECC N/A is not known"),
        ({"virtualization": "Disable"}, "cannot change while it has DRS instances"),
    ],
)
def test_wrong_changes_change_nothing(
    make_machine: MakeMachine, keys: dict[str, Any], error: str
) -> None:
    machine = make_machine()
    with_instance(machine)
    before = machine.state()

    with pytest.raises(InvalidValue) as caught:
        machine.set_card(FIRST, **keys)

    assert error in str(caught.value)
    assert machine.state() == before


def test_unknown_card_and_fault(make_machine: MakeMachine) -> None:
    machine = make_machine()
    with pytest.raises(GcuError, match="no card at 0000:99"):
        machine.lose_card("0000:99:00.0")
    with pytest.raises(InvalidValue, match="'boom' is none of"):
        machine.set_fault("boom")


def test_clearing_faults_by_name_or_card(make_machine: MakeMachine) -> None:
    machine = make_machine(2)
    for card in (FIRST, SECOND):
        machine.set_fault("create-fails", card=card)
        machine.set_fault("efsmi-slow", card=card)

    machine.clear_faults("create-fails", card=FIRST)
    assert len(machine.state().faults) == 3
    machine.clear_faults(card=SECOND)
    assert [(fault.fault, fault.card) for fault in machine.state().faults] == [
        ("efsmi-slow", FIRST)
    ]
    machine.clear_faults()
    assert machine.state().faults == ()
