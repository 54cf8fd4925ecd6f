"""Pods with limits, and what becomes of them: by the chart's policy on a real API server, and by
`dra_driver.asks`, which has the same rules in Python."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dra_driver.asks.claims import CLAIM, claim_of
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ANNOTATION_ISOLATION, CLASS_DRS, CLASS_SHARED, CLASS_WHOLE
from dra_driver.model.names import CLASS_LIMIT_PREFIX as OF_CLASS
from dra_driver.model.names import RESOURCE_CORE as CORE
from dra_driver.model.names import RESOURCE_DRS as DRS
from dra_driver.model.names import RESOURCE_MEMORY as MEMORY
from dra_driver.model.names import RESOURCE_SHARED as SHARED
from dra_driver.model.names import RESOURCE_WHOLE as WHOLE
from tests.control_plane.legacy import GCUSHARE, asking


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
    kinds = draw.choice(((WHOLE,), (DRS,), (MEMORY, CORE)))

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
    made = []
    for i, each in enumerate(limits):
        asked = {name: amount for name, amount in each.items() if name != "stays"}
        made.append({"name": f"i{i}", "image": "none", "resources": {"limits": asked}})
        if "stays" in each:
            made[-1]["restartPolicy"] = "Always"
    return {"initContainers": made}


ONE = {"c0": "gcu-0"}
TRANSLATED = {
    "a whole card": Case([{WHOLE: "1"}], "enflame-gcu-1", ONE),
    "whole cards": Case([{WHOLE: "8"}], "enflame-gcu-8", ONE),
    "slices": Case([{SHARED: "2"}], "enflame-shared-gcu-2", ONE),
    "an instance": Case([{DRS: "3"}], "enflame-drs-gcu-3", ONE),
    "another spelling": Case([{SHARED: "2000m"}], "enflame-shared-gcu-2", ONE),
    "beside other limits": Case(
        [{DRS: "1", "memory": "1Gi", "cpu": "1"}], "enflame-drs-gcu-1", ONE
    ),
    "several containers": Case(
        [{SHARED: "2"}, {"cpu": "1"}, {SHARED: "1"}],
        "enflame-shared-gcu-2-1",
        ONE | {"c2": "gcu-1"},
    ),
    "an init container hands on": Case(
        [{DRS: "1"}, {DRS: "3"}],
        "enflame-drs-gcu-1-3",
        ONE | {"c1": "gcu-1", "i0": "gcu-1"},
        before({DRS: "3"}),
    ),
    "an init container with less": Case(
        [{WHOLE: "4"}], "enflame-gcu-4", ONE | {"i0": "gcu-0"}, before({WHOLE: "1"})
    ),
    "an instance that a larger one covers": Case(
        [{DRS: "6"}], "enflame-drs-gcu-6", ONE | {"i0": "gcu-0"}, before({DRS: "3"})
    ),
    "the first container that covers": Case(
        [{SHARED: "1"}, {SHARED: "3"}, {SHARED: "2"}],
        "enflame-shared-gcu-1-3-2",
        ONE | {"c1": "gcu-1", "c2": "gcu-2", "i0": "gcu-1"},
        before({SHARED: "2"}),
    ),
    "an init container with more": Case(
        [{WHOLE: "1"}], "enflame-gcu-1-2", ONE | {"i0": "gcu-1"}, before({WHOLE: "2"})
    ),
    "no two containers cover together": Case(
        [{WHOLE: "1"}, {WHOLE: "1"}],
        "enflame-gcu-1-1-2",
        ONE | {"c1": "gcu-1", "i0": "gcu-2"},
        before({WHOLE: "2"}),
    ),
    "the largest of several init containers": Case(
        [{WHOLE: "1"}],
        "enflame-gcu-1-4",
        ONE | {"i0": "gcu-1", "i1": "gcu-1", "i2": "gcu-0", "i3": "gcu-1"},
        before(*({WHOLE: amount} for amount in ("2", "4", "1", "3"))),
    ),
    "a sidecar keeps its own": Case(
        [{SHARED: "1"}],
        "enflame-shared-gcu-1-1",
        ONE | {"i0": "gcu-1"},
        before({SHARED: "1", "stays": "yes"}),
    ),
    "init containers alone, one after the other": Case(
        [{"cpu": "1"}],
        "enflame-gcu-1",
        {"i0": "gcu-0", "i1": "gcu-0"},
        before({WHOLE: "1"}, {WHOLE: "1"}),
    ),
    "a sidecar runs on while an init container starts": Case(
        [{DRS: "1"}],
        "enflame-drs-gcu-1-3-3",
        ONE | {"i0": "gcu-1", "i1": "gcu-2"},
        before({DRS: "3", "stays": "yes"}, {DRS: "3"}),
    ),
    "an init container between two sidecars": Case(
        [{"cpu": "1"}],
        "enflame-shared-gcu-2-3",
        {"i0": "gcu-0", "i1": "gcu-1", "i2": "gcu-1"},
        before({SHARED: "2", "stays": "yes"}, {SHARED: "2"}, {SHARED: "3", "stays": "yes"}),
    ),
    "init containers before and after a sidecar": Case(
        [{WHOLE: "1"}],
        "enflame-gcu-1-2-3",
        ONE | {"i0": "gcu-1", "i1": "gcu-1", "i2": "gcu-2"},
        before({WHOLE: "2"}, {WHOLE: "2", "stays": "yes"}, {WHOLE: "3"}),
    ),
    "none of one kind, in a container and in a pod": Case(
        [{WHOLE: "1", SHARED: "0"}, {DRS: "0"}], "enflame-gcu-1", ONE
    ),
    "none in one of several containers": Case(
        [{WHOLE: "1"}, {WHOLE: "0"}],
        "enflame-gcu-1",
        ONE,
        before({WHOLE: "0"}, {WHOLE: "0", "stays": "yes"}),
    ),
    "none at all": Case(
        [{WHOLE: "0", CORE: "0", OF_CLASS + CLASS_SHARED: "0"}], spec=before({DRS: "0"})
    ),
    "no compute": Case([{MEMORY: "10", CORE: "0"}], "enflame-fixed-share-10m", ONE),
    "cards of the class": Case([{OF_CLASS + CLASS_WHOLE: "2"}], "enflame-gcu-2", ONE),
    "devices of the class for slices": Case(
        [{OF_CLASS + CLASS_SHARED: "2"}, {OF_CLASS + CLASS_SHARED: "1"}],
        "enflame-shared-gcu-devices-2-1",
        ONE | {"c1": "gcu-1"},
    ),
    "devices of the class for instances": Case(
        [{OF_CLASS + CLASS_DRS: "1"}], "enflame-drs-gcu-devices-1", ONE
    ),
    "memory": Case([{MEMORY: "20480"}], "enflame-fixed-share-20480m", ONE),
    "percent of compute": Case([{CORE: "40"}], "enflame-fixed-share-40c", ONE),
    "memory and compute of several containers": Case(
        [{CORE: "40", MEMORY: "20480"}, {MEMORY: "1000"}],
        "enflame-fixed-share-20480m40c-1000m",
        ONE | {"c1": "gcu-1"},
    ),
    "the same memory and compute are handed on": Case(
        [{CORE: "9"}, {CORE: "9", MEMORY: "10"}],
        "enflame-fixed-share-9c-10m9c",
        ONE | {"c1": "gcu-1", "i0": "gcu-1"},
        before({CORE: "9", MEMORY: "10"}),
    ),
    "the longest name of a template": Case(
        [*[{CORE: "40", MEMORY: "20480"}] * 23, {CORE: "40"}],
        f"enflame-fixed-share{'-20480m40c' * 23}-40c",
        {f"c{n}": f"gcu-{n}" for n in range(24)},
    ),
    "each measure is covered": Case(
        [{CORE: "9", MEMORY: "10"}],
        "enflame-fixed-share-10m9c-20m8c-10m10c",
        ONE | {"i0": "gcu-0", "i1": "gcu-1", "i2": "gcu-2", "i3": "gcu-1"},
        before({CORE: "9"}, {CORE: "8", MEMORY: "20"}, {CORE: "10", MEMORY: "10"}, {MEMORY: "20"}),
    ),
    "devices of a class are handed on": Case(
        [{OF_CLASS + CLASS_SHARED: "3"}],
        "enflame-shared-gcu-devices-3",
        ONE | {"i0": "gcu-0"},
        before({OF_CLASS + CLASS_SHARED: "2"}),
    ),
    "slices by memory and compute": Case(
        [{CORE: "40", MEMORY: "20480"}],
        "enflame-best-effort-20480m40c",
        ONE,
        annotations={ANNOTATION_ISOLATION: "best-effort"},
    ),
    "no limits of ours": Case([{"cpu": "1"}], None, {}),
}

REFUSED_MEASURES = {
    "all compute of a card": Case(
        [{CORE: "100"}],
        words="container c0: the limit enflame.com/gcu-core is 1 to 99 percent of one card",
    ),
    "a part of a percent": Case([{CORE: "500m"}], words="must be an integer"),
    "memory in bytes": Case(
        [{MEMORY: "20Gi"}],
        words="the limit enflame.com/gcu-memory is a number of MiB, such as 20480",
    ),
    "compute beside slices": Case(
        [{CORE: "10"}, {SHARED: "1"}],
        words="asks for enflame.com/shared-gcu and enflame.com/gcu-core: a pod asks for one kind",
    ),
    "compute beside a whole card": Case(
        [{CORE: "10", WHOLE: "1"}],
        words="asks for enflame.com/gcu and enflame.com/gcu-core: a pod asks for one kind of GCU",
    ),
    "an isolation that there is not": Case(
        [{CORE: "10"}],
        annotations={ANNOTATION_ISOLATION: "burst-share"},
        words="isolation of GCUs lends idle compute",
    ),
    "another isolation": Case(
        [{CORE: "10"}],
        annotations={ANNOTATION_ISOLATION: "none"},
        words="is fixed-share or best-effort",
    ),
}
"""By the same words with DRA and without."""

REFUSED = REFUSED_MEASURES | {
    "two kinds in a pod": Case(
        [{SHARED: "1"}, {DRS: "1"}],
        words="asks for enflame.com/shared-gcu and enflame.com/drs-gcu: a pod asks for one kind",
    ),
    "two kinds in a container": Case(
        [{WHOLE: "1", SHARED: "1"}], words="asks for enflame.com/gcu and enflame.com/shared-gcu"
    ),
    "two kinds, one of an init container": Case(
        [{SHARED: "1"}],
        spec=before({DRS: "1"}),
        words="asks for enflame.com/shared-gcu and enflame.com/drs-gcu",
    ),
    "less than zero": Case([{SHARED: "-1"}], words="must be greater than or equal to 0"),
    "a part": Case([{SHARED: "500m"}], words="must be an integer"),
    "more than a claim can hold": Case([{WHOLE: "33"}], words="32 whole cards at most"),
    "more with an init container than a claim can hold": Case(
        [{WHOLE: "16"}], spec=before({WHOLE: "17"}), words="32 whole cards at most"
    ),
    "more devices than a claim can hold": Case(
        [{OF_CLASS + CLASS_SHARED: "33"}], words="32 devices of a DeviceClass"
    ),
    "more containers than a claim can hold": Case([{SHARED: "1"}] * 33, words="32 containers"),
    "the vendor's limit beside that of a class": Case(
        [{SHARED: "1"}, {OF_CLASS + CLASS_SHARED: "1"}],
        words="asks for enflame.com/shared-gcu and deviceclass.resource.kubernetes.io/shared-gcu",
    ),
    "an absurd amount": Case([{SHARED: "1000"}], words="each limit 999 at most"),
    "a template with too long a name": Case(
        [{CORE: "40", MEMORY: "20480"}] * 24, words="some 20 by memory and compute"
    ),
    "a claim of the name that is ours": Case(
        [{SHARED: "1"}],
        spec={"resourceClaims": [{"name": CLAIM, "resourceClaimName": "any"}]},
        words="it has one of that name already",
    ),
    "a claim of that name by a template that is not ours": Case(
        [{SHARED: "1"}],
        spec={"resourceClaims": [{"name": CLAIM, "resourceClaimTemplateName": "enflame-mine"}]},
        words="it has one of that name already",
    ),
    "limits that came back after they became a claim": Case(
        [{MEMORY: "20480", CORE: "40"}],
        spec={
            "resourceClaims": [
                {"name": CLAIM, "resourceClaimTemplateName": "enflame-fixed-share-20480m40c"}
            ]
        },
        words=r"a LimitRange of namespace \S+ gives default limits for enflame.com/gcu-memory and "
        "enflame.com/gcu-core, which come back after they became a claim",
    ),
}


SCHEDULERS = {
    "the vendor's, with limits": ({SHARED: "1"}, GCUSHARE, "default-scheduler"),
    "the vendor's, without": ({}, GCUSHARE, "default-scheduler"),
    "somebody else's": ({SHARED: "1"}, "volcano", "volcano"),
}


LABEL = "enflame.com/gcushare"
ZONE = {"zone": "a"}
SELECTORS: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {
    "the vendor's label": ({SHARED: "1"}, {LABEL: "true"}, {}),
    "beside another": ({SHARED: "1"}, {LABEL: "true"} | ZONE, ZONE),
    "nodes without it": ({SHARED: "1"}, {LABEL: "false"}, {LABEL: "false"}),
    "another alone": ({SHARED: "1"}, ZONE, ZONE),
    "without limits": ({}, {LABEL: "true"}, {LABEL: "true"}),
}
