"""The simulated machine as an object: what tests and the command line do to it from outside."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dra_driver.model.errors import Refused
from dra_driver.simulator import boot, changes, efsmi, files
from dra_driver.simulator.description.load import machine_spec, validated
from dra_driver.simulator.description.resolve import fault_state, first_state
from dra_driver.simulator.description.spec import FaultSpec, MachineSpec
from dra_driver.simulator.record import RecordLine
from dra_driver.simulator.state import CardState, MachineState
from dra_driver.simulator.store import Store
from dra_driver.simulator.tree import tree


@dataclass(frozen=True, slots=True)
class PlacedInstance:
    """A DRS instance and the address of its card."""

    card: str
    id: int
    profile: str
    uuid: str
    slots: tuple[int, ...]


class SimulatedMachine:
    """A machine in the folder `root`; the state is on disk, the object holds none of it.

    All methods that change something are atomic, safe beside other processes, and recorded.
    They raise GcuError where there is no machine in `root`.
    """

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.root = root.absolute()
        self._store = Store(str(self.root))
        self._description_file = Path(self._store.folder, "description.json")
        self._clock = clock

    @classmethod
    def create(
        cls,
        source: MachineSpec | Mapping[str, Any] | Path | str,
        root: Path,
        *,
        identity: str = "",
        plain_device_files: bool = False,
        replace_other: bool = False,
    ) -> SimulatedMachine:
        """Make the machine that `source` describes (a shipped name, a file, or its keys).

        Where the same machine is already, it keeps its state, and its files are put right: this
        may run before every use. Device nodes are character devices where this process may make
        them, plain files otherwise or if `plain_device_files`. Raise InvalidValue for a wrong
        description; Refused when `root` holds another machine, unless `replace_other`.
        """
        spec = machine_spec(source)
        described = {
            "identity": identity,
            "machine": spec.model_dump(mode="json", by_alias=True, exclude_unset=True),
        }
        machine = cls(root)
        first = first_state(spec, identity=identity)
        machine._make(first, described, plain=plain_device_files, replace_other=replace_other)
        return machine

    @classmethod
    def open(cls, root: Path) -> SimulatedMachine:
        """The machine in `root`. Raise GcuError where there is none."""
        machine = cls(root)
        machine.state()
        return machine

    @property
    def efsmi_path(self) -> Path:
        """The executable to call as ``efsmi``."""
        return self.root / "bin" / "efsmi"

    def state(self) -> MachineState:
        """All of it, as it is now."""
        return self._store.read()

    def card(self, bdf: str) -> CardState:
        """One card, lost or not. Raise GcuError when there never was one at `bdf`."""
        return self.state().card(bdf)

    def instances(self, bdf: str | None = None) -> tuple[PlacedInstance, ...]:
        """The DRS instances of one card or of all, lost cards included."""
        machine = self.state()
        cards = machine.cards if bdf is None else (machine.card(bdf),)
        return tuple(
            PlacedInstance(card.bdf, one.id, one.profile, one.uuid, one.slots)
            for card in cards
            for one in card.instances
        )

    def record(self) -> tuple[RecordLine, ...]:
        """Everything that was done to the machine, oldest first."""
        with self._store.transaction():
            return tuple(self._store.record)

    def take_record(self) -> tuple[RecordLine, ...]:
        """As `record`; all but the newest is forgotten, so that a long life makes no look at it
        long."""
        with self._store.transaction():
            told = tuple(self._store.record)
            self._store.record.clear()
            self._store.record.append(told[-1])
        return told

    def efsmi(self, *argv: str, sleep: Callable[[float], None] = time.sleep) -> efsmi.ToolOutput:
        """Call the tool within this process: the same code and effects without a new process."""
        return efsmi.run(str(self.root), argv, sleep=sleep, clock=self._clock)

    def set_fault(
        self,
        fault: str,
        *,
        card: str | None = None,
        command: str | None = None,
        times: int | None = None,
        seconds: float = 0,
        exit_code: int = 1,
    ) -> None:
        """Switch a fault on (`faults.MEANINGS`), for one card or command or for all, for the next
        `times` calls or until it is cleared. Raise InvalidValue for an unknown one."""
        keys = {
            "fault": fault,
            "card": card,
            "command": command,
            "times": times,
            "seconds": seconds,
            "exitCode": exit_code,
        }
        spec = validated(FaultSpec, keys, of="the fault")

        def add(machine: MachineState) -> MachineState:
            return machine._replace(faults=(*machine.faults, fault_state(machine, spec)))

        self._change("fault", f"fault {fault} is on", add, card=card)

    def clear_faults(self, fault: str | None = None, *, card: str | None = None) -> None:
        """Switch off all faults, or those of one name or one card."""

        def clear(machine: MachineState) -> MachineState:
            bdf = None if card is None else machine.card(card).bdf
            left = tuple(
                one
                for one in machine.faults
                if fault not in {None, one.fault} or bdf not in {None, one.card}
            )
            return machine._replace(faults=left)

        self._change("fault", f"faults are off: {fault or 'all'}", clear, card=card)

    def set_card(self, bdf: str, **keys: Any) -> None:
        """Set keys of a card, named as in its description (``health=False``, ``eccPending=…``)."""
        self._change(
            "set",
            f"set {', '.join(keys)}",
            lambda machine: changes.change_card(machine, bdf, keys),
            card=bdf,
        )

    def set_machine(self, **keys: Any) -> None:
        """Set keys of the machine (``driverLoaded=False``, ``efsmi={"header": "DEV"}``)."""
        self._change(
            "set",
            f"set {', '.join(keys)}",
            lambda machine: changes.change_machine(machine, keys),
        )

    def lose_card(self, bdf: str) -> None:
        """The card falls off the bus: it is gone from sysfs, ``/dev`` and efsmi. Its instances
        are there again when it comes back."""
        self.set_card(bdf, lost=True)

    def restore_card(self, bdf: str, *, index: int | None = None, minor: int | None = None) -> None:
        """The card comes back, with the numbers it had or others. Raise InvalidValue when another
        card has them."""
        numbers = {"index": index, "minor": minor}
        given = {key: value for key, value in numbers.items() if value is not None}
        self.set_card(bdf, lost=False, **given)

    def reboot(self, order: Sequence[str] = ()) -> None:
        """Reboot; `order` (addresses of all cards) numbers indexes and minors anew."""
        self._change("reboot", "rebooted", lambda machine: boot.rebooted(machine, order))

    def destroy(self) -> None:
        """Remove the machine's files, and `root` unless something else lies in it."""
        if not self._store.exists():
            raise self._store.missing()
        files.remove_all(self.root)

    def _make(
        self, first: MachineState, described: Mapping[str, Any], *, plain: bool, replace_other: bool
    ) -> None:
        self._description_file.parent.mkdir(parents=True, exist_ok=True)
        with self._store.locked():
            found = self._description()
            if found not in (None, described) and not replace_other:
                raise Refused(
                    f"{self.root} holds a machine of another description",
                    remedy="destroy it first, or create with --replace",
                )
            readable = self._store.readable() or not replace_other
            if found != described or not readable:
                # The description goes first and comes last: a kill in between starts over.
                self._description_file.unlink(missing_ok=True)
                self._store.record.clear()
                self._store.write(first, self._entry("create", "created", changed=True))
                self._store.replace_file(self._description_file.name, json.dumps(described))
            char = not plain and files.can_make_devices(self._description_file.parent)
            files.write_wrapper(self.root)
        self._change("create", "files put right", lambda now: now._replace(char_devices=char))

    def _description(self) -> Any:
        try:
            text = self._description_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return json.loads(text)

    def _change(
        self,
        command: str,
        outcome: str,
        change: Callable[[MachineState], MachineState],
        *,
        card: str | None = None,
    ) -> None:
        with self._store.transaction() as transaction:
            machine = change(transaction.machine)
            changed = machine.cards != transaction.machine.cards
            entry = self._entry(command, outcome, changed=changed, card=card)
            transaction.commit(machine, entry)
            # In the lock, so that the tree cannot be that of an older state than the file.
            files.synchronize(self.root, tree(machine))

    def _entry(
        self, command: str, outcome: str, *, changed: bool, card: str | None = None
    ) -> RecordLine:
        return RecordLine(
            sequence=0,
            time=self._clock(),
            pid=os.getpid(),
            argv=("gcu-simulator", command),
            command=command,
            event="end",
            mutates=True,
            changed=changed,
            card=card,
            exit_code=0,
            outcome=outcome,
        )
