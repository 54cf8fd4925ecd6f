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
from controller.deciding.narrator import Narrator
from controller.deciding.reconciler import Reconciler
from controller.deciding.takeover import Takeover
from controller.deciding.triggers import Triggers
from controller.deciding.worker import Worker
from controller.deciding.writer import ClaimWriter
from controller.leadership.fence import Fence, FencedApi
from controller.rules.fairness import Fairness
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
    cache = ClusterCache(selectors)
    queue = Queue(cache.pod)
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
        agenda=Agenda(queue.rank),
        queue=queue,
        narrator=narrator,
        clock=ports.clock,
        patience=settings.scheduling_patience,
        policy=Policy(settings.pack_nodes, settings.pack_cards),
    )
    keep_claim = kept.of(RESOURCE_CLAIMS)
    worker = Worker(
        inbox=inbox,
        cache=cache,
        agenda=context.agenda,
        triggers=Triggers(cache, context.memory, queue),
        reconciler=Reconciler(
            api,
            context,
            Fairness(cache.state(), patience=settings.fairness_patience),
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
        ),
        writes=context.writes,
        fence=fence,
        narrator=narrator,
        clock=ports.clock,
        draw=ports.draw,
    )
    return worker, context
