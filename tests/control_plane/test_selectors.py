"""Selectors as a real kube-scheduler evaluates them, and as we do: the verdicts must be the same.

The scheduler's verdict shows in what it makes of a claim: allocated, "cannot allocate all claims",
or an error of the pod. Devices here have no taint, so that it is the scheduler who allocates, and
the claims ask for adminAccess, so that one device serves them all.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.kube.errors import Invalid
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.errors import InvalidValue
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.selector import Selectors
from tests.cluster.cluster import Cluster
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.waiting import wait_until
from tests.control_plane.objects import pod_with, resource_slice
from tests.unit.selector.expressions.list_attributes import LIST_ATTRIBUTES, LIST_DEVICE
from tests.unit.selector.expressions.table import (
    DEVICE,
    DRIVER,
    THEMES,
    THEMES_SINCE_1_37,
    TOO_COSTLY,
    Theme,
    spelled,
)

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
SHARED: Final[dict[str, Any]] = {
    "name": "shared-0000-0d-00-0",
    "attributes": {"type": {"string": "shared"}, "memoryMiB": {"int": -1}},
    "capacity": {"slices": {"value": "6", "requestPolicy": {"default": "1"}}},
    "allowMultipleAllocations": True,
}

_SECONDS: Final = 90.0
_THREADS: Final = 8


class Verdict(Enum):
    MATCHES = "matches"
    DIFFERS = "does not match"
    FAILS = "cannot be evaluated"


@dataclass(frozen=True, slots=True)
class Case:
    """An expression asked of one machine's only device, and what the table says of it."""

    name: str
    expression: str
    machine: str
    expected: Verdict | None = None


@pytest.fixture
def machines(control_plane: Cluster, api: Client) -> Iterator[dict[str, SelectorInput]]:
    """A node with DEVICE and one with a shared device; with what our evaluator knows of each."""
    made = {f"twin-{secrets.token_hex(3)}": device for device in (DEVICE, SHARED)}
    stored = {}
    for name, device in made.items():
        control_plane.add_node_object(name, {"machine": name}, {"pods": "1000"})
        published = api.create(RESOURCE_SLICES, resource_slice(name, [device]))
        # What the API server hands out, its own spelling of quantities with it.
        stored[name] = SelectorInput.of(DRIVER, published["spec"]["devices"][0])
    yield stored
    for name in made:
        api.delete(RESOURCE_SLICES, f"{name}-0")
        api.delete(NODES, name)


@pytest.fixture
def scheduler(control_plane: Cluster, api: Client, namespace: str) -> ScheduledClaims:
    return ScheduledClaims(control_plane, api, namespace)


class ScheduledClaims:
    """Claims, each with a pod that needs it, and what the scheduler has decided of them."""

    def __init__(self, cluster: Cluster, api: Client, namespace: str) -> None:
        self._cluster = cluster
        self._api = api
        self._namespace = namespace
        self._class = f"twins-{secrets.token_hex(3)}"
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        api.patch(Resource("", "v1", "namespaces", "Namespace", False), namespace, label)
        api.create(
            CLASSES,
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": self._class},
                "spec": {},
            },
        )

    def verdicts(self, cases: list[Case]) -> dict[str, Verdict]:
        """By the name of the case. Raises WaitTimeout where the scheduler does not decide.

        Nothing is left of the claims: a report on hundreds of pods would hide what failed.
        """
        try:
            with ThreadPoolExecutor(_THREADS) as pool:
                stored = [*pool.map(self._ask, cases)]
            asked = {case.name for case, accepted in zip(cases, stored, strict=True) if accepted}
            refused = dict.fromkeys({case.name for case in cases} - asked, Verdict.FAILS)
            return refused | self._decisions(asked)
        finally:
            self._remove()

    def _decisions(self, names: set[str]) -> dict[str, Verdict]:
        found: dict[str, Verdict] = {}

        def all_decided() -> bool:
            found.update(self._decided(names - found.keys()))
            return names <= found.keys()

        wait_until(
            all_decided,
            _SECONDS,
            "a decision on each claim",
            seen=lambda: f"undecided: {sorted(names - found.keys())[:5]}",
            interval=0.5,
        )
        return found

    def _remove(self) -> None:
        """All at once: the namespace's own way takes some tenths of a second for each claim."""
        pods = f"/api/v1/namespaces/{self._namespace}/pods?gracePeriodSeconds=0"
        self._cluster.kubectl("delete", f"--raw={pods}")
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(self._release, self._listed(RESOURCE_CLAIMS)))
        self._api.delete(CLASSES, self._class)

    def _ask(self, case: Case) -> bool:
        """Whether the API server accepted the expression."""
        exactly = {
            "deviceClassName": self._class,
            "adminAccess": True,
            "selectors": [{"cel": {"expression": case.expression}}],
        }
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": case.name, "namespace": self._namespace},
            "spec": {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}},
        }
        try:
            self._api.create(RESOURCE_CLAIMS, claim)
        except Invalid:
            return False
        where = {"machine": case.machine}
        pod = pod_with(case.name, self._namespace, case.name, nodeSelector=where)
        self._api.create(PODS, pod)
        return True

    def _decided(self, names: set[str]) -> dict[str, Verdict]:
        decided = {
            claim["metadata"]["name"]: Verdict.MATCHES
            for claim in self._listed(RESOURCE_CLAIMS)
            if (claim.get("status") or {}).get("allocation")
        }
        for pod in self._listed(PODS):
            for condition in (pod.get("status") or {}).get("conditions") or ():
                message = condition.get("message", "")
                if "CEL runtime error" in message:
                    decided[pod["metadata"]["name"]] = Verdict.FAILS
                elif "cannot allocate all claims" in message:
                    decided[pod["metadata"]["name"]] = Verdict.DIFFERS
        return {name: verdict for name, verdict in decided.items() if name in names}

    def _listed(self, resource: Resource) -> list[Object]:
        return list(self._api.list(resource, namespace=self._namespace).items)

    def _release(self, claim: Object) -> None:
        name, namespace = claim["metadata"]["name"], self._namespace
        patch = partial(self._api.patch, RESOURCE_CLAIMS, name, namespace=namespace)
        if (claim.get("status") or {}).get("allocation"):
            patch({"status": None}, subresource="status")
            patch({"metadata": {"finalizers": None}})
        self._api.delete(RESOURCE_CLAIMS, name, namespace=namespace)


def expected_of(theme: Theme) -> list[tuple[str, Verdict]]:
    """Each expression with what the table says of it."""
    return [
        (expression, expected)
        for expressions, expected in (
            (theme.matches, Verdict.MATCHES),
            (theme.differs, Verdict.DIFFERS),
            (theme.fails, Verdict.FAILS),
        )
        for expression in expressions
    ]


SINCE_1_37: Final = {
    "dyn(1).orValue(2) == 1 && dyn(optional.of(1)).orValue(2) == 1": Verdict.FAILS,
    "cel.bind(a, optional.of(dyn(optional.of(1))), a.value() == 1)": Verdict.DIFFERS,
    "optional.of(1).optMap(x, dyn(optional.of(2))) == optional.of(optional.of(2))": Verdict.MATCHES,
    'cel.bind(v, device.attributes["gcu.enflame.com"].?firmware, v.value().major() == 1)': (
        Verdict.MATCHES
    ),
    '"abc".indexOf("", 10) == 10 && "abc".lastIndexOf("") == 3': Verdict.DIFFERS,
}
"""What cel-go 0.29 makes of some that the table, and our evaluator, have as 0.26 does (Kubernetes
1.34 to 1.36): optional values in optional values, and the position of an empty string."""

SINCE_1_38: Final = SINCE_1_37 | {
    "0.0 / 0.0 < 1.0": Verdict.DIFFERS,
    "optional.of(1).optMap(x, dyn(optional.of(2))) == optional.of(optional.of(2))": Verdict.FAILS,
}
"""The same of cel-go 0.33: what is no number is in no order, and that is no error; the other one is
too costly, by the API server's estimate."""


def cases(machines: dict[str, SelectorInput], since: Mapping[str, Verdict]) -> list[Case]:
    """The table for the first machine; what reads devices, for the second as well. What `since`
    has is of that verdict on the first, and not asked on the second."""
    first, second = machines
    themes = THEMES | THEMES_SINCE_1_37 if since else THEMES
    asked = [each for theme in themes.values() for each in expected_of(theme)]
    asked += [(expression, Verdict.FAILS) for expression in TOO_COSTLY]
    found = [
        Case(f"first-{n}", spelled(expression), first, since.get(spelled(expression), expected))
        for n, (expression, expected) in enumerate(asked)
    ]
    found += [
        Case(f"second-{n}", spelled(expression), second)
        for n, (expression, _) in enumerate(asked)
        if any(word in expression for word in ("device.", "GCU", "K8S", "CAPACITY"))
        and spelled(expression) not in since
    ]
    return found


def ours(selectors: Selectors, case: Case, device: SelectorInput) -> Verdict:
    try:
        matches = selectors.matches(case.expression, device)
    except InvalidValue:
        return Verdict.FAILS
    return Verdict.MATCHES if matches else Verdict.DIFFERS


def _since(cluster: Cluster) -> Mapping[str, Verdict]:
    """What kube-scheduler of that version makes of some, unlike the table."""
    major, minor = map(int, cluster.release.minor.split("."))
    if (major, minor) < (1, 37):
        return {}
    return SINCE_1_37 if (major, minor) == (1, 37) else SINCE_1_38


def test_a_real_scheduler_comes_to_the_same_verdicts(
    machines: dict[str, SelectorInput], scheduler: ScheduledClaims, control_plane: Cluster
) -> None:
    since = _since(control_plane)
    asked = cases(machines, since)
    theirs = scheduler.verdicts(asked)
    selectors = Selectors()
    never_stored = {spelled(expression) for expression in TOO_COSTLY}
    wrong = [
        f"{case.expression!r} on {case.name}: {theirs[case.name].value}, not {said.value}"
        for case in asked
        for said in (
            case.expected,
            None if case.expression in since else ours(selectors, case, machines[case.machine]),
        )
        if said not in (None, theirs[case.name]) and case.expression not in never_stored
    ]
    counts = Counter(theirs.values())
    assert len(asked) > 300
    assert min(counts[verdict] for verdict in Verdict) > 20
    assert not wrong, "\n".join(wrong)
    assert all(theirs[c.name] is Verdict.FAILS for c in asked if c.expression in never_stored)


@pytest.fixture
def with_lists(cluster_report: Callable[[str], None]) -> Iterator[Cluster]:
    """A control plane where attributes can be lists, which is off by default."""
    gates = {"DRAListTypeAttributes": True}
    settings = Settings(f"lists-{os.getpid()}", keep_nodes_ready=True, feature_gates=gates)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    yield cluster
    cluster.down()


def test_list_attributes_as_a_real_scheduler_sees_them(with_lists: Cluster) -> None:
    with_lists.kubectl("create", "namespace", "lists")
    with_lists.add_node_object("twin", {"machine": "twin"}, {"pods": "1000"})
    asked = [
        Case(f"list-{n}", spelled(expression), "twin", expected)
        for n, (expression, expected) in enumerate(expected_of(LIST_ATTRIBUTES))
    ]
    with closing(connect(with_lists.kubeconfig, effects=Effects(), user_agent="tests/1")) as api:
        published = api.create(RESOURCE_SLICES, resource_slice("twin", [LIST_DEVICE]))
        theirs = ScheduledClaims(with_lists, api, "lists").verdicts(asked)
    device = SelectorInput.of(DRIVER, published["spec"]["devices"][0])
    selectors = Selectors()
    told = {case.expression: theirs[case.name] for case in asked}
    assert told == {case.expression: case.expected for case in asked}
    assert told == {case.expression: ours(selectors, case, device) for case in asked}
