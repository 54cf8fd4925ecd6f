"""What happens to the node of a random history beside the calls of its kubelet."""

from __future__ import annotations

from dra_driver.model.mode import Mode
from dra_driver.simulator.commands.drs import new_uuid, place, taken
from dra_driver.simulator.state import InstanceState
from tests.unit.node.faults import FAULTS
from tests.unit.node.killed_node import NO_KILL, KilledNode
from tests.unit.node.outside import NODE_CARDS, SIZES


class Disasters(KilledNode):
    """Restarts, reboots, lost cards, people who meddle, and faults; `_calm` ends what is wrong."""

    def _restart(self) -> None:
        self.told.append("restart")
        self._start(0.3)

    def _look(self) -> None:
        self.told.append("look")
        self._call(self._reconcile)

    def _reboot(self) -> None:
        self.told.append("reboot")
        self.world.reboot()
        here = {one.uuid for card in NODE_CARDS for one in self.world.tool.instances(str(card))}
        self.outside.foreign = {
            uuid: card for uuid, card in self.outside.foreign.items() if uuid in here
        }
        self._start(0.3)

    def _lose(self) -> None:
        address = self.random.choice(NODE_CARDS)
        self.told.append(f"lose {address}")
        self.world.tool.set_card(str(address), lost=True)
        self.disturbed = True

    def _return(self) -> None:
        """A lost card is back; the agent may look."""
        for address in NODE_CARDS:
            if self.world.tool.card(str(address)).lost:
                self.told.append(f"{address} is back")
                self.world.tool.set_card(str(address), lost=False)
        if self.random.random() < 0.5:
            self._look()

    def _meddle(self) -> None:
        """Somebody makes an instance by hand, or takes it away again; the agent may look."""
        address = self.random.choice(NODE_CARDS)
        card = self.world.tool.card(str(address))
        if card.lost or self.disturbed:
            return
        mine = [one for one in card.instances if one.uuid in self.outside.foreign]
        slots = place(1, taken(card), SIZES, "any")
        left = [one for one in card.instances if one not in mine]
        if mine:
            self.told.append(f"foreign instance of {address} goes")
            mode = "DRS" if left else "Disable"
            self.world.tool.set_card(str(address), instances=tuple(left), virtualization=mode)
            del self.outside.foreign[mine[0].uuid]
        elif slots and not self.outside.given(address, Mode.WHOLE, Mode.SHARED):
            self.told.append(f"foreign instance on {address}")
            made = InstanceState(card.next_instance_id + 90, "1g.6gb", new_uuid(), slots)
            self.outside.foreign[made.uuid] = address
            there = (*card.instances, made)
            self.world.tool.set_card(str(address), instances=there, virtualization="DRS")
        if self.random.random() < 0.7:
            self._reconcile()

    def _fault(self) -> None:
        fault, times = self.random.choice(FAULTS), self.random.choice((1, 1, 2, None))
        self.told.append(f"fault {fault}, {times} times")
        self.world.tool.set_fault(fault, times=times)
        self.disturbed = True

    def _calm(self) -> None:
        """Faults end, lost cards are back, and the agent looks."""
        self.told.append("calm")
        self.world.tool.clear_faults()
        for address in NODE_CARDS:
            self.world.tool.set_card(str(address), lost=False)
        self._kill.n = NO_KILL
        self._reconcile()
        self.disturbed = False
