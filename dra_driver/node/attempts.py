"""Steps of a call whose errors are results: one claim's failure must not fail the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

from dra_driver.model.errors import GcuError

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_MOST_AT_ONCE: Final = 16


def attempt(step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | GcuError:
    """What `step` returns, or the error that it raises."""
    try:
        return step(*args, **kwargs)
    except GcuError as error:
        return error
    except Exception as error:
        logger.exception("internal error")
        return GcuError(
            f"internal error of the agent: {error!r}",
            remedy="report it with the stack trace in its log",
        )


def attempt_all(
    steps: Mapping[str, Callable[[], R]], slow: Collection[str]
) -> dict[str, R | GcuError]:
    """What each step returns, or its error; those that are `slow` run in parallel."""
    parallel = [key for key in steps if key in slow]
    if len(parallel) == len(steps):
        parallel = parallel[1:]  # the calling thread takes one
    if not parallel:
        return {key: attempt(step) for key, step in steps.items()}
    with ThreadPoolExecutor(min(len(parallel), _MOST_AT_ONCE), thread_name_prefix="claim") as pool:
        # The context has the call's identifier, which stands in each line of the log.
        begun = {
            key: pool.submit(copy_context().run, partial(attempt, steps[key])) for key in parallel
        }
        done = {key: attempt(step) for key, step in steps.items() if key not in begun}
        return done | {key: future.result() for key, future in begun.items()}
