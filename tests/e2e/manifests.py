"""Claims and pods as users write them."""

from __future__ import annotations

from typing import Any

from dra_driver.config.device_config import amount_entry
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_DRS, CLASS_SHARED, CLASS_WHOLE, DRIVER
from tests.cluster.workloads import pod

Object = dict[str, Any]

_CLASSES = {Mode.WHOLE: CLASS_WHOLE, Mode.SHARED: CLASS_SHARED, Mode.DRS: CLASS_DRS}


def claim(name: str, namespace: str, *, count: int = 1, **devices: Any) -> Object:
    """A ResourceClaim for whole cards; `devices` are further fields of spec.devices."""
    exactly: Object = {"deviceClassName": CLASS_WHOLE, "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "gcu", "exactly": exactly}], **devices}},
    }


def claim_in(
    mode: Mode, name: str, namespace: str, amount: int | None = None, *, card: str = ""
) -> Object:
    """A ResourceClaim for a card in that mode, or for `amount` slices or an instance of that size;
    with `card`, of the card with that PCI address and of no other."""
    made = claim(name, namespace)
    exactly = made["spec"]["devices"]["requests"][0]["exactly"]
    exactly["deviceClassName"] = _CLASSES[mode]
    if amount is not None:
        exactly["capacity"] = {"requests": {CAPACITY_OF_MODE[mode]: str(amount)}}
    if card:
        expression = f"device.attributes['{DRIVER}'].card == '{card}'"
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return made


def portable_claim_in(
    mode: Mode, name: str, namespace: str, amount: int | None = None, *, card: str = ""
) -> Object:
    """The same with the amount in the driver's configuration, which every API server keeps."""
    made = claim_in(mode, name, namespace, card=card)
    if amount is not None:
        entry = amount_entry(["gcu"], {CAPACITY_OF_MODE[mode]: amount})
        made["spec"]["devices"]["config"] = [entry]
    return made


def pod_with(claim_name: str, namespace: str, *, name: str = "", **spec: Any) -> Object:
    """A pod that uses the claim of that name, and is called so unless `name` says otherwise."""
    made = pod(name or claim_name, namespace, **spec)
    made["spec"]["terminationGracePeriodSeconds"] = 1
    made["spec"]["resourceClaims"] = [{"name": "gcu", "resourceClaimName": claim_name}]
    for container in made["spec"]["containers"]:
        container["resources"] = {"claims": [{"name": "gcu"}]}
    return made
