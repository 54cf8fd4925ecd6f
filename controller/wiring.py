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
from controller.filter.feasible_nodes import NodeFilter
from controller.leaderelection.fence import Fence, FencedApi
from controller.queue.active_queue import NamespaceBudget
from controller.queue.backoff_state import BackoffState
from controller.queue.event_queue import EventQueue
from controller.queue.retry_backoff import RetryBackoff
from controller.queue.scheduling_queue import SchedulingQueue
from controller.queue.starvation_guard import StarvationGuard
from controller.reconcile.context import Context
from controller.reconcile.event_handlers import EventHandlers
from controller.reconcile.fence_previous_leader import PreviousLeaderFence
from controller.reconcile.quarantine import Quarantine
from controller.reconcile.queueing_hints import ClassHints
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.reporter import Reporter
from controller.reconcile.steps import Steps
from controller.reconcile.worker import Worker
from controller.settings import ControllerSettings
from controller.write.claim_writer import ClaimWriter
from controller.write.dispatcher import WriteDispatcher
from controller.write.executor import CommandExecutor
from dra_driver.kube.api import Api
from dra_driver.kube.events import Recorder
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
    selectors: Selectors,
) -> tuple[Worker, Context]:
    """The thread, not started, and what its parts share. Has no effects."""
    api = FencedApi(ports.api, fence)
    narrator = Reporter(ports.recorder, registry)
    backoff = RetryBackoff(ports.draw)
    quarantine = Quarantine(narrator, backoff, ports.clock)
    cache = ClusterCache(selectors, quarantine.isolate)
    budget = NamespaceBudget()
    steps = Steps(selectors.allowance, budget, narrator, ports.clock)
    fits = NodeFilter(cache.nodes, lambda: cache.nodes_version, selectors.allowance)
    guard = StarvationGuard(cache, patience=settings.fairness_patience)
    policy = Policy(settings.pack_nodes, settings.pack_cards)
    hints = ClassHints(cache, fits, policy, steps)
    queue = SchedulingQueue(
        cache.pod, hints, guard, backoff=backoff, budget=budget, clock=ports.clock
    )
    writer = ClaimWriter(api, term=lambda: fence.term)
    context = Context(
        cache=cache,
        dispatcher=WriteDispatcher(
            ports.executor, CommandExecutor(api, writer), events, limit=settings.writes_in_flight
        ),
        backoff=BackoffState(
            quiet=settings.quiet_time,
            first_retry=settings.node_retry,
            longest_retry=settings.node_retry_longest,
            draw=ports.draw,
        ),
        queue=queue,
        narrator=narrator,
        clock=ports.clock,
        now=ports.now,
        patience=settings.scheduling_patience,
        policy=policy,
    )
    worker = Worker(
        events=events,
        cache=cache,
        queue=queue,
        handlers=EventHandlers(context),
        reconciler=Reconciler(context, fits, guard, template_retention=settings.template_retention),
        previous_leader=PreviousLeaderFence(
            api=ports.api,
            dispatcher=context.dispatcher,
            fence=fence,
            events=events,
            cache=cache,
            isolate=quarantine.isolate,
        ),
        dispatcher=context.dispatcher,
        fence=fence,
        narrator=narrator,
        quarantine=quarantine,
        steps=steps,
        clock=ports.clock,
        draw=ports.draw,
    )
    return worker, context
