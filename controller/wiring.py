"""The deciding thread and what it works on, wired: by the controller, and by tests with ports of
their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry

from controller.allocator.policy import Policy
from controller.cache.cache import ClusterCache
from controller.informers.kept import Kept
from controller.leaderelection.fence import Fence, FencedApi
from controller.queue.agenda import Agenda
from controller.queue.backoff_state import Memory
from controller.queue.event_queue import EventQueue
from controller.queue.overspending import Overspending
from controller.queue.starvation_guard import Fairness
from controller.queue.waiting_pods import Queue
from controller.reconcile.context import Context
from controller.reconcile.event_handlers import Triggers
from controller.reconcile.fence_previous_leader import PreviousLeaderFence
from controller.reconcile.quarantine import Quarantine
from controller.reconcile.queueing_hints import QueueingHints
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.reporter import Narrator
from controller.reconcile.steps import Steps
from controller.reconcile.worker import Worker
from controller.settings import ControllerSettings
from controller.write.claim_writer import ClaimWriter
from controller.write.dispatcher import WriteDispatcher
from controller.write.executor import CommandExecutor
from dra_driver.kube.api import Api
from dra_driver.kube.events import Recorder
from dra_driver.kube.resources import RESOURCE_CLAIMS
from dra_driver.selector.selector import Selectors


@dataclass(frozen=True, slots=True)
class Ports:
    """By what the deciding thread meets the world. `executor` runs the writes; `clock` gives
    seconds, `draw` a random number from 0 to 1."""

    api: Api
    recorder: Recorder
    executor: Executor
    clock: Callable[[], float]
    now: Callable[[], datetime]
    draw: Callable[[], float]


def wire(
    settings: ControllerSettings,
    ports: Ports,
    registry: CollectorRegistry,
    *,
    events: EventQueue,
    fence: Fence,
    kept: Kept,
    selectors: Selectors,
) -> tuple[Worker, Context]:
    """The thread, not started, and what its parts share. Has no effects."""
    api = FencedApi(ports.api, fence)
    narrator = Narrator(ports.recorder, registry)
    quarantine = Quarantine(narrator, ports.clock, ports.draw)
    cache = ClusterCache(selectors, quarantine.isolate)
    queue = Queue(cache.pod, ports.draw)
    overspending = Overspending(ports.draw)
    steps = Steps(selectors.allowance, overspending, narrator, ports.clock)
    fairness = Fairness(cache.state(), patience=settings.fairness_patience)
    policy = Policy(settings.pack_nodes, settings.pack_cards)
    writer = ClaimWriter(api, term=lambda: fence.term)
    context = Context(
        cache=cache,
        dispatcher=WriteDispatcher(
            ports.executor, CommandExecutor(api, writer), events, limit=settings.writes_in_flight
        ),
        memory=Memory(
            quiet=settings.quiet_time,
            first_retry=settings.node_retry,
            longest_retry=settings.node_retry_longest,
            draw=ports.draw,
        ),
        agenda=Agenda(queue.rank, overspending.excess),
        queue=queue,
        hints=QueueingHints(
            cache,
            queue,
            fairness,
            policy=policy,
            steps=steps,
            overspending=overspending,
            clock=ports.clock,
        ),
        narrator=narrator,
        clock=ports.clock,
        now=ports.now,
        patience=settings.scheduling_patience,
        policy=policy,
    )
    worker = Worker(
        events=events,
        cache=cache,
        agenda=context.agenda,
        hints=context.hints,
        triggers=Triggers(context),
        reconciler=Reconciler(context, fairness, template_retention=settings.template_retention),
        previous_leader=PreviousLeaderFence(
            api=ports.api,
            dispatcher=context.dispatcher,
            fence=fence,
            events=events,
            cache=cache,
            isolate=quarantine.isolate,
            keep=kept.of(RESOURCE_CLAIMS),
        ),
        dispatcher=context.dispatcher,
        fence=fence,
        narrator=narrator,
        quarantine=quarantine,
        overspending=overspending,
        steps=steps,
        clock=ports.clock,
        draw=ports.draw,
    )
    return worker, context
