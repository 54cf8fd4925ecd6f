"""Pods with several kinds of GCU where pods are served by their limits: what the policy says."""

from __future__ import annotations

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_DRS, RESOURCE_SHARED, RESOURCE_WHOLE
from tests.control_plane.legacy import GCUSHARE, asking

NAMESPACE = "default"
TWO = asking(NAMESPACE, {RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "3"})
WORDS = (
    "one-kind",  # the policy's name
    "asks for enflame.com/shared-gcu and enflame.com/drs-gcu: a pod asks for one",
    "Split it into several pods.",
)


def starting(**limits: str) -> Object:
    return {"name": "before", "image": "none", "resources": {"limits": limits}}


REFUSED = {
    "in two containers": TWO,
    "in one container": asking(NAMESPACE, {RESOURCE_SHARED: "1", RESOURCE_DRS: "3"}),
    "in an init container": asking(
        NAMESPACE,
        {RESOURCE_SHARED: "1"},
        initContainers=[starting(**{RESOURCE_DRS: "3"})],
    ),
    "for the extender's scheduler": asking(
        NAMESPACE, {RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "3"}, schedulerName=GCUSHARE
    ),
    "past every scheduler": asking(
        NAMESPACE, {RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "3"}, nodeName="any"
    ),
}
"""By what is wrong with them, pods that are refused in these words."""

TAKEN = {
    "one kind": asking(NAMESPACE, {RESOURCE_WHOLE: "1"}),
    "one kind in several containers": asking(
        NAMESPACE,
        {RESOURCE_SHARED: "2"},
        {RESOURCE_SHARED: "1", "cpu": "1"},
        {},
        initContainers=[starting(**{RESOURCE_SHARED: "1"})],
    ),
    "none of the other": asking(NAMESPACE, {RESOURCE_SHARED: "1", RESOURCE_DRS: "0"}),
    "none of either": asking(NAMESPACE, {RESOURCE_SHARED: "0"}, {RESOURCE_DRS: "0"}),
    "no GCU": asking(NAMESPACE, {"cpu": "1"}),
}
"""By what they ask for, pods that are taken as they are."""
