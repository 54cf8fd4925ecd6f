"""Claim templates for pods that ask by limits: made when a pod waits for one, deleted some time
after the last pod that names it. A claim that was made from one does not need it any more."""

from __future__ import annotations

from controller.cache import pods
from controller.cache.keys import Key
from controller.reconcile.context import Context
from controller.reconcile.limit_templates import is_ours, template_for
from controller.write.commands import Answer, CreateTemplate, DeleteTemplate
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Forbidden, Invalid
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claim import Object

_LOOK_AGAIN = 30.0  # seconds, while somebody else's template stands where ours would


class TemplateKeeper:
    """One instance, one thread; `retention` is how many seconds a template outlives its pods."""

    def __init__(self, context: Context, *, retention: float) -> None:
        self._context = context
        self._retention = retention
        self._unused_since: dict[Key, float] = {}

    def reconcile(self, key: Key) -> None:
        """Make the template, delete it, or leave it. What is written ends in another thread."""
        context = self._context
        if context.dispatcher.in_flight([str(key)]):
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
            self._context.dispatcher.dispatch(CreateTemplate(key, body, tuple(waiting)))

    def _retire(self, key: Key, stored: Object) -> None:
        context, now = self._context, self._context.clock()
        until = self._unused_since.setdefault(key, now) + self._retention
        if until > now:
            context.queue.add(key, until)
            return
        context.dispatcher.dispatch(DeleteTemplate(key, stored))

    def on_created(self, command: CreateTemplate, answer: Answer) -> None:
        """Raises what may not come again."""
        context, now = self._context, self._context.clock()
        name = command.key.name
        if isinstance(answer.error, Forbidden | Invalid):
            problem = f"ResourceClaimTemplate {name} cannot be made: {answer.error}"
        elif answer.error is not None:
            raise answer.error
        elif is_ours(answer.objects[0]):
            context.cache.apply(RESOURCE_CLAIM_TEMPLATES, Change.MODIFIED, answer.objects[0])
            context.queue.add(command.key, now)  # its pods may have gone meanwhile
            return
        else:
            problem = (
                f"ResourceClaimTemplate {name} was made by somebody else: the pod gets what that "
                "one says instead of what its limits ask for. Delete it, and make the pod again."
            )
        for pod in command.pods:
            context.narrator.no_template(pod, problem)
        context.queue.add(command.key, now + _LOOK_AGAIN)

    def on_deleted(self, command: DeleteTemplate, answer: Answer) -> None:
        """Raises what ended the write."""
        if answer.error is not None:
            raise answer.error
        self._unused_since.pop(command.key, None)
