"""Pods with limits, and what becomes of them: by the chart's policy on a real API server, and by
`dra_driver.asks`, which has the same rules in Python."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dra_driver.asks.claims import CLAIM, claim_of
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


def claimed(pod: Object) -> tuple[str | None, dict[str, str]]:
    """What Python says of a pod: its template, and which request each container uses."""
    claim = claim_of(pod)
    if claim is None:
        return None, {}
    users = zip(claim.ask.containers, claim.requests, strict=True)
    return claim.template, {container.name: request for container, request in users}


def random_pod(draw: random.Random, namespace: str) -> Object:
    """With up to four containers and four init containers or sidecars, of one kind."""
    kinds = draw.choice(((RESOURCE_WHOLE,), (RESOURCE_DRS,), (RESOURCE_MEMORY, RESOURCE_CORE)))

    def limits() -> dict[str, str]:
        return {kind: str(draw.choice((0, 1, 1, 2, 3, 4))) for kind in kinds}

    inits = [limits() | draw.choice(({}, {}, {"stays": "yes"})) for _ in range(draw.randint(0, 4))]
    return asking(namespace, *(limits() for _ in range(draw.randint(1, 4))), **before(*inits))


class Case(NamedTuple):
    """The limits of the containers `c0`, `c1`, …; and either the template of the pod's claim with
    the request that each container uses, None where the pod gets no claim, or the `words` of the
    refusal."""

    limits: list[dict[str, str]]
    template: str | None = None
    uses: Mapping[str, str] = MappingProxyType({})
    spec: Mapping[str, Any] = MappingProxyType({})
    annotations: Mapping[str, str] = MappingProxyType({})
    words: str = ""

    def pod(self, namespace: str) -> Object:
        """The pod that a user creates."""
        made = asking(namespace, *self.limits, **self.spec)
        made["metadata"]["annotations"] = dict(self.annotations)
        return made


def before(*limits: Mapping[str, str]) -> Object:
    """Init containers `i0`, `i1`, … with these limits; ``{"stays": …}`` makes one a sidecar."""
    return {
        "initContainers": [
            starting(
                f"i{i}",
                {name: amount for name, amount in each.items() if name != "stays"},
                **({"restartPolicy": "Always"} if "stays" in each else {}),
            )
            for i, each in enumerate(limits)
        ]
    }


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
        {"c0": "gcu-0", "c1": "gcu-1", "i0": "gcu-1"},
        before({RESOURCE_DRS: "3"}),
    ),
    "an init container with less": Case(
        [{RESOURCE_WHOLE: "4"}],
        "enflame-gcu-4",
        {"c0": "gcu-0", "i0": "gcu-0"},
        before({RESOURCE_WHOLE: "1"}),
    ),
    "an instance that a larger one covers": Case(
        [{RESOURCE_DRS: "6"}],
        "enflame-drs-gcu-6",
        {"c0": "gcu-0", "i0": "gcu-0"},
        before({RESOURCE_DRS: "3"}),
    ),
    "the first container that covers": Case(
        [{RESOURCE_SHARED: "1"}, {RESOURCE_SHARED: "3"}, {RESOURCE_SHARED: "2"}],
        "enflame-shared-gcu-1-3-2",
        {"c0": "gcu-0", "c1": "gcu-1", "c2": "gcu-2", "i0": "gcu-1"},
        before({RESOURCE_SHARED: "2"}),
    ),
    "an init container with more": Case(
        [{RESOURCE_WHOLE: "1"}],
        "enflame-gcu-1-2",
        {"c0": "gcu-0", "i0": "gcu-1"},
        before({RESOURCE_WHOLE: "2"}),
    ),
    "no two containers cover together": Case(
        [{RESOURCE_WHOLE: "1"}, {RESOURCE_WHOLE: "1"}],
        "enflame-gcu-1-1-2",
        {"c0": "gcu-0", "c1": "gcu-1", "i0": "gcu-2"},
        before({RESOURCE_WHOLE: "2"}),
    ),
    "the largest of several init containers": Case(
        [{RESOURCE_WHOLE: "1"}],
        "enflame-gcu-1-4",
        {"c0": "gcu-0", "i0": "gcu-1", "i1": "gcu-1", "i2": "gcu-0", "i3": "gcu-1"},
        before(*({RESOURCE_WHOLE: amount} for amount in ("2", "4", "1", "3"))),
    ),
    "a sidecar keeps its own": Case(
        [{RESOURCE_SHARED: "1"}],
        "enflame-shared-gcu-1-1",
        {"c0": "gcu-0", "i0": "gcu-1"},
        before({RESOURCE_SHARED: "1", "stays": "yes"}),
    ),
    "init containers alone, one after the other": Case(
        [{"cpu": "1"}],
        "enflame-gcu-1",
        {"i0": "gcu-0", "i1": "gcu-0"},
        before({RESOURCE_WHOLE: "1"}, {RESOURCE_WHOLE: "1"}),
    ),
    "a sidecar runs on while an init container starts": Case(
        [{RESOURCE_DRS: "1"}],
        "enflame-drs-gcu-1-3-3",
        {"c0": "gcu-0", "i0": "gcu-1", "i1": "gcu-2"},
        before({RESOURCE_DRS: "3", "stays": "yes"}, {RESOURCE_DRS: "3"}),
    ),
    "an init container between two sidecars": Case(
        [{"cpu": "1"}],
        "enflame-shared-gcu-2-3",
        {"i0": "gcu-0", "i1": "gcu-1", "i2": "gcu-1"},
        before(
            {RESOURCE_SHARED: "2", "stays": "yes"},
            {RESOURCE_SHARED: "2"},
            {RESOURCE_SHARED: "3", "stays": "yes"},
        ),
    ),
    "init containers before and after a sidecar": Case(
        [{RESOURCE_WHOLE: "1"}],
        "enflame-gcu-1-2-3",
        {"c0": "gcu-0", "i0": "gcu-1", "i1": "gcu-1", "i2": "gcu-2"},
        before({RESOURCE_WHOLE: "2"}, {RESOURCE_WHOLE: "2", "stays": "yes"}, {RESOURCE_WHOLE: "3"}),
    ),
    "none of one kind, in a container and in a pod": Case(
        [{RESOURCE_WHOLE: "1", RESOURCE_SHARED: "0"}, {RESOURCE_DRS: "0"}], "enflame-gcu-1", ONE
    ),
    "none in one of several containers": Case(
        [{RESOURCE_WHOLE: "1"}, {RESOURCE_WHOLE: "0"}],
        "enflame-gcu-1",
        ONE,
        before({RESOURCE_WHOLE: "0"}, {RESOURCE_WHOLE: "0", "stays": "yes"}),
    ),
    "none at all": Case(
        [
            {
                RESOURCE_WHOLE: "0",
                RESOURCE_CORE: "0",
                OF_CLASS + CLASS_SHARED: "0",
            }
        ],
        spec=before({RESOURCE_DRS: "0"}),
    ),
    "no compute": Case(
        [{RESOURCE_MEMORY: "10", RESOURCE_CORE: "0"}], "enflame-fixed-share-10m", ONE
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
        {"c0": "gcu-0", "c1": "gcu-1", "i0": "gcu-1"},
        before({RESOURCE_CORE: "9", RESOURCE_MEMORY: "10"}),
    ),
    "each measure is covered": Case(
        [{RESOURCE_CORE: "9", RESOURCE_MEMORY: "10"}],
        "enflame-fixed-share-10m9c-20m8c-10m10c",
        {"c0": "gcu-0", "i0": "gcu-0", "i1": "gcu-1", "i2": "gcu-2", "i3": "gcu-1"},
        before(
            {RESOURCE_CORE: "9"},
            {RESOURCE_CORE: "8", RESOURCE_MEMORY: "20"},
            {RESOURCE_CORE: "10", RESOURCE_MEMORY: "10"},
            {RESOURCE_MEMORY: "20"},
        ),
    ),
    "devices of a class are handed on": Case(
        [{OF_CLASS + CLASS_SHARED: "3"}],
        "enflame-shared-gcu-devices-3",
        {"c0": "gcu-0", "i0": "gcu-0"},
        before({OF_CLASS + CLASS_SHARED: "2"}),
    ),
    "slices by memory and compute": Case(
        [{RESOURCE_CORE: "40", RESOURCE_MEMORY: "20480"}],
        "enflame-best-effort-20480m40c",
        ONE,
        annotations={ANNOTATION_ISOLATION: "best-effort"},
    ),
    "no limits of ours": Case([{"cpu": "1"}], None, {}),
}

REFUSED_MEASURES = {
    "all compute of a card": Case(
        [{RESOURCE_CORE: "100"}],
        words="container c0: the limit enflame.com/gcu-core is 1 to 99 percent of one card",
    ),
    "a part of a percent": Case([{RESOURCE_CORE: "500m"}], words="must be an integer"),
    "memory in bytes": Case(
        [{RESOURCE_MEMORY: "20Gi"}],
        words="the limit enflame.com/gcu-memory is a number of MiB, such as 20480",
    ),
    "compute beside slices": Case(
        [{RESOURCE_CORE: "10"}, {RESOURCE_SHARED: "1"}],
        words="asks for enflame.com/shared-gcu and enflame.com/gcu-core: a pod asks for one kind",
    ),
    "compute beside a whole card": Case(
        [{RESOURCE_CORE: "10", RESOURCE_WHOLE: "1"}],
        words="asks for enflame.com/gcu and enflame.com/gcu-core: a pod asks for one kind of GCU",
    ),
    "an isolation that there is not": Case(
        [{RESOURCE_CORE: "10"}],
        annotations={ANNOTATION_ISOLATION: "burst-share"},
        words="no isolation of GCUs lends idle compute",
    ),
    "another isolation": Case(
        [{RESOURCE_CORE: "10"}],
        annotations={ANNOTATION_ISOLATION: "none"},
        words="is fixed-share or best-effort",
    ),
}
"""By the same words with DRA and without."""

REFUSED = REFUSED_MEASURES | {
    "two kinds in a pod": Case(
        [{RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "1"}],
        words="asks for enflame.com/shared-gcu and enflame.com/drs-gcu: a pod asks for one kind",
    ),
    "two kinds in a container": Case(
        [{RESOURCE_WHOLE: "1", RESOURCE_SHARED: "1"}],
        words="asks for enflame.com/gcu and enflame.com/shared-gcu",
    ),
    "two kinds, one of an init container": Case(
        [{RESOURCE_SHARED: "1"}],
        spec=before({RESOURCE_DRS: "1"}),
        words="asks for enflame.com/shared-gcu and enflame.com/drs-gcu",
    ),
    "less than zero": Case([{RESOURCE_SHARED: "-1"}], words="must be greater than or equal to 0"),
    "a part": Case([{RESOURCE_SHARED: "500m"}], words="must be an integer"),
    "more than a claim can hold": Case([{RESOURCE_WHOLE: "33"}], words="32 whole cards at most"),
    "more with an init container than a claim can hold": Case(
        [{RESOURCE_WHOLE: "16"}],
        spec=before({RESOURCE_WHOLE: "17"}),
        words="32 whole cards at most",
    ),
    "more devices than a claim can hold": Case(
        [{OF_CLASS + CLASS_SHARED: "33"}], words="32 devices of a DeviceClass"
    ),
    "more containers than a claim can hold": Case(
        [{RESOURCE_SHARED: "1"}] * 33, words="32 containers"
    ),
    "the vendor's limit beside that of a class": Case(
        [{RESOURCE_SHARED: "1"}, {OF_CLASS + CLASS_SHARED: "1"}],
        words="asks for enflame.com/shared-gcu and deviceclass.resource.kubernetes.io/shared-gcu",
    ),
    "an absurd amount": Case([{RESOURCE_SHARED: "1000"}], words="each limit 999 at most"),
    "a template with too long a name": Case(
        [{RESOURCE_CORE: "40", RESOURCE_MEMORY: "20480"}] * 24,
        words="some 20 by memory and compute",
    ),
    "a claim of the name that is ours": Case(
        [{RESOURCE_SHARED: "1"}],
        spec={"resourceClaims": [{"name": CLAIM, "resourceClaimName": "any"}]},
        words="it has one of that name already",
    ),
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
