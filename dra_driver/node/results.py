"""Steps of a call whose errors are results: one claim's failure must not fail the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, TypeVar

from dra_driver.model.errors import GcuError, internal_error

logger = logging.getLogger(__name__)

R = TypeVar("R")

_MOST_AT_ONCE: Final = 16


class ErrorsInto:
    """Around a step: puts the error that it raises into `errors` by `key`, and continues."""

    def __init__(self, errors: dict[str, GcuError], key: str) -> None:
        self._errors = errors
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> bool:
        if isinstance(error, GcuError):
            self._errors[self._key] = error
        elif isinstance(error, Exception):
            logger.error("internal error", exc_info=error)
            self._errors[self._key] = internal_error(error)
        return isinstance(error, Exception)


def in_parallel(steps: Mapping[str, Callable[[], R]]) -> dict[str, R | GcuError]:
    """What each step returns, or its error. One of the steps runs in the calling thread."""
    if len(steps) <= 1:
        return {key: _attempt(step) for key, step in steps.items()}
    first, *others = steps
    with ThreadPoolExecutor(min(len(others), _MOST_AT_ONCE), thread_name_prefix="claim") as pool:
        # The context has the call's identifier for the lines of the log.
        begun = {
            key: pool.submit(copy_context().run, partial(_attempt, steps[key])) for key in others
        }
        done = {first: _attempt(steps[first])}
        return done | {key: future.result() for key, future in begun.items()}


def _attempt(step: Callable[[], R]) -> R | GcuError:
    errors: dict[str, GcuError] = {}
    with ErrorsInto(errors, ""):
        return step()
    return errors[""]
