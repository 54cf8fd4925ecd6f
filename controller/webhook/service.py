"""Answers API servers' calls: from bytes to bytes, without effects, so that a dry run is safe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.https.server import Answer
from controller.webhook.amounts import move_amounts
from controller.webhook.counted_limits import CardKinds, count_limits
from controller.webhook.gate import set_gate
from controller.webhook.limits import LimitRules, translate_limits
from controller.webhook.review import (
    Operation,
    Review,
    parse_review,
    render_allowed,
    render_denied,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError

logger = logging.getLogger(__name__)

AMOUNTS: Final = "/amounts"
CAPACITY: Final = "/capacity"
LIMITS: Final = "/limits"
GATE: Final = "/gate"

Patch = Callable[[Object], Sequence[Operation]]
"""The patch for an object. Raises GcuError where the object is not to be stored."""

Mutation = Callable[[Review], Sequence[Operation]]
"""The same for a review."""


def with_dra(
    classes: Collection[str],
    rules: LimitRules,
    translates: Callable[[], bool],
    gate: Patch = set_gate,
    capacity: Mutation | None = None,
) -> Mapping[str, Mutation]:
    """What is served by path where there is DRA. A patch depends on the object alone, that for
    limits also on `translates`, which says whether they become claims. `classes` are the
    DeviceClasses whose requests' amounts are moved; `gate` sets the scheduling gate. `capacity`
    writes ``capacity.requests`` where kube-scheduler allocates."""
    return {
        AMOUNTS: _of_object(partial(move_amounts, classes=frozenset(classes))),
        LIMITS: _of_object(lambda pod: translate_limits(pod, rules) if translates() else ()),
        GATE: _of_object(gate),
        **({CAPACITY: capacity} if capacity is not None else {}),
    }


def without_dra(card_kinds: CardKinds) -> Mapping[str, Mutation]:
    """Likewise, where limits are counted by kubelets."""
    return {LIMITS: _of_object(partial(count_limits, card_kinds=card_kinds))}


def _of_object(patch: Patch) -> Mutation:
    return lambda review: patch(review.obj)


class WebhookService:
    """`mutations` are by path. Every replica answers, whichever leads."""

    def __init__(self, mutations: Mapping[str, Mutation], registry: CollectorRegistry) -> None:
        self._mutations = mutations
        self._reviews = specs.WEBHOOK_REVIEWS.register(registry)

    @property
    def answers(self) -> Mapping[str, Answer]:
        """By path."""
        return {path: partial(self._answer, path) for path in self._mutations}

    def _answer(self, path: str, body: bytes) -> bytes:
        uid = ""
        try:
            review = parse_review(body)
            uid = review.uid
            patch = self._mutations[path](review)
        except GcuError as error:
            self._reviews.labels(path, "denied").inc()
            logger.info("%s: %s", path, error)
            return render_denied(uid, str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        except Exception as error:
            self._reviews.labels(path, "failed").inc()
            logger.exception("%s: internal error", path)
            message = f"internal error of gcu-dra-controller: {error!r}; see its log"
            return render_denied(uid, message, HTTPStatus.INTERNAL_SERVER_ERROR)
        self._reviews.labels(path, "patched" if patch else "unchanged").inc()
        return render_allowed(uid, patch)
