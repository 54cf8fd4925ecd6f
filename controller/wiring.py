"""The deciding thread and what it works on, wired: by the controller, and by tests with ports of
their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry

from controller.allocator.order import Policy
from controller.cache.cache import ClusterCache
from controller.filter.feasible_nodes import NodeFilter
from controller.leaderelection.fence import Fence, FencedApi
from controller.queue.backoff import BackoffState, RetryBackoff
from controller.queue.event_queue import EventQueue
from controller.queue.fair_queue import Namespaces
from controller.queue.scheduling_queue import SchedulingQueue
from controller.queue.starvation_guard import StarvationGuard
from controller.reconcile.context import Context
from controller.reconcile.fence_previous_leader import PreviousLeaderFence
from controller.reconcile.queueing_hints import ClassHints
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.reporter import Reporter
from controller.reconcile.steps import Steps
from controller.reconcile.worker import Worker
from controller.settings import ControllerSettings
from controller.write.dispatcher import WriteDispatcher
from controller.write.writer import Writer
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
    reporter = Reporter(ports.recorder, registry)
    backoff = RetryBackoff(ports.draw)
    namespaces = Namespaces()
    steps = Steps(selectors.allowance, namespaces, reporter, ports.clock)
    cache = ClusterCache(selectors, steps.isolate)
    numbers = cache.state().numbers
    fits = NodeFilter(cache.nodes, numbers, lambda: cache.nodes_version, selectors.allowance)
    guard = StarvationGuard(cache.state(), patience=settings.fairness_patience)
    policy = Policy(settings.pack_nodes, settings.pack_cards)
    hints = ClassHints(cache, fits, policy, steps)
    queue = SchedulingQueue(
        cache.get, numbers, hints, guard, backoff=backoff, namespaces=namespaces, clock=ports.clock
    )
    reporter.observe(queue)
    writer = Writer(api, term=lambda: fence.term)
    context = Context(
        cache=cache,
        dispatcher=WriteDispatcher(
            ports.executor, writer, events.put, limit=settings.writes_in_flight
        ),
        backoff=BackoffState(
            quiet=settings.quiet_time,
            first_retry=settings.node_retry,
            longest_retry=settings.node_retry_longest,
            draw=ports.draw,
        ),
        queue=queue,
        reporter=reporter,
        clock=ports.clock,
        now=ports.now,
        patience=settings.scheduling_patience,
        policy=policy,
    )
    worker = Worker(
        context,
        events=events,
        reconciler=Reconciler(context, fits, guard, template_retention=settings.template_retention),
        previous_leader=PreviousLeaderFence(
            api=ports.api,
            dispatcher=context.dispatcher,
            fence=fence,
            events=events,
            cache=cache,
            isolate=steps.isolate,
        ),
        fence=fence,
        steps=steps,
        draw=ports.draw,
    )
    return worker, context
