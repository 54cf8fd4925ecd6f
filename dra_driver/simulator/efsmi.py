"""One call of ``efsmi``: from arguments to output and exit code.

``bin/efsmi`` below a machine's root ends here. Exit codes: 0, 1 for a refusal, 2 for arguments
that make no command, or whatever a fault says (the real tool's are not public).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from dra_driver.model.errors import GcuError
from dra_driver.simulator import faults
from dra_driver.simulator.commands.command import USAGE, ParsedCall, UsageError, parse
from dra_driver.simulator.commands.operations import Effect, card_of, perform
from dra_driver.simulator.record import RecordLine
from dra_driver.simulator.state import Fault, MachineState
from dra_driver.simulator.store import Store, Transaction


class ToolOutput(NamedTuple):
    """What a caller of the tool gets."""

    exit_code: int
    stdout: bytes = b""
    stderr: str = ""


def main(root: str, argv: Sequence[str]) -> int:
    """Answer one call on the standard streams; give the exit code."""
    try:
        answer = run(root, argv)
    except GcuError as error:
        answer = ToolOutput(1, stderr=f"{error}\n")
    sys.stdout.buffer.write(answer.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.write(answer.stderr)
    return answer.exit_code


def run(
    root: str,
    argv: Sequence[str],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> ToolOutput:
    """Answer one call on the machine in `root`. Raise GcuError where there is none."""
    if list(argv) in (["-h"], ["--help"]):
        return ToolOutput(0, USAGE.encode())
    store = Store(root)
    try:
        call = _Invocation(store, tuple(argv), parse(argv), sleep, clock)
        return call.run()
    except UsageError as error:
        with store.transaction() as transaction:
            entry = _entry(argv, "usage", clock(), str(error), exit_code=2)
            transaction.commit(transaction.machine, entry)
        return ToolOutput(2, stderr=f"{error}\n{USAGE}")


class _Invocation(NamedTuple):
    store: Store
    argv: tuple[str, ...]
    command: ParsedCall
    sleep: Callable[[float], None]
    clock: Callable[[], float]

    def run(self) -> ToolOutput:
        bdf = self._bdf(self.store.read())
        # Calls that change a card queue up behind each other; other cards go on meanwhile.
        queue = self.command.mutates and bdf is not None
        with self.store.card_locked(bdf) if queue and bdf is not None else nullcontext():
            return self._run(bdf)

    def _run(self, bdf: str | None) -> ToolOutput:
        with self.store.transaction() as transaction:
            machine, met = faults.strike(transaction.machine, self.command.name, bdf)
            wait = machine.delays_ms.get(self.command.name, 0) / 1000 + faults.seconds(met)
            if not wait and not self.command.mutates:
                return self._end(transaction, machine, met, bdf)
            begin = self._entry("started", bdf, event="begin")
            transaction.commit(machine, begin)
        if wait:
            self.sleep(wait)
        with self.store.transaction() as transaction:
            answer = self._end(transaction, transaction.machine, met, bdf)
        if faults.CREATE_HANGS_AFTER_MAKING in met:
            self.sleep(met[faults.CREATE_HANGS_AFTER_MAKING].seconds)
        return answer

    def _end(
        self,
        transaction: Transaction,
        machine: MachineState,
        met: dict[str, Fault],
        bdf: str | None,
    ) -> ToolOutput:
        effect = perform(machine, self.command, met, self.clock())
        changed = effect.machine.cards != machine.cards
        entry = self._entry(effect.outcome, bdf, changed=changed, exit_code=effect.exit_code)
        transaction.commit(effect.machine, entry)
        return _answer(effect)

    def _bdf(self, machine: MachineState) -> str | None:
        try:
            card = card_of(machine, self.command)
        except GcuError:
            # `perform` refuses the call, and then it is recorded.
            return None
        return card.bdf if card else None

    def _entry(
        self,
        outcome: str,
        bdf: str | None,
        *,
        event: str = "end",
        changed: bool = False,
        exit_code: int | None = None,
    ) -> RecordLine:
        return _entry(
            self.argv,
            self.command.name,
            self.clock(),
            outcome,
            event=event,
            mutates=self.command.mutates,
            changed=changed,
            card=bdf,
            exit_code=exit_code,
        )


def _entry(
    argv: Sequence[str],
    command: str,
    now: float,
    outcome: str,
    *,
    event: str = "end",
    mutates: bool = False,
    changed: bool = False,
    card: str | None = None,
    exit_code: int | None = None,
) -> RecordLine:
    return RecordLine(
        sequence=0,  # the transaction knows it
        time=now,
        pid=os.getpid(),
        argv=tuple(argv),
        command=command,
        event=event,
        mutates=mutates,
        changed=changed,
        card=card,
        exit_code=exit_code,
        outcome=outcome,
    )


def _answer(effect: Effect) -> ToolOutput:
    error = f"{effect.error}\n" if effect.error else ""
    return ToolOutput(effect.exit_code, effect.out, error)
