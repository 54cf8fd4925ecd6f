"""Poll for something that another process will make true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from tests.cluster.errors import WaitTimeout

T = TypeVar("T")

PATIENCE: Final = 180.0
"""Seconds for what a real cluster does in some: its machine may have other work. It only has to
end a wait that is in vain."""


def wait_until(
    predicate: Callable[[], T | None],
    timeout: float,
    what: str,
    *,
    seen: Callable[[], str] | None = None,
    retry_on: tuple[type[Exception], ...] = (),
    interval: float = 0.25,
) -> T:
    """Call `predicate` until it gives something true, and return that.

    timeout and interval are seconds. An exception of a type in `retry_on` counts as "not yet".
    `seen` is asked once, after the deadline, for what to tell about the state at that time.
    Raises WaitTimeout, chained to the last exception if there was one.
    """
    deadline = time.monotonic() + timeout
    last: object = None
    error: Exception | None = None
    while True:
        try:
            value = predicate()
        except retry_on as reason:
            error, last = reason, f"{type(reason).__name__}: {reason}"
        else:
            if value:
                return value
            error, last = None, value
        if time.monotonic() >= deadline:
            state = seen() if seen else last
            raise WaitTimeout(f"{what}: not within {timeout:g} s; last seen: {state}") from error
        time.sleep(interval)
