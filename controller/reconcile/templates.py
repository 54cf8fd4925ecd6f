"""Claim templates for pods with limits: created when a pod waits for one, deleted some time after
the last pod that names it. A claim that was made from a template needs it no longer.

Admission turns the limits of a pod into a reference to a template (charts/gcu-dra-driver,
policy-legacy-resources.yaml); dra_driver/asks/templates.py has what its name says.
"""

from __future__ import annotations

from typing import Final

from controller.cache import pods
from controller.cache.keys import Key
from controller.reconcile.context import Context
from controller.write.commands import Answer, CreateTemplate, DeleteTemplate
from dra_driver.asks.templates import template_for
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Forbidden, Invalid
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import LABEL_MADE_FOR_LIMITS

_TEMPLATE_MISSING: Final = "GcuTemplateMissing"
_RETRY: Final = 30.0  # seconds, while somebody else's template has the name of ours


class TemplateReconciler:
    """One instance, one thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._retention = context.settings.template_retention
        self._unused_since: dict[Key, float] = {}

    def reconcile(self, key: Key) -> None:
        """Create the template, delete it, or do nothing."""
        context, now = self._context, self._context.clock()
        if context.dispatcher.has_command(key):
            return
        users = context.cache.pods_of_template(key)
        stored = context.cache.get(key)
        if stored is None:
            self._unused_since.pop(key, None)
            waiting = tuple(pod for pod in users if pods.waits_for_template(pod, key.name))
            template = template_for(key.namespace, key.name)
            if template is not None and waiting:
                context.dispatcher.dispatch(
                    CreateTemplate(key=key, template=template, waiting=waiting)
                )
        elif users:
            self._unused_since.pop(key, None)
        elif (until := self._unused_since.setdefault(key, now) + self._retention) > now:
            context.queue.add(key, until)
        else:
            context.dispatcher.dispatch(DeleteTemplate(key=key, template=stored))

    def on_answer(self, command: CreateTemplate | DeleteTemplate, answer: Answer) -> None:
        """Raises errors after which the same command may succeed."""
        context, now, name = self._context, self._context.clock(), command.key.name
        if isinstance(answer.error, Forbidden | Invalid) and isinstance(command, CreateTemplate):
            problem = f"ResourceClaimTemplate {name} cannot be created: {answer.error}"
        elif answer.error is not None:
            raise answer.error
        elif isinstance(command, DeleteTemplate):
            self._unused_since.pop(command.key, None)
            context.queue.add(command.key, now)  # a pod may wait for the next one by now
            return
        elif is_ours(answer.found[0]):
            context.cache.apply(RESOURCE_CLAIM_TEMPLATES, Change.MODIFIED, answer.found[0])
            context.queue.add(command.key, now)  # its pods may have gone meanwhile
            return
        else:
            problem = (
                f"ResourceClaimTemplate {name} was created by somebody else: the pod gets what this"
                " template says instead of what its limits request. Delete it, and create the pod "
                "again"
            )
        for pod in command.waiting:
            context.reporter.warn_pod(pod, _TEMPLATE_MISSING, problem, action="CreateTemplate")
        context.queue.add(command.key, now + _RETRY)


def is_ours(template: Object) -> bool:
    """Whether this controller created the template: it changes no other one."""
    labels = template["metadata"].get("labels") or {}
    return bool(labels.get(LABEL_MADE_FOR_LIMITS) == "true")
