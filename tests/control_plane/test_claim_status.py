"""``status.devices`` of claims that carry opaque configuration, patched as the agent does it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from dra_driver.agent.dra.claim_status import ClaimStatuses
from dra_driver.kube.client import Client
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import ClaimRef, Object, allocation, results
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevice, record
from tests.cluster.cluster import Cluster
from tests.control_plane.conftest import Eyes
from tests.control_plane.machines import Machines
from tests.control_plane.objects import claim, pod_with, whole
from tests.unit.agent.claim_statuses import played_context, run_here
from tests.unit.node.world import CARDS

pytestmark = pytest.mark.control_plane

CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
CONFIG = '"apiVersion":"gcu.enflame.com/v1alpha1","kind":"GcuConfig"'
FORMS = {
    "no-packing": f"{{{CONFIG}}}",
    "empty-packing": f'{{{CONFIG},"packing":{{}}}}',
    "nodes": f'{{{CONFIG},"packing":{{"nodes":"spread"}}}}',
    "cards": f'{{{CONFIG},"packing":{{"cards":"binpack"}}}}',
    "both": f'{{{CONFIG},"packing":{{"nodes":"binpack","cards":"spread"}}}}',
    "nulls": f'{{{CONFIG},"packing":{{"nodes":null,"cards":null}}}}',
    "white-space": '{"kind": "GcuConfig",\n "packing": {"nodes": "spread", "cards": "spread"},\n'
    ' "apiVersion": "gcu.enflame.com/v1alpha1"}',
}
# The API server does not say what is in another driver's.
OTHERS = r'{"z": 1.0, "e": 1e3, "s": "<é\u00e9>", "n": 18446744073709551615, "a": [1e-7, -0.0]}'


def opaque(driver: str, parameters: str) -> str:
    return json.dumps({"opaque": {"driver": driver, "parameters": "HERE"}}).replace(
        '"HERE"', parameters
    )


def post(cluster: Cluster, made: Object, config: Sequence[str]) -> None:
    """Create the claim with exactly these bytes as the entries of its configuration."""
    metadata = made["metadata"]
    made["spec"]["devices"]["config"] = "HERE"
    body = json.dumps(made).replace('"HERE"', f"[{','.join(config)}]")
    path = f"/apis/resource.k8s.io/v1/namespaces/{metadata['namespace']}/resourceclaims"
    cluster.kubectl("create", f"--raw={path}", "--filename=-", stdin=body)


def written(api: Client, *claims: Object) -> tuple[list[str], list[str]]:
    """The names of the claims that show their devices after the agent has written their statuses,
    and of those whose status it can never write."""
    ledger = Ledger()
    for each in claims:
        holds = [
            PreparedDevice(r.request, r.pool, r.device, visible_cards=CARDS[:1])
            for r in results(each)
        ]
        ledger = ledger.apply(record(ClaimStep.PREPARE_COMPLETED, ClaimRef.of(each), tuple(holds)))
    refused: list[ClaimRef] = []
    context = played_context(api, lambda: ledger, SimpleNamespace(latest={}), {}, refused)
    statuses = ClaimStatuses(context, spawn=run_here)
    assert statuses.write() is None, "nothing is to be tried again"
    names = [each["metadata"]["name"] for each in claims]
    namespace = claims[0]["metadata"]["namespace"]
    stored = [api.get(RESOURCE_CLAIMS, name, namespace=namespace) for name in names]
    shown = [each["metadata"]["name"] for each in stored if each["status"].get("devices")]
    return shown, [claim.name for claim in refused]


@pytest.mark.usefixtures("controller")
def test_a_claim_with_any_configuration_shows_its_devices(
    api: Client,
    namespace: str,
    control_plane: Cluster,
    machines: Machines,
    eyes: Eyes,
) -> None:
    """It is written into the allocation as the API server would write it itself."""
    machines.add([whole(n) for n in range(len(FORMS) + 1)])
    for name, parameters in FORMS.items():
        config = [opaque("gcu.enflame.com", parameters), opaque("nic.example.com", OTHERS)]
        post(control_plane, claim(name, namespace), config)
    packed = f"packed-{secrets.token_hex(3)}"
    spec = api.get(CLASSES, "gcu.enflame.com")["spec"]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    entry = json.loads(opaque("gcu.enflame.com", FORMS["white-space"]))
    api.create(CLASSES, {**kind, "metadata": {"name": packed}, "spec": spec | {"config": [entry]}})
    of_class = claim("of-a-class", namespace)
    of_class["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = packed
    api.create(RESOURCE_CLAIMS, of_class)
    names = [*FORMS, "of-a-class"]
    for name in names:
        api.create(PODS, pod_with(name, namespace, name))
    claims = [eyes.allocated(name) for name in names]
    api.delete(CLASSES, packed)
    assert all((allocation(each) or {})["devices"]["config"] for each in claims)
    assert written(api, *claims) == (names, [])
    # No client that speaks JSON can take the finalizer of such a claim: it is upstream's to take.
    scope = ("--all", "--namespace", namespace)
    control_plane.kubectl("delete", "pods", *scope, "--grace-period=0", "--force")
    control_plane.kubectl("delete", "resourceclaims", *scope, "--timeout=60s")


def test_a_claim_that_another_client_allocated_with_white_space_is_left_alone(
    api: Client, namespace: str, control_plane: Cluster
) -> None:
    """No patch leaves such an allocation as it is."""
    allocated = []
    for name, parameters in {"spaced": FORMS["white-space"], "compact": '{"a":1}'}.items():
        stored = api.create(RESOURCE_CLAIMS, claim(name, namespace))
        result = {
            "request": "gcu",
            "driver": "gcu.enflame.com",
            "pool": "n",
            "device": "whole-0000-0d-00-0",
        }
        config = {
            "source": "FromClaim",
            "opaque": {"driver": "a.example.com", "parameters": "HERE"},
        }
        devices = {"results": [result], "config": [config]}
        body = stored | {"status": {"allocation": {"devices": devices}}}
        path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}/status"
        control_plane.kubectl(
            "replace",
            f"--raw={path}",
            "--filename=-",
            stdin=json.dumps(body).replace('"HERE"', parameters),
        )
        allocated.append(api.get(RESOURCE_CLAIMS, name, namespace=namespace))
    assert written(api, *allocated) == (["compact"], ["spaced"])
