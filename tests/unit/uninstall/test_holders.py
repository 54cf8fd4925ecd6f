"""Who has GCUs, from claims as the API server has them."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from dra_driver.uninstall.check import claims_with_gcus


def claim(name: str, *pools: str, driver: str = DRIVER, pods: tuple[str, ...] = ()) -> Object:
    """A claim with one device of each pool; without pools it is not allocated."""
    results = [
        {"request": "gcu", "driver": driver, "pool": pool, "device": "whole-0000-01-00-0"}
        for pool in pools
    ]
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    status: dict[str, Any] = {"reservedFor": reserved}
    if results:
        status["allocation"] = {"devices": {"results": results}}
    return {"metadata": {"namespace": "default", "name": name, "uid": name}, "status": status}


NODE_1, NODE_2 = f"{DRIVER}/node-1", f"{DRIVER}/node-2"


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (
            claim("a", NODE_1, pods=("p",)),
            "claim default/a: 1 device of node-1, used by pod default/p",
        ),
        (
            claim("a", NODE_1, NODE_1, pods=("p", "q")),
            "claim default/a: 2 devices of node-1, used by pod default/p, pod default/q",
        ),
        (
            claim("a", NODE_2, NODE_1),
            "claim default/a: 2 devices of node-1, node-2, used by no pod yet",
        ),
    ],
    ids=["one pod", "several", "allocated only"],
)
def test_a_claim_with_gcus_is_told_with_its_users(made: Object, line: str) -> None:
    assert claims_with_gcus([made]) == [line]


@pytest.mark.parametrize(
    "made",
    [
        claim("a"),
        claim("a", "pool", driver="gpu.example.com", pods=("p",)),
        {"metadata": {"namespace": "default", "name": "new", "uid": "new"}},
    ],
    ids=["not allocated", "another driver's", "without a status"],
)
def test_other_claims_are_nobodys_concern(made: Object) -> None:
    assert claims_with_gcus([made]) == []


def test_they_are_sorted_by_name() -> None:
    found = claims_with_gcus([claim(name, NODE_1) for name in "cab"])
    assert [line.partition(":")[0][-1] for line in found] == ["a", "b", "c"]
