"""Short random histories of claims, pods and agents on the real cluster, judged from outside.

``GCU_SEED`` plays the histories of that seed again; a failed one prints its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.mode import Mode
from dra_driver.model.names import DRIVER
from dra_driver.model.profile import profile_size
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import wait_for_pods
from tests.e2e.installation import Installation
from tests.e2e.manifests import claim_in, pod_with
from tests.e2e.seen import assert_sees_what_was_granted
from tests.seed import SEED

Object = dict[str, Any]
# Per node and card, what claims were granted of it: (mode, amount).
Granted = dict[tuple[str, str], list[tuple[Mode, int]]]

_HISTORIES = 2
_STEPS = 10
_MOST_PODS = 7  # fewer than there are cards, so that all of them find one
_SLICES = 6
_AMOUNTS: dict[Mode, list[int | None]] = {
    Mode.WHOLE: [None],
    Mode.SHARED: [1, 2, 3, 4, 6],
    Mode.DRS: [1, 3, 6],
}


@dataclass
class History:
    """One history; `steps` are what was done, as a person would write it."""

    driver: Installation
    namespace: str
    random: Random
    pods: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def step(self) -> None:
        """Something happens. Nothing is waited for, so that the next step comes in its midst."""
        choices = [self.begin] if len(self.pods) < _MOST_PODS else []
        choices += [self.begin, self.end] if self.pods else []
        self.random.choice([*choices, self.kill])()

    def begin(self) -> None:
        mode = self.random.choice(list(Mode))
        amount = {
            Mode.SHARED: self.random.randint(1, _SLICES),
            Mode.DRS: self.random.choice([1, 3]),
        }
        name = f"p{len(self.steps)}"
        self.steps.append(f"begin {name}: {mode} {amount.get(mode, '')}")
        claim = claim_in(mode, name, self.namespace, amount.get(mode))
        self.driver.cluster.apply(claim, pod_with(name, self.namespace))
        self.pods.append(name)

    def end(self) -> None:
        name = self.pods.pop(self.random.randrange(len(self.pods)))
        self.steps.append(f"end {name}")
        self._delete("pod", name, f"--namespace={self.namespace}", "--wait=false")

    def kill(self) -> None:
        node = self.random.choice(list(self.driver.machines))
        self.steps.append(f"kill the agent of {node}")
        for agent in self.driver.agent_pods(node):
            how = (f"--namespace={DRIVER_NAMESPACE}", "--grace-period=0", "--force")
            self._delete("pod", agent, *how)

    def settle(self) -> list[Object]:
        """The pods, when those that were to end are gone and the others run."""
        scope = f"--namespace={self.namespace}"

        def names() -> set[str]:
            found = self.driver.cluster.get("pods", scope)["items"]
            return {pod["metadata"]["name"] for pod in found}

        wait_until(lambda: names() == set(self.pods), PATIENCE, f"no pods but {self.pods}")
        if self.pods:
            self.driver.wait_for_agents()
            # The kubelet asks again within 60 to 90 s, or when the pod changes.
            self.driver.cluster.kubectl("annotate", "pods", "--all", "again=now", scope)
            wait_for_pods(self.driver.cluster, self.namespace, *self.pods)
        found: list[Object] = self.driver.cluster.get("pods", scope)["items"]
        return found

    def _delete(self, *arguments: str) -> None:
        self.driver.cluster.kubectl("delete", *arguments)


@pytest.mark.cluster
@pytest.mark.matrix
@pytest.mark.parametrize("number", range(_HISTORIES))
def test_a_random_history_leaves_what_it_should(
    driver: Installation, namespace: str, number: int
) -> None:
    history = History(driver, namespace, Random(f"{SEED}-{number}"))
    print(f"GCU_SEED={SEED}, history {number}")
    before = {node: len(driver.machine(node).record()) for node in driver.machines}
    for _ in range(_STEPS):
        history.step()
        print(history.steps[-1])
    pods = history.settle()
    for pod in pods:
        assert_sees_what_was_granted(driver, pod)
    judge(driver, namespace, pods)
    for name in history.pods:
        driver.cluster.kubectl("delete", "pod", name, f"--namespace={namespace}", "--wait=false")
    driver.wait_for_rest()
    for node, since in before.items():
        refused = [entry for entry in driver.machine(node).record()[since:] if entry.exit_code]
        assert not refused


def judge(driver: Installation, namespace: str, pods: list[Object]) -> None:
    """No card in two modes, nothing granted twice, and on the nodes just what was granted."""
    node_of = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods}
    claims = driver.cluster.get("resourceclaims", f"--namespace={namespace}")["items"]
    granted: Granted = defaultdict(list)
    files: dict[str, set[str]] = {node: set() for node in driver.machines}
    for claim in claims:
        name = claim["metadata"]["name"]
        if name not in node_of:
            continue
        files[node_of[name]].add(f"{DRIVER}-claim-{claim['metadata']['uid']}.json")
        for result in claim["status"]["allocation"]["devices"]["results"]:
            mode, address = parse_device_name(result["device"])
            amounts = [] if mode is Mode.WHOLE else result["consumedCapacity"].values()
            granted[node_of[name], str(address)].append((mode, sum(map(int, amounts))))
    for node in driver.cluster.nodes:
        assert driver.cdi_files(node) == files[node.name]
        for card in driver.machine(node.name).state().cards:
            profiles = [one.profile for one in card.instances]
            judge_card(card.virtualization, profiles, granted[node.name, card.bdf])


def judge_card(virtualization: str, profiles: list[str], granted: list[tuple[Mode, int]]) -> None:
    modes = {mode for mode, _ in granted}
    amounts = sorted(amount for _, amount in granted)
    assert len(modes) <= 1
    assert virtualization == ("DRS" if modes == {Mode.DRS} else "Disable")
    assert sorted(map(profile_size, profiles)) == (amounts if modes == {Mode.DRS} else [])
    assert len(granted) <= 1 if modes == {Mode.WHOLE} else sum(amounts) <= _SLICES
