"""One random history of a node: claims of all modes, kills, faults, reboots; reproducible by seed.

What is outside (the simulator's cards, the CDI directory) is compared with what the API server's
claims say after each step. While a fault is on, or a card lost, what the journal accounts for may
differ; once it is `calm` again, nothing may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import GcuError
from dra_driver.node.claims.failures import TRIES
from tests.unit.node.damage import damage
from tests.unit.node.disasters import Disasters
from tests.unit.node.outside import NODE_CARDS
from tests.unit.node.rush import Asked, Rush


class History(Disasters):
    """The kubelet's calls, mixed with disasters: `run` plays it."""

    def run(self, most: int) -> None:
        """Up to `most` steps, then rest: at the end nothing is left."""
        actions = {
            self._come: 8,
            self._go: 5,
            self._rush: 3,
            self._again: 2,
            self._reuse: 1,
            self._delete: 1,
            self._recreate: 1,
            self._renew: 2,
            self._restart: 1,
            self._restart_kubelet: 1,
            self._look: 1,
        }
        disasters = {
            self._reboot: 2,
            self._lose: 2,
            self._return: 1,
            self._meddle: 3,
            self._fault: 3,
            self._calm: 3,
            self._damage: 1,
        }
        for _ in range(self.random.randint(1, most)):
            chosen = actions if self.random.random() < 0.8 else disasters
            (action,) = self.random.choices(list(chosen), list(chosen.values()))
            action()
            self._check()
        self._calm()
        self._check()
        self._end()

    def _check(self) -> None:
        self.outside.check(disturbed=self.disturbed, held=self.agent.held())

    def _come(self) -> None:
        self._try(self._new(self.random.randrange(len(NODE_CARDS))))

    def _try(self, uid: str) -> None:
        fits = self.outside.fits(uid)
        done = self._prepare(uid)
        if None not in (done, fits) and not self.disturbed:
            assert done == fits, self.told[-1]

    def _rush(self) -> None:
        """Several calls at once, as of pods that start and end together."""
        old, card = list(self.outside.claims), self.random.randrange(len(NODE_CARDS))
        new = [self._new(card) for _ in range(self.random.choice((1, 2, 2, 3)))]
        rush = Rush.of(self.outside, self.random, new, old)
        self.told.append(f"at once: {', '.join(map(str, rush.calls))}")
        for call in rush.calls:
            if call.verb == "unprepare":
                self._kubelet.asks_back(call.uid)
        found = self._attempt(lambda: self._turns.play([self._made(call) for call in rush.calls]))
        if found is None:
            return
        done = [not isinstance(answer, GcuError) for answer in found]
        self.told.append(f"  done: {done}")
        if not self.disturbed:
            rush.judge(done)
        for call, ok in zip(rush.calls, done, strict=True):
            # Prepared again since, it stays: the kubelet knows of it.
            if ok and call.verb == "unprepare" and call.uid not in self.outside.prepared():
                self._forget(call.uid)

    def _made(self, call: Asked) -> Callable[[], object]:
        if call.verb == "look":
            return self._reconcile
        ref = ClaimRef.of(self.outside.claims[call.uid])
        work = self.agent.preparer
        if call.verb == "unprepare":
            return lambda: work.unprepare([ref])[call.uid]
        return lambda: work.prepare([ref])[call.uid]

    def _again(self) -> None:
        for uid in self._one():
            self.told.append(f"{uid}: prepare again")
            known = self.outside.is_answered(uid)
            done = self._prepare(uid)
            assert done is not False or not known or self.disturbed, self.told[-1]

    def _go(self) -> None:
        for uid in self._one():
            self._leave(uid)

    def _leave(self, uid: str) -> bool:
        """Whether the pod has ended; the kubelet asks again, perhaps only later."""
        for _ in range(self.random.choice((1, 1, TRIES))):
            self.told.append(f"{uid}: unprepare")
            self._kubelet.asks_back(uid)
            if self._call(self._made(Asked("unprepare", uid))):
                self._forget(uid)
                return True
        return False

    def _reuse(self) -> None:
        """A claim outlives its pod, and is allocated anew for the next one."""
        for uid in self._one():
            metadata = self.outside.claims[uid]["metadata"]
            if not self._leave(uid):
                return
            card = self.random.randrange(len(NODE_CARDS))
            made = self._allocations.make(metadata["name"], card)
            self._add({**made, "metadata": metadata})
            self.told.append(f"{uid}: allocated anew on {NODE_CARDS[card]}")
            self._try(uid)

    def _renew(self) -> None:
        """A claim is allocated anew, for a kubelet that has not had it unprepared."""
        for uid in self._one():
            former = self.outside.claims[uid]
            metadata = former["metadata"]
            made = self._allocations.like(former, self.random.randrange(len(NODE_CARDS)))
            if made is None or self.world.api.claims.get(("team", metadata["name"])) != former:
                return
            self.outside.former.setdefault(uid, []).append(former)
            self._kubelet.renew(uid)
            self._add({**made, "metadata": metadata})
            self.told.append(f"{uid}: renewed as {[r.device for r in self.outside.wanted(uid)]}")
            self._prepare(uid)

    def _damage(self) -> None:
        """All records of a claim are damaged, and the agent that runs reads the journal anew."""
        prepared = sorted(self.outside.prepared())
        if not prepared:
            return
        uid = self.random.choice(prepared)
        self.told.append(f"{uid}: records damaged")
        self.agent.journal.close()
        damage(self.world.root / "state" / "journal", f'"uid":"{uid}"')
        self.agent.journal.snapshot()
        what = self.random.choice(("again", "leave", "look"))
        if what == "again":
            # Of a claim that is gone only the file tells, which a look takes in.
            known = self.outside.is_answered(uid) and self.outside.exists(uid)
            done = self._prepare(uid)
            assert done is not False or not known or self.disturbed, self.told[-1]
        elif what == "leave":
            self._leave(uid)
        self._look()

    def _recreate(self) -> None:
        """A claim of the same name is another claim, while the former's pod has not ended."""
        for uid in self._one():
            self.told.append(f"{uid}: deleted and made anew")
            self._serial += 1
            former = self.outside.claims[uid]
            metadata = {**former["metadata"], "uid": f"uid-again-{self._serial}"}
            self._prepare(self._add({**former, "metadata": metadata}))

    def _delete(self) -> None:
        """A claim is gone from the API server, by force: its pod still runs."""
        for uid in self._one():
            self.told.append(f"{uid}: deleted")
            metadata = self.outside.claims[uid]["metadata"]
            self.world.api.claims.pop((metadata["namespace"], metadata["name"]), None)

    def _restart_kubelet(self) -> None:
        """It asks again for whatever its pods have, of which nothing may have changed."""
        self.told.append("kubelet restarts")
        for uid in sorted(self.outside.prepared()):
            known = self.outside.is_answered(uid)
            done = self._prepare(uid)
            assert done is not False or not known or self.disturbed, self.told[-1]

    def _end(self) -> None:
        """All pods end."""
        self.told.append("end")
        for uid, each in list(self.outside.claims.items()):
            assert self.agent.preparer.unprepare([ClaimRef.of(each)]) == {uid: None}
            self._forget(uid)
            self._check()
        self.agent.journal.close()

    def _new(self, card: int) -> str:
        """A claim, allocated by somebody who does not look at others."""
        self._serial += 1
        name = f"c{self._serial}"
        uid = self._add(self._allocations.make(name, card))
        given = [(r.device, dict(r.consumed)) for r in self.outside.results(uid)]
        self.told.append(f"{name}: {given}")
        return uid

    def _forget(self, uid: str) -> None:
        """The kubelet does."""
        del self.outside.claims[uid]
        self.outside.former.pop(uid, None)
        self._kubelet.forget(uid)

    def _one(self) -> Iterator[str]:
        if self.outside.claims:
            yield self.random.choice(list(self.outside.claims))
