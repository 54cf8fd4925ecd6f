"""Pods as users of the vendor's plugins write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dra_driver.kube.client import Client
from dra_driver.kube.errors import Invalid, KubeError
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_WHOLE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod

GCUSHARE = "gcushare-scheduler"


def asking(namespace: str, *limits: Mapping[str, str], name: str = "legacy", **spec: Any) -> Object:
    """A pod of containers `c0`, `c1`, … with these limits."""
    made = pod(name, namespace, **spec)
    [template] = made["spec"]["containers"]
    made["spec"]["containers"] = [
        template | {"name": f"c{i}", "resources": {"limits": dict(each)}}
        for i, each in enumerate(limits)
    ]
    return made


def refusal(api: Client, pod: Object) -> str:
    """What the server says against the pod; empty where it takes it."""
    try:
        api.create(PODS, pod, dry_run=True)
    except KubeError as error:
        return str(error)
    return ""


def outcome(api: Client, namespace: str) -> str:
    """What becomes of a pod with a limit: `claim`, `refused`, or it stays `as it is`."""
    try:
        made = api.create(PODS, asking(namespace, {RESOURCE_WHOLE: "1"}), dry_run=True)
    except Invalid:
        return "refused"  # one of the two policies is heeded a moment sooner
    return "claim" if "resourceClaims" in made["spec"] else "as it is"


def wait_until_heeded(api: Client, namespace: str) -> None:
    """Return when it does: API servers take a moment to learn of a policy."""
    wait_until(lambda: outcome(api, namespace) == "claim", PATIENCE, "the policy to be heeded")
