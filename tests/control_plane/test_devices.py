"""What is published of a card, and told of a claim's devices, as a real server keeps it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import yaml

from dra_driver.agent.slices.slices import dropped_fields
from dra_driver.kube.client import Client
from dra_driver.kube.errors import Forbidden, KubeError
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.device import whole_device
from dra_driver.model.devices.device_shares import MAX_SLICES, drs_device, shared_device
from dra_driver.model.instance import Instance
from dra_driver.model.names import CLASS_SHARED, DRIVER
from dra_driver.model.profile import ProfileTable
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.claims.device_status import device_statuses
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.applied import applied
from tests.control_plane.cards import card, table
from tests.control_plane.objects import claim, resource_slice, shared, whole

pytestmark = pytest.mark.control_plane

PAGES: Final = Path(__file__).parents[2] / "docs/user"
NOW = "2026-05-01T10:00:00Z"


def tables() -> list[ProfileTable]:
    return [table(*sizes) for sizes in ((1, 3, 6), (1, 2, 4), (2,), range(1, 13))]


def test_the_server_keeps_every_form_of_a_card(api: Client) -> None:
    devices = [
        *(
            shared_device(card(count), count, allocator="controller", sips=24)
            for count in range(1, MAX_SLICES + 1)
        ),
        *(drs_device(card(at), table, allocator="controller") for at, table in enumerate(tables())),
        whole_device(card(1), allocator="controller", sips=24),
    ]
    sent = resource_slice("node-of-devices", devices)
    kept = api.create(RESOURCE_SLICES, sent, dry_run=True)
    assert dropped_fields(sent["spec"], kept["spec"]) == []


def test_the_server_takes_every_version_of_the_driver(api: Client) -> None:
    """With every kind of build metadata that is made."""
    versions = ["1.5.20260710", "1.4.0.3", "1.4.0-rc1", "1.04.0", f"1.4.0.{'9' * 80}", "none"]
    devices = [
        whole_device(replace(card(at), driver_version=each), allocator="controller")
        for at, each in enumerate(versions)
    ]
    sent = resource_slice("node-of-devices", devices)
    kept = api.create(RESOURCE_SLICES, sent, dry_run=True)
    assert dropped_fields(sent["spec"], kept["spec"]) == []
    found = [each["attributes"].get("driverVersion") for each in kept["spec"]["devices"]]
    assert found[1:] == [
        {"version": "1.4.0+3"},
        {"version": "1.4.0+rc1"},
        {"version": "1.4.0"},
        {"version": f"1.4.0+{'9' * 58}"},
        None,
    ]


def test_the_server_keeps_what_is_told_of_a_claims_devices(api: Client, namespace: str) -> None:
    pool, device = "gcu.enflame.com/node-of-devices", "drs-0000-01-00-0"
    shares = [f"{at:08x}-6a0e-4a54-9d0b-0f3a3f2f6a11" for at in (1, 2)]
    made = api.create(RESOURCE_CLAIMS, claim("shares", namespace))
    results = [
        {
            "request": "gcu",
            "driver": "gcu.enflame.com",
            "pool": pool,
            "device": device,
            "shareID": share,
            "consumedCapacity": {"size": "3"},
        }
        for share in shares
    ]
    allocated = {**made, "status": {"allocation": {"devices": {"results": results}}}}
    made = api.replace(RESOURCE_CLAIMS, allocated, subresource="status")
    holds = [
        PreparedDevice(
            "gcu",
            pool,
            device,
            share,
            {"size": "3"},
            instance=Instance(at, "3g.20gb", share),
        )
        for at, share in enumerate(shares)
    ]
    statuses: list[Object] = device_statuses(
        holds, {card(1).address: card(1)}, table=lambda _: None, now=NOW
    )
    sent = {**made, "status": {**made["status"], "devices": statuses}}
    kept = api.replace(RESOURCE_CLAIMS, sent, subresource="status")
    assert kept["status"]["devices"] == statuses


@pytest.fixture
def published(api: Client) -> Iterator[None]:
    """Slices of two nodes that are nothing else."""
    devices = {"node-a": [whole(3), shared(3)], "node-b": [shared(5)]}
    made = [
        api.create(RESOURCE_SLICES, resource_slice(node, each)) for node, each in devices.items()
    ]
    yield
    for each in made:
        api.delete(RESOURCE_SLICES, each["metadata"]["name"])


@pytest.mark.usefixtures("published")
def test_the_page_lists_the_devices_of_each_node(control_plane: Cluster) -> None:
    """`kubectl get resourceslices` without more shows no device."""
    listed = control_plane.kubectl(
        *command("install.md", "kubectl get resourceslices --field-selector")
    )
    taint = "gcu.enflame.com/allocated-by"
    assert f"node-b\n  shared-0000-05-00-0\t\t{taint}\n" in listed
    assert (
        f"node-a\n  whole-0000-03-00-0\tS60\t{taint}\n  shared-0000-03-00-0\t\t{taint}\n" in listed
    )
    assert "-0000-" not in control_plane.kubectl("get", "resourceslices")


def test_the_page_lists_who_has_what(control_plane: Cluster, api: Client, namespace: str) -> None:
    made = api.create(RESOURCE_CLAIMS, claim("one", namespace))
    # Others than pods that exist are removed from reservedFor.
    train = api.create(PODS, pod("train-0", namespace))
    pool, device = "gcu.enflame.com/node-a", "whole-0000-03-00-0"
    result = {"request": "gcu", "driver": "gcu.enflame.com", "pool": pool, "device": device}
    consumer = {"resource": "pods", "name": "train-0", "uid": train["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
    api.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")
    listed = control_plane.kubectl(*command("quota.md", "kubectl get resourceclaims -A"))
    rows = [line.split() for line in listed.splitlines()]
    assert rows[0] == ["NAMESPACE", "CLAIM", "POOLS", "DEVICES", "PODS"]
    assert [namespace, "one", pool, device, "train-0"] in rows


def test_a_quota_counts_devices_and_not_slices(api: Client, namespace: str) -> None:
    counted = f"{CLASS_SHARED}.deviceclass.resource.k8s.io/devices"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gcus", "namespace": namespace},
        "spec": {"hard": {counted: "2"}},
    }
    quotas = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
    api.create(quotas, quota)

    def used() -> str:
        found = api.get(quotas, "gcus", namespace=namespace)
        return str(found.get("status", {}).get("used", {}).get(counted))

    wait_until(lambda: used() == "0", PATIENCE, "the quota to be counted")
    exactly = {"deviceClassName": CLASS_SHARED, "capacity": {"requests": {"slices": "6"}}}
    six = {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}}
    api.create(RESOURCE_CLAIMS, {**claim("first", namespace), "spec": six})
    assert used() == "1"
    api.create(RESOURCE_CLAIMS, {**claim("second", namespace), "spec": six})
    with pytest.raises(Forbidden, match="exceeded quota"):
        api.create(RESOURCE_CLAIMS, {**claim("third", namespace), "spec": six})


def test_the_pages_policy_bounds_what_a_request_may_have(
    control_plane: Cluster, api: Client, namespace: str
) -> None:
    text = (PAGES / "quota.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    [(policy, binding)] = [yaml.safe_load_all(each) for each in blocks if "four-slices" in each]
    own = {"kubernetes.io/metadata.name": namespace}
    binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] = own

    def refusal(amount: int, **config: object) -> str:
        exactly = {
            "deviceClassName": CLASS_SHARED,
            "capacity": {"requests": {"slices": str(amount)}},
        }
        parameters = {"apiVersion": f"{DRIVER}/v1alpha1", "kind": "GcuConfig", **config}
        devices = {
            "requests": [{"name": "gcu", "exactly": exactly}],
            "config": [{"opaque": {"driver": DRIVER, "parameters": parameters}}],
        }
        made = claim("asks", namespace) | {"spec": {"devices": devices}}
        try:
            api.create(RESOURCE_CLAIMS, made, dry_run=True)
        except KubeError as error:
            return str(error)
        return ""

    with applied(control_plane, policy, binding):
        wait_until(lambda: refusal(5), PATIENCE, "the policy in force")
        assert "a request may have at most 4 slices" in refusal(5)
        assert "a GcuConfig may have at most 4 slices" in refusal(4, slices=5)
        assert "may not ask for memory or cores" in refusal(4, cores=60)
        assert "may not ask for memory or cores" in refusal(4, memory="1Gi")
        assert refusal(4, slices=4, packing={"cards": "spread"}) == ""


def command(page: str, begin: str) -> list[str]:
    """The arguments of the command of the user's page that begins so."""
    lines = map(str.strip, (PAGES / page).read_text(encoding="utf-8").splitlines())
    [line] = [each for each in lines if each.startswith(begin)]
    return shlex.split(line)[1:]
