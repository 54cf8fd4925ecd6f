"""Claim templates for pods that ask by limits: made when a pod waits for one, deleted some time
after the last pod that names it. A claim that was made from one does not need it any more."""

from __future__ import annotations

import logging
from functools import partial

from controller.cache import pods
from controller.cache.keys import Key
from controller.reconcile.context import Context
from controller.reconcile.limit_templates import is_ours, template_for
from dra_driver.kube.api import Api, Change
from dra_driver.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claim import Object

logger = logging.getLogger(__name__)

_LOOK_AGAIN = 30.0  # seconds, while somebody else's template stands where ours would


class TemplateKeeper:
    """One instance, one thread; `retention` is how many seconds a template outlives its pods."""

    def __init__(self, api: Api, context: Context, *, retention: float) -> None:
        self._api = api
        self._context = context
        self._retention = retention
        self._unused_since: dict[Key, float] = {}

    def reconcile(self, key: Key) -> None:
        """Make the template, delete it, or leave it. What is written ends in another thread."""
        context = self._context
        if context.writes.is_busy([str(key)]):
            return
        users = context.cache.pods_of_template(key)
        stored = context.cache.template(key)
        if stored is None:
            self._make(key, [pod for pod in users if pods.waits_for_template(pod, key.name)])
        elif next(users, None) is None:
            self._retire(key, stored)
        else:
            self._unused_since.pop(key, None)

    def _make(self, key: Key, waiting: list[Object]) -> None:
        body = template_for(key.namespace, key.name)
        if body is not None and waiting:
            self._context.writes.begin(
                key, [str(key)], partial(self._create, body), partial(self._made, key, waiting)
            )

    def _retire(self, key: Key, stored: Object) -> None:
        context, now = self._context, self._context.clock()
        until = self._unused_since.setdefault(key, now) + self._retention
        if until > now:
            context.queue.add(key, until)
            return
        context.writes.begin(
            key, [str(key)], partial(self._delete, stored), partial(self._deleted, key)
        )

    def _create(self, body: Object) -> Object | str:
        """The template as it is stored, or why it is not the one that was to be."""
        metadata = body["metadata"]
        try:
            made = self._api.create(RESOURCE_CLAIM_TEMPLATES, body)
        except AlreadyExists:
            made = self._api.get(
                RESOURCE_CLAIM_TEMPLATES, metadata["name"], namespace=metadata["namespace"]
            )
            if not is_ours(made):
                return (
                    f"ResourceClaimTemplate {metadata['name']} was made by somebody else: the pod "
                    "gets what that one says instead of what its limits ask for. Delete it, and "
                    "make the pod again."
                )
        except (Forbidden, Invalid) as error:
            return f"ResourceClaimTemplate {metadata['name']} cannot be made: {error}"
        else:
            logger.info("made claim template %s/%s", metadata["namespace"], metadata["name"])
        return made

    def _made(self, key: Key, waiting: list[Object], made: Object | str) -> None:
        context = self._context
        if not isinstance(made, str):
            context.cache.apply(RESOURCE_CLAIM_TEMPLATES, Change.MODIFIED, made)
            context.queue.add(key, context.clock())  # its pods may have gone meanwhile
            return
        for pod in waiting:
            context.narrator.no_template(pod, made)
        context.queue.add(key, context.clock() + _LOOK_AGAIN)

    def _delete(self, stored: Object) -> None:
        metadata = stored["metadata"]
        try:
            self._api.delete(
                RESOURCE_CLAIM_TEMPLATES,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                # Somebody who takes our label off makes it his own.
                resource_version=metadata["resourceVersion"],
            )
        except (NotFound, Conflict) as error:
            logger.info("claim template is another one by now: %s", error)
        else:
            logger.info("deleted claim template %s/%s", metadata["namespace"], metadata["name"])

    def _deleted(self, key: Key, _: None) -> None:
        self._unused_since.pop(key, None)
