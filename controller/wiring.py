"""The deciding thread and what it works on, wired: by the controller, and by tests with ports of
their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry

from controller.allocator.policy import Policy
from controller.cluster.cache import ClusterCache
from controller.cluster.kept import Kept
from controller.deciding.context import Context
from controller.deciding.hints import QueueingHints
from controller.deciding.narrator import Narrator
from controller.deciding.quarantine import Quarantine
from controller.deciding.reconciler import Reconciler
from controller.deciding.steps import Steps
from controller.deciding.takeover import Takeover
from controller.deciding.triggers import Triggers
from controller.deciding.worker import Worker
from controller.deciding.writer import ClaimWriter
from controller.leadership.fence import Fence, FencedApi
from controller.rules.fairness import Fairness
from controller.rules.overspending import Overspending
from controller.rules.queue import Queue
from controller.settings import ControllerSettings
from controller.work.agenda import Agenda
from controller.work.inbox import Inbox
from controller.work.memory import Memory
from controller.work.writes import Writes
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
    inbox: Inbox,
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
    context = Context(
        cache=cache,
        writer=ClaimWriter(api, now=ports.now, term=lambda: fence.term),
        writes=Writes(ports.executor, inbox, limit=settings.writes_in_flight),
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
        patience=settings.scheduling_patience,
        policy=policy,
    )
    keep_claim = kept.of(RESOURCE_CLAIMS)
    worker = Worker(
        inbox=inbox,
        cache=cache,
        agenda=context.agenda,
        hints=context.hints,
        triggers=Triggers(context),
        reconciler=Reconciler(
            api,
            context,
            fairness,
            template_retention=settings.template_retention,
        ),
        takeover=Takeover(
            api=api,
            writer=context.writer,
            fence=fence,
            inbox=inbox,
            state=cache.state(),
            for_each=context.writes.for_each,
            keep=lambda claim: cache.known(RESOURCE_CLAIMS, keep_claim(claim)),
            isolate=quarantine.isolate,
        ),
        writes=context.writes,
        fence=fence,
        narrator=narrator,
        quarantine=quarantine,
        overspending=overspending,
        steps=steps,
        clock=ports.clock,
        draw=ports.draw,
    )
    return worker, context
