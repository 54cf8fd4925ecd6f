"""Pods with the vendor's limits, and what admission makes of them: the chart's policy, or before
Kubernetes 1.36 the webhook."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ANNOTATION_ISOLATION,
    CLASS_DRS,
    CLASS_SHARED,
    CLASS_WHOLE,
    RESOURCE_CORE,
    RESOURCE_DRS,
    RESOURCE_MEMORY,
    RESOURCE_SHARED,
    RESOURCE_WHOLE,
)
from dra_driver.model.names import CLASS_LIMIT_PREFIX as OF_CLASS
from tests.control_plane.legacy import GCUSHARE, asking

CLAIM = "enflame-limits"


def starting(name: str, limits: Mapping[str, str], **more: str) -> Object:
    """An init container with these limits."""
    return {"name": name, "image": "none", "resources": {"limits": dict(limits)}} | more


def shown(made: Object) -> dict[str, str]:
    """Which request each container uses."""
    containers = [*made["spec"]["containers"], *made["spec"].get("initContainers", ())]
    return {
        each["name"]: claim["request"]
        for each in containers
        for claim in each["resources"].get("claims", ())
        if claim["name"] == CLAIM
    }


def template_of(made: Object) -> str | None:
    return next(
        (
            str(each["resourceClaimTemplateName"])
            for each in made["spec"].get("resourceClaims", ())
            if each["name"] == CLAIM
        ),
        None,
    )


class Case(NamedTuple):
    limits: list[dict[str, str]]
    template: str | None
    uses: dict[str, str]
    spec: Mapping[str, Any] = MappingProxyType({})
    annotations: Mapping[str, str] = MappingProxyType({})

    def pod(self, namespace: str) -> Object:
        """The pod that a user creates."""
        made = asking(namespace, *self.limits, **self.spec)
        made["metadata"]["annotations"] = dict(self.annotations)
        return made


ONE = {"c0": "gcu-0"}
TRANSLATED = {
    "a whole card": Case([{RESOURCE_WHOLE: "1"}], "enflame-gcu-1", ONE),
    "whole cards": Case([{RESOURCE_WHOLE: "8"}], "enflame-gcu-8", ONE),
    "slices": Case([{RESOURCE_SHARED: "2"}], "enflame-shared-gcu-2", ONE),
    "an instance": Case([{RESOURCE_DRS: "3"}], "enflame-drs-gcu-3", ONE),
    "another spelling": Case([{RESOURCE_SHARED: "2000m"}], "enflame-shared-gcu-2", ONE),
    "beside other limits": Case(
        [{RESOURCE_DRS: "1", "memory": "1Gi", "cpu": "1"}], "enflame-drs-gcu-1", ONE
    ),
    "several containers": Case(
        [{RESOURCE_SHARED: "2"}, {"cpu": "1"}, {RESOURCE_SHARED: "1"}],
        "enflame-shared-gcu-2-1",
        {"c0": "gcu-0", "c2": "gcu-1"},
    ),
    "an init container hands on": Case(
        [{RESOURCE_DRS: "1"}, {RESOURCE_DRS: "3"}],
        "enflame-drs-gcu-1-3",
        {"c0": "gcu-0", "c1": "gcu-1", "before": "gcu-1"},
        {"initContainers": [starting("before", {RESOURCE_DRS: "3"})]},
    ),
    "an init container with more": Case(
        [{RESOURCE_WHOLE: "1"}],
        "enflame-gcu-1-2",
        {"c0": "gcu-0", "before": "gcu-1"},
        {"initContainers": [starting("before", {RESOURCE_WHOLE: "2"})]},
    ),
    "a sidecar keeps its own": Case(
        [{RESOURCE_SHARED: "1"}],
        "enflame-shared-gcu-1-1",
        {"c0": "gcu-0", "beside": "gcu-1"},
        {"initContainers": [starting("beside", {RESOURCE_SHARED: "1"}, restartPolicy="Always")]},
    ),
    "init containers alone, one after the other": Case(
        [{"cpu": "1"}],
        "enflame-gcu-1",
        {"first": "gcu-0", "then": "gcu-0"},
        {"initContainers": [starting(name, {RESOURCE_WHOLE: "1"}) for name in ("first", "then")]},
    ),
    "a sidecar runs on while an init container starts": Case(
        [{RESOURCE_DRS: "1"}],
        "enflame-drs-gcu-1-3-3",
        {"c0": "gcu-0", "beside": "gcu-1", "then": "gcu-2"},
        {
            "initContainers": [
                starting("beside", {RESOURCE_DRS: "3"}, restartPolicy="Always"),
                starting("then", {RESOURCE_DRS: "3"}),
            ]
        },
    ),
    "an init container between two sidecars": Case(
        [{"cpu": "1"}],
        "enflame-shared-gcu-2-2",
        {"before": "gcu-0", "between": "gcu-1", "after": "gcu-1"},
        {
            "initContainers": [
                starting("before", {RESOURCE_SHARED: "2"}, restartPolicy="Always"),
                starting("between", {RESOURCE_SHARED: "2"}),
                starting("after", {RESOURCE_SHARED: "2"}, restartPolicy="Always"),
            ]
        },
    ),
    "cards of the class": Case([{OF_CLASS + CLASS_WHOLE: "2"}], "enflame-gcu-2", ONE),
    "devices of the class for slices": Case(
        [{OF_CLASS + CLASS_SHARED: "2"}, {OF_CLASS + CLASS_SHARED: "1"}],
        "enflame-shared-gcu-devices-2-1",
        {"c0": "gcu-0", "c1": "gcu-1"},
    ),
    "devices of the class for instances": Case(
        [{OF_CLASS + CLASS_DRS: "1"}], "enflame-drs-gcu-devices-1", ONE
    ),
    "memory": Case([{RESOURCE_MEMORY: "20480"}], "enflame-fixed-share-20480m", ONE),
    "percent of compute": Case([{RESOURCE_CORE: "40"}], "enflame-fixed-share-40c", ONE),
    "memory and compute of several containers": Case(
        [{RESOURCE_CORE: "40", RESOURCE_MEMORY: "20480"}, {RESOURCE_MEMORY: "1000"}],
        "enflame-fixed-share-20480m40c-1000m",
        {"c0": "gcu-0", "c1": "gcu-1"},
    ),
    "the same memory and compute are handed on": Case(
        [{RESOURCE_CORE: "9"}, {RESOURCE_CORE: "9", RESOURCE_MEMORY: "10"}],
        "enflame-fixed-share-9c-10m9c",
        {"c0": "gcu-0", "c1": "gcu-1", "before": "gcu-1"},
        {"initContainers": [starting("before", {RESOURCE_CORE: "9", RESOURCE_MEMORY: "10"})]},
    ),
    "slices by memory and compute": Case(
        [{RESOURCE_CORE: "40", RESOURCE_MEMORY: "20480"}],
        "enflame-best-effort-20480m40c",
        ONE,
        annotations={ANNOTATION_ISOLATION: "best-effort"},
    ),
    "no limits of ours": Case([{"cpu": "1"}], None, {}),
}


SCHEDULERS = {
    "the vendor's, with limits": ({RESOURCE_SHARED: "1"}, GCUSHARE, "default-scheduler"),
    "the vendor's, without": ({}, GCUSHARE, "default-scheduler"),
    "somebody else's": ({RESOURCE_SHARED: "1"}, "volcano", "volcano"),
}


LABEL = "enflame.com/gcushare"
ZONE = {"zone": "a"}
SELECTORS: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {
    "the vendor's label": ({RESOURCE_SHARED: "1"}, {LABEL: "true"}, {}),
    "beside another": ({RESOURCE_SHARED: "1"}, {LABEL: "true"} | ZONE, ZONE),
    "nodes without it": ({RESOURCE_SHARED: "1"}, {LABEL: "false"}, {LABEL: "false"}),
    "another alone": ({RESOURCE_SHARED: "1"}, ZONE, ZONE),
    "without limits": ({}, {LABEL: "true"}, {LABEL: "true"}),
}
