"""The extender as one thing: wired from its ports, started, stopped."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.allocator.packing.policy import Policy
from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.binder import Binder
from controller.extender.bypass import BypassReporter
from controller.extender.decide import fits
from controller.extender.gcushare.annotator import AssignmentAnnotator
from controller.extender.leftover_gates import LeftoverGates
from controller.extender.retry_queue import RetryQueue
from controller.extender.service import Metrics, Service
from controller.extender.watching import NodeHandler, PodHandler
from controller.housekeeping import Housekeeping
from controller.https.certificates import AUTHORITY, CLIENT, SERVER, CertificateFiles, Certificates
from controller.https.expiry import RENEW, Expiry
from controller.https.server import HttpsServer
from controller.informers.tee import Tee
from controller.leaderelection.fence import Fence, fenced
from controller.leaderelection.leader import LeaderElector, LeaseTimes
from controller.own_pod import OwnPod
from controller.runnable import ended_thread
from controller.settings import ControllerSettings
from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.events import EventRecorder
from dra_driver.kube.resources import NODES, PODS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import CardKind, NodeCard
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import DRIVER
from dra_driver.telemetry.program import Deadline
from dra_driver.util.collection import no_collection

logger = logging.getLogger(__name__)

_INTERVAL: Final = 0.5  # seconds
_END: Final = 10.0  # seconds that stopping takes at most

_CERTIFICATES: Final = {
    SERVER: ("the certificate of the scheduler extender", RENEW),
    CLIENT: (
        "the certificate that kube-scheduler shows the extender",
        f"{RENEW}; then give the cluster's own kube-scheduler the new files, and restart it",
    ),
    AUTHORITY: (
        "the CA of the scheduler extender and of kube-scheduler",
        "replace it, and the certificates that it has issued",
    ),
}


class Extender:
    """Constructing has no effects. Raises InvalidValue where a file of the certificate is not
    named."""

    def __init__(
        self,
        settings: ControllerSettings,
        api: Api,
        registry: CollectorRegistry,
        *,
        identity: str,
        on_restored: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_restored` is called when the process must restart: etcd was restored from a backup,
        and the caches are newer than what the server has."""
        self._restart = on_restored
        clock, now_ns = time.monotonic, time.time_ns
        self._api = api
        self._fence = Fence()
        self._term = ""
        self._lock = threading.Lock()
        self._cluster = AnnotatedCluster()
        self._policy = Policy(settings.pack_nodes, settings.pack_cards)
        fenced_api = fenced(api, self._fence)
        self._metrics = Metrics(registry)
        specs.LEADING.register(registry).set_function(lambda: float(self._fence.is_open()))
        self._admission_backoff = AdmissionBackoff(self._metrics.refused_by_node, clock)
        self._retry_queue = RetryQueue(fenced_api, fits=self._fits, clock=clock, now_ns=now_ns)
        self._metrics.waiting.set_function(lambda: len(self._retry_queue))
        self._binder = Binder(
            fenced_api, self._cluster, self._lock, self._policy, clock=clock, now_ns=now_ns
        )
        self._recorder = EventRecorder(api, controller=f"{DRIVER}/controller", instance=identity)
        own_pod = OwnPod(api, self._recorder, namespace=settings.lease_namespace, name=identity)
        self._bypass = BypassReporter(self._cluster, self._lock, own_pod)
        self._metrics.bypassed.set_function(self._bypass.count)
        service = Service(
            self._cluster,
            self._lock,
            self._policy,
            binder=self._binder,
            retry_queue=self._retry_queue,
            admission_backoff=self._admission_backoff,
            metrics=self._metrics,
            bypass=self._bypass,
            check=self._check,
        )
        certificates = Certificates(_files(settings), settings.extender_client_subject)
        self._server = HttpsServer(
            settings.extender_port,
            certificates,
            service.answers,
            name="extender",
            purpose="of the scheduler extender",
            host=settings.extender_host,
        )
        self._expiry = Expiry(
            certificates.ends,
            _CERTIFICATES,
            self._metrics.certificate_ends,
            own_pod,
            now=time.time,
        )
        self._housekeeping = Housekeeping(
            settings,
            api,
            self._fence,
            own_pod,
            registry,
            serves_claims=False,
            clock=clock,
        )
        self._annotator = AssignmentAnnotator(fenced_api, self._cards, clock=clock)
        nodes = NodeHandler(self._cluster, self._lock, self._annotator)
        pods = PodHandler(
            self._cluster,
            self._lock,
            self._retry_queue,
            self._annotator,
            self._admission_backoff,
        )
        self._leftover_gates = LeftoverGates(fenced_api)
        followed = Tee(self._housekeeping.follow_pods(pods), self._leftover_gates)
        self._reflectors = [
            Reflector(api, NODES, nodes, on_restored=self._on_restored),
            Reflector(api, PODS, followed, on_restored=self._on_restored),
        ]
        self._stopped = threading.Event()
        self._elector = LeaderElector(
            api,
            self._fence,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=identity,
            times=LeaseTimes(
                settings.lease_duration, settings.lease_renew_deadline, settings.lease_retry
            ),
            on_leading=lambda: None,  # `run_once` checks the fence
            on_server_back=self._reconnect,
            now=lambda: datetime.now(UTC),
        )
        self._periodic = threading.Thread(target=self._run, name="periodic", daemon=True)

    @property
    def port(self) -> int:
        """The HTTPS port, after `start`."""
        return self._server.port

    def start(self) -> None:
        """Start all threads. Raises InvalidValue where certificate or port are not to be had."""
        self._server.start()
        self._recorder.start()
        for reflector in self._reflectors:
            reflector.start()
        self._elector.start()
        self._periodic.start()
        self._housekeeping.start()

    def stop(self, within: float = _END) -> None:
        """Stop serving, then release the lease, in all within so many seconds."""
        deadline = Deadline(within)
        self._server.stop()
        self._stopped.set()
        self._housekeeping.stop(deadline.left())
        if self._periodic.is_alive():
            self._periodic.join(deadline.left())
        self._elector.stop(deadline.left(), give_back=not self._binder.has_uncertain())
        for reflector in self._reflectors:
            reflector.stop(deadline.left())
        self._recorder.stop(deadline.left())

    def card_kinds(self, labels: Mapping[str, str]) -> Collection[CardKind]:
        """Of the nodes with these labels. Raises Refused before all nodes were read."""
        self._check_synced()
        with self._lock:
            return self._cluster.card_kinds(labels)

    def ready(self) -> str | None:
        """None where calls are answered: one replica at a time."""
        try:
            self._check()
        except Refused as error:
            return str(error)
        return None

    def live(self) -> str | None:
        """Which thread ended, which only a fault of ours can cause."""
        return ended_thread(
            {
                "the server": self._server.is_alive(),
                "the leader election": self._elector.is_alive(),
                "the periodic work": self._periodic.is_alive(),
                "the writer of events": self._recorder.is_alive(),
                "a watch": all(reflector.is_alive() for reflector in self._reflectors),
                **self._housekeeping.threads(),
            }
        )

    def run_once(self) -> None:
        """Periodic work: accept a term, resolve uncertain binds, have pods retried, annotate, lift
        gates from before."""
        if not self._fence.is_open():
            return
        try:
            if not self._takes_over():
                return
        except KubeError as error:
            logger.warning("pods cannot be listed: %s", error)
            return
        self._binder.resolve_uncertain()
        with self._lock:
            version = self._cluster.version
        self._retry_queue.retry_due(version + self._admission_backoff.count_expired())
        self._annotator.write_due()
        self._bypass.check()
        self._leftover_gates.lift()

    def _takes_over(self) -> bool:
        """Whether the term is accepted. In a new one, first list pods: watch events of another
        replica's binds may be late."""
        if self._fence.term == self._term:
            return True
        if not self._is_synced():
            return False
        no_collection.end_start()
        listed = self._api.list(PODS).items
        with self._lock:
            for pod in listed:
                self._cluster.learn_pod(pod)
        self._term = self._fence.accept()
        logger.info("serving kube-scheduler on port %d", self._server.port)
        return True

    def _check(self) -> None:
        self._check_synced()
        self._fence.check()

    def _check_synced(self) -> None:
        if not self._is_synced():
            raise Refused("gcu-dra-controller has not read all nodes and pods yet")

    def _is_synced(self) -> bool:
        return all(reflector.synced.is_set() for reflector in self._reflectors)

    def _reconnect(self) -> None:
        for reflector in self._reflectors:
            reflector.reconnect()

    def _on_restored(self) -> None:
        self._fence.close()  # decisions on caches from before the restore are not written
        self._restart()

    def _fits(self, pod: Object, nodes: Collection[str] | None) -> bool:
        with self._lock:
            asked = self._cluster.nodes() if nodes is None else nodes
            excluded = self._admission_backoff.excluded(pod, asked)
            nodes = [node for node in asked if node not in excluded]
            return fits(self._cluster, self._policy, pod, nodes)

    def _cards(self, node: str) -> Sequence[NodeCard]:
        with self._lock:
            return self._cluster.cards(node)

    def _run(self) -> None:
        while not self._stopped.wait(_INTERVAL):
            self.run_once()
            self._expiry.check()


def _files(settings: ControllerSettings) -> CertificateFiles:
    certificate, key = settings.extender_certificate, settings.extender_key
    authority = settings.extender_client_authority
    if certificate is None or key is None or authority is None:
        raise InvalidValue(
            "the scheduler extender has no certificate, no key or no CA of its clients",
            remedy="set extender-certificate, extender-key and extender-client-authority",
        )
    return CertificateFiles(certificate, key, authority)
