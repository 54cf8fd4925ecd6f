"""The controller as a whole: wired from its ports, started, stopped."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.allocating.claim_writer import ClaimWriter
from controller.allocating.clocks import Clocks
from controller.allocating.committer import AllocationCommitter
from controller.allocating.fence_previous_leader import PreviousLeaderFence
from controller.allocating.reconciler import Reconciler
from controller.allocator.packing.policy import Policy, SchedulerPolicy
from controller.cache.cache import OTHER_SLICES, WATCHED, ClusterCache
from controller.cache.published_kinds import PublishedKinds
from controller.filter.node_filter import NodeFilter
from controller.filter.predictions import Predictions
from controller.groups.reservation import GroupReserver
from controller.housekeeping import Housekeeping
from controller.informers.decoders import decoders
from controller.informers.optional_watch import OptionalReflector
from controller.informers.tee import Tee
from controller.leaderelection.fence import Fence
from controller.leaderelection.leader import LeaderElector, LeaseTimes
from controller.nominate.followed_names import NAMES_STOPPED, NAMES_STOPPED_NOTE
from controller.nominate.gated_pods import GatedPods
from controller.nominate.metrics import NominationMetrics
from controller.nominate.nominator import Nominator
from controller.own_pod import OwnPod
from controller.placer.trials import TrialPlacer
from controller.queue.arrival_order import ArrivalOrder
from controller.queue.backoff import KeyBackoff
from controller.queue.event_queue import EventQueue, ResourceEventHandler
from controller.queue.fair_queue import Namespaces, StepLimiter
from controller.queue.queueing_hints import QueueingHints
from controller.queue.scheduling_queue import SchedulingQueue
from controller.queue.starvation_guard import StarvationGuard
from controller.reconcile.context import Context
from controller.reconcile.faults import FaultIsolator
from controller.reconcile.key_reconciler import KeyReconciler
from controller.reconcile.observer import Observer
from controller.reconcile.pod_start import PodStartRecorder
from controller.reconcile.reporter import Reporter
from controller.reconcile.waiting_line import WaitingLine
from controller.reconcile.worker import Worker
from controller.runnable import ended_thread
from controller.settings import ControllerSettings
from controller.write.dispatcher import WriteDispatcher
from controller.write.writer import Writer
from dra_driver.kube.api import Api
from dra_driver.kube.decode import Decoder
from dra_driver.kube.event_filter import EventLimits
from dra_driver.kube.events import EventRecorder, Recorder
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_TAINT_RULES_V1BETA2,
    NODES,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.kube.watch import Reflector, WatchHandler
from dra_driver.model.names import DRIVER, LABEL_MADE_FOR_LIMITS
from dra_driver.selector.allowance import Allowance
from dra_driver.selector.selector import Selectors
from dra_driver.telemetry.program import Deadline

# The reason why a pod waits changes with every card that comes or goes.
_EVENT_LIMITS = EventLimits(burst=1, spacing=30.0)
# Other claim templates than ours are not watched.
_LABELS = {RESOURCE_CLAIM_TEMPLATES: f"{LABEL_MADE_FOR_LIMITS}=true"}
# The slices of other drivers may be many: few clusters need them.
_FIELDS = {RESOURCE_SLICES: f"spec.driver={DRIVER}", OTHER_SLICES: f"spec.driver!={DRIVER}"}
# Kinds that the server may not serve, by the versions that can be read.
_VERSIONS = {
    DEVICE_TAINT_RULES: (DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2),
    POD_GROUPS: (POD_GROUPS, POD_GROUPS_V1BETA1),
}
# Seconds. A decision is stopped after one; the first one reads all slices, ten for 15,000 nodes.
_LONGEST_STEP = 120.0
_END = 10.0  # seconds to stop, and for writes that are under way


def new_worker(
    settings: ControllerSettings,
    api: Api,
    registry: CollectorRegistry,
    *,
    recorder: Recorder,
    pool: Executor,
    events: EventQueue,
    fence: Fence,
    selectors: Selectors,
    clock: Callable[[], float],
    now: Callable[[], datetime],
    draw: Callable[[], float],
    on_names_stopped: Callable[[], object] = lambda: None,
    follow_others: Callable[[], object] = lambda: None,
) -> tuple[Worker, Context]:
    """The deciding thread, not started, and what its parts share. Has no effects. `pool` executes
    the writes; `clock` returns seconds, `now` the time of day, `draw` random numbers in [0, 1).
    `on_names_stopped` is called when kube-scheduler has followed too few names of nodes,
    `follow_others` while slices of other drivers are needed and not known."""
    reporter = Reporter(recorder, registry)
    faults = FaultIsolator(reporter)
    namespaces = Namespaces()
    steps = StepLimiter(selectors.allowance, namespaces, reporter.steps, clock)
    by_scheduler = settings.allocator == "scheduler"
    cache = ClusterCache(selectors, faults.isolate, for_scheduler=by_scheduler)
    state = cache.state()
    packing = SchedulerPolicy if by_scheduler else Policy
    policy = packing(settings.pack_nodes, settings.pack_cards)
    predictions = Predictions(cache, unconsidered=settings.plugins_left_out)
    node_filter = NodeFilter(cache, state.numbers, selectors.allowance, predictions)
    order = ArrivalOrder()
    guard = StarvationGuard(state, order, patience=settings.fairness_patience, policy=policy)
    queue = SchedulingQueue(
        cache,
        state.numbers,
        QueueingHints(state, node_filter, policy, steps),
        guard,
        order,
        backoff=KeyBackoff(draw),
        namespaces=namespaces,
        clock=clock,
    )
    reporter.observe(queue, faults)
    writer = ClaimWriter(api, fence, Writer(api, fence, api.server_version))
    dispatcher = WriteDispatcher(pool, writer, events.put, limit=settings.writes_in_flight)
    context = Context(settings, cache, dispatcher, queue, reporter, clock)
    placer = TrialPlacer(
        cache,
        node_filter,
        policy,
        schedulers=settings.served_schedulers,
        ignored_fields=settings.ignored_fields,
        clock=clock,
        registry=registry,
    )
    line = WaitingLine(context, guard, placer)
    nominator = (
        Nominator(
            context,
            placer,
            node_filter,
            line,
            NominationMetrics(registry),
            reserver=GroupReserver(
                state, NodeFilter(cache, state.numbers, selectors.allowance), policy
            ),
            on_names_stopped=on_names_stopped,
            follow_others=follow_others,
        )
        if settings.names_nodes
        else None
    )
    reconciler: KeyReconciler
    if by_scheduler:
        reconciler = Observer(context, nominator)
    else:
        clocks = Clocks.of(settings, draw)
        committer = AllocationCommitter(context, clocks, now)
        reconciler = Reconciler(context, clocks, placer, line, committer)
    previous_leader = PreviousLeaderFence(
        api, pool, writer, fence, events, cache, faults.isolate, clock
    )
    worker = Worker(
        context,
        events=events,
        reconciler=reconciler,
        begin_term=previous_leader.run,
        fence=fence,
        steps=steps,
        faults=faults,
        line=line,
        trials=placer,
        pod_starts=PodStartRecorder(cache, reporter, now, of_scheduler=by_scheduler),
        draw=draw,
    )
    return worker, context


class Controller:
    """Constructing has no effects. `api` must write as the field manager `claims.MANAGER`."""

    def __init__(
        self,
        settings: ControllerSettings,
        api: Api,
        registry: CollectorRegistry,
        *,
        identity: str,
        on_restored: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`on_restored` is called when the process must restart: etcd was restored from a backup,
        and the caches are newer than what the server has."""
        self._restart = on_restored
        clock = time.monotonic
        self._fence = fence = Fence()
        self._events = EventQueue(clock)
        self._recorder = EventRecorder(
            api,
            controller=f"{DRIVER}/controller",
            instance=identity,
            limits=_EVENT_LIMITS,
            clock=clock,
            now=now,
        )
        specs.LEADING.register(registry).set_function(lambda: float(fence.is_open()))
        own_pod = OwnPod(api, self._recorder, namespace=settings.lease_namespace, name=identity)
        pool = ThreadPoolExecutor(settings.writes_in_flight, thread_name_prefix="writes")
        self._worker, context = new_worker(
            settings,
            api,
            registry,
            recorder=self._recorder,
            pool=pool,
            events=self._events,
            fence=fence,
            selectors=Selectors(Allowance(clock)),
            clock=clock,
            now=now,
            draw=random.random,
            on_names_stopped=lambda: pool.submit(
                own_pod.report, NAMES_STOPPED, NAMES_STOPPED_NOTE, "NameNode"
            ),
            follow_others=self._follow_others,
        )
        self._dispatcher = context.dispatcher
        self._elector = LeaderElector(
            api,
            fence,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=identity,
            times=LeaseTimes(
                settings.lease_duration, settings.lease_renew_deadline, settings.lease_retry
            ),
            on_leading=self._events.interrupt,
            on_server_back=self._reconnect,
            fenced_term=self._worker.fenced_term if settings.allocator == "scheduler" else None,
            now=now,
        )
        self._housekeeping = Housekeeping(
            settings,
            api,
            fence,
            own_pod,
            registry,
            serves_claims=True,
            clock=clock,
        )
        self._gated_pods: GatedPods | None = None
        if settings.names_nodes:
            self._gated_pods = GatedPods(
                is_waiting=context.queue.is_waiting,
                leads=fence.is_open,
                has_leader=self.has_leader,
                clock=clock,
            )
            registry.register(self._gated_pods)
        self.published: PublishedKinds | None = (
            PublishedKinds() if settings.allocator == "scheduler" else None
        )
        """What amounts of claims are written by, for any thread."""
        known = decoders()
        self._reflectors = [self._reflector(api, each, known) for each in WATCHED]
        self._other_slices = self._reflector(api, OTHER_SLICES, known)

    def _reflector(
        self, api: Api, resource: Resource, known: Mapping[Resource, Decoder]
    ) -> Reflector:
        handler: WatchHandler = ResourceEventHandler(self._events, resource)
        if resource is NODES:
            handler = self._housekeeping.follow_nodes(handler)
        if resource is PODS:
            handler = self._housekeeping.follow_pods(handler)
            if self._gated_pods is not None:
                handler = Tee(handler, self._gated_pods)
        if self.published is not None and resource is RESOURCE_SLICES:
            handler = Tee(handler, self.published.slices)
        if self.published is not None and resource is DEVICE_CLASSES:
            handler = Tee(handler, self.published.classes)
        if resource in _VERSIONS:
            return OptionalReflector(
                api,
                _VERSIONS[resource],
                ResourceEventHandler(self._events, resource),
                decoder=known[resource],
                decoders=known,
                on_restored=self._on_restored,
            )
        labels, fields = _LABELS.get(resource, ""), _FIELDS.get(resource, "")
        return Reflector(
            api,
            resource,
            handler,
            label_selector=labels,
            field_selector=fields,
            decoder=known[resource],
            on_restored=self._on_restored,
        )

    def _follow_others(self) -> None:
        """Called by the deciding thread alone."""
        if self._other_slices not in self._reflectors:
            self._other_slices.start()
            self._reflectors = [*self._reflectors, self._other_slices]

    def _reconnect(self) -> None:
        for reflector in self._reflectors:
            reflector.reconnect()

    def _on_restored(self) -> None:
        self._fence.close()  # decisions on caches from before the restore are not written
        self._restart()

    def start(self) -> None:
        Selectors.load()  # else the first pod would wait for it
        self._recorder.start()
        self._worker.start()
        for reflector in self._reflectors:
            reflector.start()
        self._elector.start()
        self._housekeeping.start()

    def stop(self, within: float = _END) -> None:
        """Finish the writes in flight, then give the lease back, in all within so many seconds.

        If a write has not ended by then, the lease expires instead: no other replica leads while
        that write may still arrive."""
        deadline = Deadline(within)
        self._housekeeping.stop(deadline.left())
        self._worker.stop(deadline.left())
        written = self._dispatcher.stop(deadline.left())
        self._elector.stop(deadline.left(), give_back=written)
        for reflector in self._reflectors:
            reflector.stop(deadline.left())
        self._recorder.stop(deadline.left())

    def has_leader(self) -> bool:
        """Whether some replica leads, as far as this one knows; safe for any thread."""
        return self._elector.has_leader()

    def ready(self) -> str | None:
        """None once everything was listed; a replica that does not lead is ready too."""
        return None if self._worker.is_synced() else "the first lists are not complete"

    def live(self) -> str | None:
        """None; or which thread ended or hangs, which only a fault of ours can cause."""
        seconds = self._worker.step_seconds()
        if seconds > _LONGEST_STEP:
            return f"a step of the worker has lasted {seconds:.0f} s"
        return ended_thread(
            {
                "the worker": self._worker.is_alive(),
                "the leader election": self._elector.is_alive(),
                "a watch": all(reflector.is_alive() for reflector in self._reflectors),
                "the writer of events": self._recorder.is_alive(),
                **self._housekeeping.threads(),
            }
        )
