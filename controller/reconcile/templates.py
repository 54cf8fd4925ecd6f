"""Claim templates for pods with limits: created when a pod waits for one, deleted some time after
the last pod that names it. A claim that was made from a template needs it no longer.

Admission turns the limits of a pod into a reference to a template (charts/gcu-dra-driver,
policy-legacy-resources.yaml) whose name says what it requests. ``enflame-shared-gcu-2-1`` is for a
pod with two containers with the limits ``enflame.com/shared-gcu: 2`` and ``1``.
``enflame-shared-gcu-devices-2`` is for the limit
``deviceclass.resource.kubernetes.io/shared-gcu.enflame.com: 2``, two devices of the class.
docs/adr/0015 has the scheme.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from controller.cache import pods
from controller.cache.keys import Key
from controller.reconcile.context import Context
from controller.write.commands import Answer, CreateTemplate, DeleteTemplate
from dra_driver.kube.api import Change
from dra_driver.kube.errors import Forbidden, Invalid
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ATTR_CARD,
    ATTR_PROFILES,
    CAPACITY_SIZE,
    CAPACITY_SLICES,
    CLASS_DRS,
    CLASS_SHARED,
    CLASS_WHOLE,
    DRIVER,
    LABEL_MADE_FOR_LIMITS,
)

_TEMPLATE_MISSING: Final = "GcuTemplateMissing"
_RETRY: Final = 30.0  # seconds, while somebody else's template has the name of ours
_MOST_DEVICES: Final = 32  # resource.k8s.io/v1, AllocationResultsMaxSize
_NAME: Final = re.compile(
    r"enflame-(?:(gcu)|(shared-gcu|drs-gcu)(-devices)?)((?:-[1-9][0-9]{0,2}){1,32})"
)
_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {"gcu": CLASS_WHOLE, "shared-gcu": CLASS_SHARED, "drs-gcu": CLASS_DRS}
)


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


def template_for(namespace: str, name: str) -> Object | None:
    """The ResourceClaimTemplate to create under that name; None if the name is no template's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    amounts = [int(each) for each in match[4][1:].split("-")]
    device_class = _CLASSES[match[1] or match[2]]
    counts_devices = bool(match[1] or match[3])
    if counts_devices and sum(amounts) > _MOST_DEVICES:
        return None
    exactly = _devices if counts_devices else _part
    requests = [
        {"name": f"gcu-{i}", "exactly": exactly(device_class, amount)}
        for i, amount in enumerate(amounts)
    ]
    devices: dict[str, Any] = {"requests": requests}
    if len(requests) > 1 and not counts_devices:
        # The vendor's rule: the slices or instances of a pod are on one card.
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{ATTR_CARD}"}]
    return {
        "apiVersion": RESOURCE_CLAIM_TEMPLATES.api_version,
        "kind": RESOURCE_CLAIM_TEMPLATES.kind,
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {LABEL_MADE_FOR_LIMITS: "true"},
        },
        "spec": {"spec": {"devices": devices}},
    }


def is_ours(template: Object) -> bool:
    """Whether this controller created the template: it changes no other one."""
    labels = template["metadata"].get("labels") or {}
    return bool(labels.get(LABEL_MADE_FOR_LIMITS) == "true")


def _devices(device_class: str, count: int) -> Object:
    return {"deviceClassName": device_class, "count": count}


def _part(device_class: str, amount: int) -> Object:
    name = CAPACITY_SLICES if device_class == CLASS_SHARED else CAPACITY_SIZE
    exactly: Object = {
        "deviceClassName": device_class,
        "capacity": {"requests": {name: str(amount)}},
    }
    if device_class == CLASS_DRS:
        # A claim's size is rounded up to the next profile; a limit names the very profile.
        expression = f'device.attributes["{DRIVER}"].{ATTR_PROFILES}.matches("(^|,){amount}g[.]")'
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return exactly
