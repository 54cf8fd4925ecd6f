"""One card of a real node: claims for it, and what the machine itself says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dra_driver.model.mode import Mode
from dra_driver.simulator.machine import SimulatedMachine
from dra_driver.simulator.record import RecordLine
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.events import notes
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.seen import assert_sees_what_was_granted

Object = dict[str, Any]


class OneCard:
    """The first card of the first node; its claims and pods are those of a namespace."""

    def __init__(self, driver: Installation, namespace: str) -> None:
        self.driver = driver
        self.cluster = driver.cluster
        self.namespace = namespace
        self.scope = f"--namespace={namespace}"
        self.node = driver.cluster.nodes[0]
        self.machine: SimulatedMachine = driver.machine(self.node.name)
        self.card = self.machine.state().cards[0].bdf
        self._recorded = len(self.machine.record())

    def apply(self, name: str, mode: Mode, amount: int | None = None) -> None:
        """A claim for something of the card, and a pod that uses it."""
        selector = {"kubernetes.io/hostname": self.node.name}
        self.cluster.apply(
            claim_in(mode, name, self.namespace, amount, card=self.card),
            pod_with(name, self.namespace, nodeSelector=selector),
        )

    def run(self, name: str, mode: Mode, amount: int | None = None) -> None:
        """As `apply`; returns when the pod runs and has what it was given."""
        self.apply(name, mode, amount)
        self.wait_for(name)

    def wait_for(self, *names: str) -> None:
        wait_for_pods(self.cluster, self.namespace, *names)
        for name in names:
            assert_sees_what_was_granted(self.driver, self.cluster.get("pod", name, self.scope))

    def end(self, *names: str) -> None:
        """Delete pods; returns when they are gone."""
        self.cluster.delete_pods(self.namespace, *names)

    def wait_until(self, predicate: Callable[[], bool], what: str) -> None:
        """Return when it is so. Raises WaitTimeout."""
        wait_until(predicate, PATIENCE, what, seen=self._seen)

    def wait_for_words(self, name: str, reason: str, words: str) -> None:
        """Return when an event on the pod of that name, and no other, has these words."""
        wait_until(
            lambda: any(words in note for note in self._notes(name, reason)),
            PATIENCE,
            f"an event {reason} of pod {name} with {words!r}",
            seen=lambda: str(self._notes(name, reason)),
        )

    def status_devices(self, name: str) -> list[Object]:
        """The claim's ``status.devices``, once somebody has written it."""
        return wait_until(
            lambda: self._claim(name)["status"].get("devices"),
            PATIENCE,
            f"status.devices of {name}",
        )

    def profiles(self) -> list[str]:
        """The profiles of the card's instances, as the machine has them."""
        return sorted(one.profile for one in self.machine.instances(self.card))

    def virtualization(self) -> str:
        return self.machine.card(self.card).virtualization

    def begun(self) -> list[str]:
        """The commands for the card that have begun since the test did, to change something."""
        return [entry.command for entry in self._entries() if entry.event == "begin"]

    def changes(self) -> list[str]:
        """The commands that have changed the card since the test began."""
        return [entry.command for entry in self._entries() if entry.changed]

    def tainted(self, key: str) -> bool:
        """Whether all devices of the card have a taint of that key; raises where only some have."""
        found = {
            any(taint["key"] == key for taint in device.get("taints", ()))
            for device in self.driver.devices(self.node.name)
            if device["attributes"]["card"]["string"] == self.card
        }
        [answer] = found
        return answer

    def _entries(self) -> list[RecordLine]:
        return [e for e in self.machine.record()[self._recorded :] if e.card == self.card]

    def _seen(self) -> str:
        return f"{self.virtualization()} {self.profiles()} {self.driver.cdi_files(self.node)}"

    def _claim(self, name: str) -> Object:
        return self.cluster.get("resourceclaim", name, self.scope)

    def _notes(self, name: str, reason: str) -> Sequence[str]:
        return notes(self.driver, self.namespace, "Pod", reason, name)
