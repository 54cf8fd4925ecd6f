"""The controller's webhook where kube-scheduler allocates: the gate of pods whose node is named,
which is not set where nobody would lift it; and the amounts of claims."""

from __future__ import annotations

import datetime as dt
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.errors import KubeError, NotFound
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.kube.scheduling_gate import has_gate
from dra_driver.model.claims.claim import ClaimRef, Object, results
from dra_driver.model.claims.measures import instance_shares, share_of_units, slice_shares
from dra_driver.model.mode import Mode
from dra_driver.model.names import (
    ALLOCATOR_SCHEDULER,
    CLASS_PART,
    CLASS_WHOLE,
    DRIVER,
    RESOURCE_MEMORY,
)
from dra_driver.node.plan import planned_devices
from tests.chart.helm import RELEASE
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.pki import Authority, KeyPair
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.cards import in_all_modes, table
from tests.control_plane.conftest import Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.driver import Driver, rendered
from tests.control_plane.legacy import asking
from tests.control_plane.nominating import (
    NAMES_NODES,
    bound,
    counts,
    followed,
    machines,
    nominating,
)
from tests.control_plane.objects import NAMESPACES, TEMPLATES, claim, pod_with, template
from tests.control_plane.program_process import ProgramProcess
from tests.control_plane.webhook_address import WEBHOOKS, call_directly

pytestmark = pytest.mark.control_plane

__all__ = ["nominating"]  # a fixture

VALID: Final = dt.timedelta(days=1)
EXPIRED: Final = dt.timedelta(minutes=-1)
PATIENT_LEASE: Final = ("--lease-duration=120", "--lease-renew-deadline=100")
"""Nobody takes over from a leader that is stopped for a moment."""


class GateWebhook:
    """The chart's webhook for new pods, served by a controller of the test's."""

    def __init__(self, scene: Scene, start_controller: Start, folder: Path) -> None:
        self._scene = scene
        self._start_controller = start_controller
        self._authority = Authority(folder)
        scene.api.create(RESOURCE_CLAIMS, claim("asked", scene.namespace))

    def issue(self, lifetime: dt.timedelta = VALID) -> KeyPair:
        """A certificate, in place of the one before."""
        addresses = (self._scene.cluster.machine_address,)
        return self._authority.server("webhook", addresses, lifetime=lifetime)

    def serve(self, *flags: str, pair: KeyPair, name: str = "replica-0") -> ControllerProcess:
        """Start a controller with the webhook, which API servers are told of."""
        process = self._start_controller(
            *flags,
            f"--webhook-certificate={pair.certificate}",
            f"--webhook-key={pair.key}",
            "--webhook-port=0",
            "--webhook-drain=0",
            name=name,
        )
        words = "serving the admission webhook on port "
        process.wait_for_log(words)
        port = int(process.log().partition(words)[2].split()[0])
        api, address = self._scene.api, self._scene.cluster.machine_address
        call_directly(api, address, port, self._authority.certificate)
        configuration = api.get(WEBHOOKS, DRIVER)
        for each in configuration["webhooks"]:
            each["timeoutSeconds"] = 30  # a machine with other work may need more than one
        api.replace(WEBHOOKS, configuration)
        return process

    def gates(self) -> bool:
        """Whether a pod that came now would have the gate."""
        made = pod_with("tried", self._scene.namespace, "asked")
        return has_gate(self._scene.api.create(PODS, made, dry_run=True))

    def wait_until_it_gates(self, gates: bool = True) -> None:
        wait_until(
            lambda: self.gates() is gates,
            PATIENCE,
            f"new pods {'with' if gates else 'without'} gate",
        )


@pytest.fixture
def webhook(scene: Scene, start_controller: Start, tmp_path: Path) -> Iterator[GateWebhook]:
    before = scene.api.get(WEBHOOKS, DRIVER)
    yield GateWebhook(scene, start_controller, tmp_path)
    with suppress(NotFound):
        scene.api.delete(WEBHOOKS, DRIVER)
    kept = {key: before["metadata"].get(key) for key in ("name", "labels", "annotations")}
    scene.api.create(WEBHOOKS, before | {"metadata": kept})


def create(scene: Scene, name: str, *, cards: int = 1) -> Object:
    """A claim for cards and a pod that uses it; gives the pod as it was stored."""
    scene.api.create(RESOURCE_CLAIMS, claim(name, scene.namespace, count=cards))
    return scene.api.create(PODS, pod_with(name, scene.namespace, name))


def test_while_its_certificate_has_expired(scene: Scene, webhook: GateWebhook) -> None:
    """Pods are served without a gate, and counted; they have one again with the next certificate,
    without a restart."""
    machines(scene, 2, 0)
    controller = webhook.serve(*NAMES_NODES, pair=webhook.issue(EXPIRED))
    controller.wait_for_log("begins")

    def is_rejected() -> bool:
        return not webhook.gates() and "was not served" in controller.log()

    wait_until(is_rejected, PATIENCE, "a call that fails", seen=controller.log)
    assert not has_gate(create(scene, "first"))
    bound(scene, "first")
    assert not has_gate(create(scene, "without-room", cards=2))
    arrived = partial(counts, controller, "arrived_pods", "gated")
    wait_until(lambda: arrived()["false"] > 0.0, PATIENCE, "a pod that came without the gate")
    webhook.issue()
    webhook.wait_until_it_gates()
    assert has_gate(create(scene, "second"))
    bound(scene, "second")
    assert followed(controller, 1) == 1


def test_while_nobody_leads(scene: Scene, webhook: GateWebhook, start_controller: Start) -> None:
    """The webhook is another replica's, which sees that the lease is not renewed."""
    machines(scene, 1, 0)
    leader = start_controller(*NAMES_NODES, *PATIENT_LEASE, name="replica-leader")
    leader.wait_for_log("begins")
    other = webhook.serve(*NAMES_NODES, *PATIENT_LEASE, pair=webhook.issue(), name="replica-other")
    webhook.wait_until_it_gates()
    leader.suspend()
    webhook.wait_until_it_gates(False)
    assert not has_gate(create(scene, "pod"))
    bound(scene, "pod")
    assert "begins" not in other.log()
    leader.signal(signal.SIGCONT)
    webhook.wait_until_it_gates()


def by_memory(mib: int, **more: str) -> Object:
    """``spec`` of a claim for a part of a card."""
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "memory": f"{mib}Mi", **more}
    return {
        "devices": {
            "requests": [{"name": "gcu", "exactly": {"deviceClassName": CLASS_PART}}],
            "config": [{"opaque": {"driver": DRIVER, "parameters": parameters}}],
        }
    }


def prepared(claim: Object, memory_mib: int) -> tuple[str, int | None]:
    """The request that was served and the amount, as the node of such a card would prepare it."""
    found = {
        Mode.SHARED: slice_shares(6, memory_mib // 6),
        Mode.DRS: instance_shares(table(1, 3, 6).text.split(","), 12),
    }
    [result] = results(claim)
    [device] = planned_devices(
        claim,
        ClaimRef.of(claim),
        pool=result.pool,
        share=lambda each: share_of_units(found[each.mode], each.amount),
    )
    return result.request, device.amount


def test_amounts_of_claims_are_written(scene: Scene, webhook: GateWebhook) -> None:
    """20 GiB are three slices of one model and one of the other. Claims of templates and of limits
    are written as well as one that somebody makes. Other claims do not wait for the webhook."""
    api, namespace = scene.api, scene.namespace
    [small] = machines(scene, 1, 1)
    other = in_all_modes(1, allocator=ALLOCATOR_SCHEDULER, model="L600", memory_mib=144_000)
    large = scene.machines.add(other)
    controller = webhook.serve(*NAMES_NODES, pair=webhook.issue())
    webhook.wait_until_it_gates()
    shared = by_memory(20480, isolation="best-effort")
    api.create(TEMPLATES, template("part", namespace) | {"spec": {"spec": shared}})
    for name, node in (("on-small", small), ("on-large", large)):
        selector = {"machine": node}
        api.create(PODS, pod_with(name, namespace, template="part", nodeSelector=selector))
    own = claim("own", namespace) | {"spec": by_memory(7000, isolation="best-effort")}
    stored = api.create(RESOURCE_CLAIMS, own)
    api.create(PODS, pod_with("own", namespace, "own", nodeSelector={"machine": large}))

    def served(pod: str, memory_mib: int) -> tuple[str, int | None]:
        bound(scene, pod)
        [made] = scene.eyes.pod(pod)["status"]["resourceClaimStatuses"]
        return prepared(scene.eyes.claim(made["resourceClaimName"]), memory_mib)

    assert served("on-small", 42976) == ("gcu/slices-3", 3)
    assert served("on-large", 144_000) == ("gcu/slices-1", 1)
    assert bound(scene, "own") == [large]
    assert prepared(scene.eyes.claim("own"), 144_000) == ("gcu", 1)
    scene.eyes.end("on-small")
    api.create(PODS, asking(namespace, {RESOURCE_MEMORY: "20480"}, nodeSelector={"machine": small}))
    assert served("legacy", 42976) == ("gcu-0", 3)  # limits are for an instance

    metadata = scene.eyes.claim("own")["metadata"]
    applied = api.replace(RESOURCE_CLAIMS, own | {"metadata": metadata | {"labels": {"a": "b"}}})
    assert (applied["spec"], applied["metadata"]["labels"]) == (stored["spec"], {"a": "b"})
    controller.end()
    api.create(RESOURCE_CLAIMS, claim("card", namespace))
    with pytest.raises(KubeError, match=f"capacity.{DRIVER}"):
        api.create(RESOURCE_CLAIMS, own | {"metadata": claim("late", namespace)["metadata"]})


def test_administrators_see_cards_that_others_hold(scene: Scene, webhook: GateWebhook) -> None:
    """They hold nothing, and the cards stay with their holders and free for others. The claim can
    be applied again."""
    api, namespace = scene.api, scene.namespace
    machines(scene, 1, 0, 1, 2)
    webhook.serve(*NAMES_NODES, pair=webhook.issue())
    webhook.wait_until_it_gates()
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    api.patch(NAMESPACES, namespace, label)
    create(scene, "worker", cards=2)
    bound(scene, "worker")
    made = claim("monitor", namespace)
    exactly = {"deviceClassName": CLASS_WHOLE, "allocationMode": "All", "adminAccess": True}
    made["spec"] = {"devices": {"requests": [{"name": "gcus", "exactly": exactly}]}}
    stored = api.create(RESOURCE_CLAIMS, made)
    api.create(PODS, pod_with("monitor", namespace, "monitor"))
    bound(scene, "monitor")
    seen = results(scene.eyes.claim("monitor"))
    assert [each.device[:-5] for each in seen] == [f"admin-0000-{bus:02x}" for bus in range(3)]
    assert all(each.admin_access for each in seen)
    create(scene, "beside")
    bound(scene, "beside")
    scene.eyes.no_card_twice(["worker", "beside"])
    metadata = scene.eyes.claim("monitor")["metadata"] | {"labels": {"a": "b"}}
    applied = api.replace(RESOURCE_CLAIMS, made | {"metadata": metadata})
    assert (applied["spec"], applied["metadata"]["labels"]) == (stored["spec"], {"a": "b"})


@pytest.fixture
def uninstall_kubeconfig(scene: Scene, driver: Driver, tmp_path: Path) -> Iterator[Path]:
    """Of the account that exists while helm uninstalls."""
    release = scene.cluster.release
    values = {
        **release.chart_values,
        "allocator": "scheduler",
        "schedulerVersion": release.version,
    }
    objects = rendered(scene.cluster, tmp_path, "uninstall/check.yaml", values)
    account = [each for each in objects if each["kind"] != "Job"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": account})
    scene.cluster.kubectl("create", "--filename=-", stdin=text)
    yield driver.kubeconfig("uninstall", tmp_path / "uninstall")
    scene.cluster.kubectl("delete", "--filename=-", stdin=text)


@contextmanager
def pods_being_made(scene: Scene) -> Iterator[list[Object]]:
    """One after the other until the end; gives those that are there."""
    made: list[Object] = []
    stopped = threading.Event()

    def make() -> None:
        while not stopped.wait(0.1):
            pod = pod_with(f"pod-{len(made)}", scene.namespace, "asked")
            made.append(scene.api.create(PODS, pod))

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield made
    finally:
        stopped.set()
        thread.join()


def test_an_uninstall_while_pods_are_made(
    scene: Scene, webhook: GateWebhook, uninstall_kubeconfig: Path, tmp_path: Path
) -> None:
    """As helm runs it before it deletes anything. The controller goes on meanwhile."""
    webhook.serve(*NAMES_NODES, pair=webhook.issue())
    webhook.wait_until_it_gates()
    with pods_being_made(scene) as made:
        wait_until(lambda: len(made) > 5, PATIENCE, "some pods")
        program = ProgramProcess(
            "dra_driver.uninstall.check",
            tmp_path / "uninstall.log",
            f"--kubeconfig={uninstall_kubeconfig}",
            f"--release={RELEASE}",
            f"--release-namespace={DRIVER_NAMESPACE}",
            "--revision=1",
            "--lift-gates=true",
        )
        assert program.wait() == 0, program.log()
        before = len(made)
        wait_until(lambda: len(made) > before + 5, PATIENCE, "pods after it")
    assert has_gate(made[0])
    assert not any(map(has_gate, made[before + 1 :]))
    assert not any(map(has_gate, scene.api.list(PODS, namespace=scene.namespace).items))
