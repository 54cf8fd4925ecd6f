"""Steps of a call whose errors are results: one claim's failure must not fail the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, TypeVar

from dra_driver.model.errors import GcuError, internal_error

logger = logging.getLogger(__name__)

K = TypeVar("K")
R = TypeVar("R")

_MOST_AT_ONCE: Final = 16


def attempt(step: Callable[[], R]) -> R | GcuError:
    """What the step returns, or its error. A bug is logged, and is an error of this step alone."""
    try:
        return step()
    except GcuError as error:
        return error
    except Exception as error:
        logger.exception("internal error")
        return internal_error(error)


def in_parallel(
    steps: Mapping[K, Callable[[], R]], *, quick: Container[K] = ()
) -> dict[K, R | GcuError]:
    """What each step returns, or its error. The `quick` steps run in the calling thread, one after
    the other, and so does one of the rest; only further ones get threads."""
    done = {key: attempt(step) for key, step in steps.items() if key in quick}
    slow = {key: step for key, step in steps.items() if key not in done}
    if len(slow) <= 1:
        return done | {key: attempt(step) for key, step in slow.items()}
    first, *others = slow
    with ThreadPoolExecutor(min(len(others), _MOST_AT_ONCE), thread_name_prefix="claim") as pool:
        # The context has the call's identifier for the lines of the log.
        begun = {key: pool.submit(copy_context().run, attempt, slow[key]) for key in others}
        done[first] = attempt(slow[first])
        return done | {key: future.result() for key, future in begun.items()}
