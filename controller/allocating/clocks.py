"""What is remembered of allocations: how long a released claim is left alone, how long a pod may
take to be bound, what kube-scheduler has seen, and which nodes it refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controller.allocating.backoff import BackoffState
from controller.allocating.bind_clock import BindClock
from controller.allocating.refusals import Refusals
from controller.allocating.scheduler_sight import SchedulerSight
from controller.settings import ControllerSettings


@dataclass(frozen=True, slots=True)
class Clocks:
    """Shared by the parts that allocate and release."""

    backoff: BackoffState
    bind: BindClock
    sight: SchedulerSight
    refusals: Refusals

    @classmethod
    def of(cls, settings: ControllerSettings, draw: Callable[[], float]) -> Clocks:
        """`draw` returns random numbers in [0, 1)."""
        return cls(
            BackoffState(
                quiet_time=settings.quiet_time,
                first_retry=settings.node_retry,
                longest_retry=settings.node_retry_longest,
                draw=draw,
            ),
            BindClock(
                patience=settings.scheduling_patience,
                first_pause=settings.node_retry,
                longest_pause=settings.node_retry_longest,
                draw=draw,
            ),
            SchedulerSight(),
            Refusals(settings.node_retry_longest),
        )
