"""The faults that can be switched on, and when one of them strikes."""

from __future__ import annotations

from typing import Final

from dra_driver.simulator.state import Fault, MachineState

CREATE_FAILS: Final = "create-fails"
CREATE_HANGS: Final = "create-hangs"
CREATE_HANGS_AFTER_MAKING: Final = "create-hangs-after-making"
CREATE_LIES_FAILURE: Final = "create-reports-failure-but-makes"
CREATE_LIES_SUCCESS: Final = "create-reports-success-but-makes-nothing"
DESTROY_FAILS: Final = "destroy-fails"
DESTROY_HANGS: Final = "destroy-hangs"
DRS_ON_REFUSED: Final = "drs-on-refused"
DRS_OFF_REFUSED: Final = "drs-off-refused"
EFSMI_GARBAGE: Final = "efsmi-garbage"
EFSMI_SLOW: Final = "efsmi-slow"
EFSMI_EXIT: Final = "efsmi-exit"
CARD_HANGS: Final = "card-hangs"

MEANINGS: Final = {
    CREATE_FAILS: "a create exits with the fault's exit code and makes nothing",
    CREATE_HANGS: "a create hangs before it makes the instance; killed meanwhile, it made nothing",
    CREATE_HANGS_AFTER_MAKING: "a create makes the instance, then hangs before it exits",
    CREATE_LIES_FAILURE: "a create makes the instance and exits as if it had failed",
    CREATE_LIES_SUCCESS: "a create makes nothing and exits with 0",
    DESTROY_FAILS: "a destroy exits with the fault's exit code and destroys nothing",
    DESTROY_HANGS: "a destroy hangs before it destroys",
    DRS_ON_REFUSED: "--drs on exits with the fault's exit code",
    DRS_OFF_REFUSED: "--drs off exits with the fault's exit code",
    EFSMI_GARBAGE: "efsmi prints bytes without meaning and exits with 0",
    EFSMI_SLOW: "efsmi takes the fault's seconds longer",
    EFSMI_EXIT: "efsmi prints an error and exits with the fault's exit code",
    CARD_HANGS: "efsmi hangs when it asks the card, for itself or with all others",
}

HANGS: Final = frozenset({CREATE_HANGS, CREATE_HANGS_AFTER_MAKING, DESTROY_HANGS, CARD_HANGS})
# "Hangs" without a time: longer than any limit a caller would set, and still an end.
HANG_SECONDS: Final = 3600.0

_OF_COMMAND: Final = {
    "create-instance": (
        CREATE_FAILS,
        CREATE_HANGS,
        CREATE_HANGS_AFTER_MAKING,
        CREATE_LIES_FAILURE,
        CREATE_LIES_SUCCESS,
    ),
    "destroy-instance": (DESTROY_FAILS, DESTROY_HANGS),
    "drs-on": (DRS_ON_REFUSED,),
    "drs-off": (DRS_OFF_REFUSED,),
}
_OF_ALL: Final = (EFSMI_GARBAGE, EFSMI_SLOW, EFSMI_EXIT, CARD_HANGS)


def strike(
    machine: MachineState, command: str, bdf: str | None
) -> tuple[MachineState, dict[str, Fault]]:
    """The faults that this call of efsmi meets, by name, and the machine with those counted down.

    A fault of one card strikes only calls that name that card, a card that hangs those that name
    none as well; of several with one name, only the oldest strikes.
    """
    possible = (*_OF_COMMAND.get(command, ()), *_OF_ALL)
    met: dict[str, Fault] = {}
    left: list[Fault] = []
    for fault in machine.faults:
        if (
            fault.fault not in possible
            or fault.fault in met
            or not _concerns(fault, bdf)
            or fault.command not in {None, command}
        ):
            left.append(fault)
            continue
        met[fault.fault] = fault
        if fault.times is None:
            left.append(fault)
        elif fault.times > 1:
            left.append(fault._replace(times=fault.times - 1))
    return (machine._replace(faults=tuple(left)) if met else machine), met


def seconds(met: dict[str, Fault]) -> float:
    """How much longer the call takes before its effect."""
    before = (CREATE_HANGS, DESTROY_HANGS, EFSMI_SLOW, CARD_HANGS)
    return sum(met[name].seconds for name in before if name in met)


def _concerns(fault: Fault, bdf: str | None) -> bool:
    of_all = bdf is None and fault.fault == CARD_HANGS
    return of_all or fault.card in {None, bdf}
