"""The command ``gcu-simulator``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from dra_driver.model.errors import GcuError
from dra_driver.simulator import changes, efsmi, record
from dra_driver.simulator.description.load import shipped_machines
from dra_driver.simulator.faults import MEANINGS
from dra_driver.simulator.machine import SimulatedMachine
from dra_driver.simulator.show import show
from dra_driver.version import add_version_flag


def main() -> NoReturn:
    """Run the command line of this process and exit: 0, 1 for an error, 2 for wrong arguments."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    arguments = _parser().parse_args(argv)
    handler: Callable[[argparse.Namespace], int] = arguments.handler
    try:
        return handler(arguments)
    except GcuError as error:
        sys.stderr.write(f"gcu-simulator: {error}\n")
        return 1


def _create(arguments: argparse.Namespace) -> int:
    machine = SimulatedMachine.create(
        arguments.machine,
        arguments.root,
        identity=arguments.identity,
        plain_device_files=arguments.plain_device_files,
        replace_other=arguments.replace,
    )
    state = machine.state()
    kind = "character devices" if state.char_devices else "plain files"
    sys.stdout.write(
        f"{len(state.cards)} cards below {machine.root}, device nodes are {kind}; "
        f"efsmi is {machine.efsmi_path}\n"
    )
    return 0


def _show(arguments: argparse.Namespace) -> int:
    sys.stdout.write(show(SimulatedMachine.open(arguments.root).state()))
    return 0


def _record(arguments: argparse.Namespace) -> int:
    for entry in SimulatedMachine.open(arguments.root).record():
        if entry.changed or not arguments.changes:
            sys.stdout.write(json.dumps(record.to_json(entry), ensure_ascii=False) + "\n")
    return 0


def _set(arguments: argparse.Namespace) -> int:
    machine = SimulatedMachine.open(arguments.root)
    keys = changes.nested(arguments.assignments)
    if arguments.card is None:
        machine.set_machine(**keys)
    else:
        machine.set_card(arguments.card, **keys)
    return 0


def _fault(arguments: argparse.Namespace) -> int:
    machine = SimulatedMachine.open(arguments.root)
    if arguments.clear:
        machine.clear_faults(arguments.fault, card=arguments.card)
    elif arguments.fault is None:
        raise GcuError("no fault is named", remedy=f"name one of {', '.join(MEANINGS)}")
    else:
        machine.set_fault(
            arguments.fault,
            card=arguments.card,
            command=arguments.command,
            times=arguments.times,
            seconds=arguments.seconds,
            exit_code=arguments.exit_code,
        )
    return 0


def _reboot(arguments: argparse.Namespace) -> int:
    order = arguments.order.split(",") if arguments.order else ()
    SimulatedMachine.open(arguments.root).reboot(order)
    return 0


def _destroy(arguments: argparse.Namespace) -> int:
    SimulatedMachine(arguments.root).destroy()
    return 0


def _machines(_: argparse.Namespace) -> int:
    sys.stdout.write("".join(f"{name}\n" for name in shipped_machines()))
    return 0


def _efsmi(arguments: argparse.Namespace) -> int:
    words = arguments.arguments
    return efsmi.main(str(arguments.root), words[1:] if words[:1] == ["--"] else words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gcu-simulator",
        description="A simulated GCU node: a sysfs tree, device nodes and a stateful efsmi.",
        allow_abbrev=False,
    )
    add_version_flag(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(
        name: str, handler: Callable[[argparse.Namespace], int], text: str, *, root: bool = True
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(handler=handler)
        if root:
            added.add_argument(
                "--root", type=Path, required=True, metavar="DIR", help="folder of the machine"
            )
        return added

    _create_arguments(command("create", _create, "make a machine, or put right its files"))
    command("show", _show, "print cards, modes, instances and faults as a table")
    only = command("record", _record, "print everything done to the machine as JSON lines")
    only.add_argument(
        "--changes", action="store_true", help="only what changed a card, no reads or refusals"
    )
    _set_arguments(command("set", _set, "change keys of a card or of the machine"))
    _fault_arguments(command("fault", _fault, "switch a fault on or off"))
    reboot = command("reboot", _reboot, "reboot the machine: pending ECC becomes current")
    reboot.add_argument(
        "--order", metavar="BDF,…", help="all cards, in the order of their new indexes and minors"
    )
    command("destroy", _destroy, "remove the machine's files")
    command("machines", _machines, "list the machines that come with the simulator", root=False)
    call = command("efsmi", _efsmi, "call the machine's efsmi with this Python")
    call.add_argument("arguments", nargs=argparse.REMAINDER, metavar="-- ARGS…")
    return parser


def _create_arguments(create: argparse.ArgumentParser) -> None:
    create.add_argument(
        "--machine",
        required=True,
        metavar="FILE|NAME",
        help=f"a YAML file, or one of {', '.join(shipped_machines())}",
    )
    create.add_argument(
        "--identity",
        default="",
        metavar="TEXT",
        help="makes uuids and serials that the description leaves out differ between machines "
        "of one description: the node's name, say",
    )
    create.add_argument(
        "--plain-device-files",
        action="store_true",
        help="make device nodes as plain files even where character devices could be made",
    )
    create.add_argument(
        "--replace",
        action="store_true",
        help="replace a machine of another description, with its state and record",
    )


def _set_arguments(change: argparse.ArgumentParser) -> None:
    card = ", ".join(_keys(changes.CardChange))
    machine = ", ".join(_keys(changes.MachineChange))
    change.epilog = (
        f"keys of a card: {card}\nkeys of the machine: {machine}\n"
        "a key below another is written with a dot: efsmi.header=DEV"
    )
    change.add_argument("--card", metavar="BDF", help="the card; left out, the machine itself")
    change.add_argument("assignments", nargs="+", metavar="KEY=VALUE")


def _keys(model: type[changes.CardChange | changes.MachineChange]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _fault_arguments(fault: argparse.ArgumentParser) -> None:
    fault.epilog = "faults:\n" + "\n".join(f"  {name}: {text}" for name, text in MEANINGS.items())
    fault.add_argument("fault", nargs="?", metavar="FAULT", help="which; see below")
    fault.add_argument("--clear", action="store_true", help="switch it off; without FAULT, all")
    fault.add_argument("--card", metavar="BDF", help="only calls that name this card")
    fault.add_argument(
        "--command", metavar="NAME", help="only this command of efsmi: create-instance"
    )
    fault.add_argument(
        "--times", type=int, metavar="N", help="the next N calls; else until cleared"
    )
    fault.add_argument(
        "--seconds", type=float, default=0.0, metavar="S", help="of hangs and slowness"
    )
    fault.add_argument(
        "--exit-code", type=int, default=1, metavar="N", help="of failures (default 1)"
    )


if __name__ == "__main__":
    main()
