"""Names that others rely on: they do not change by accident, and the API takes them."""

from __future__ import annotations

import re

import pytest

from dra_driver.model import names

DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DRIVER", "gcu.enflame.com"),
        ("CLASS_WHOLE", "gcu.enflame.com"),
        ("CLASS_SHARED", "shared-gcu.enflame.com"),
        ("CLASS_DRS", "drs-gcu.enflame.com"),
        ("TAINT_ALLOCATED_BY", "gcu.enflame.com/allocated-by"),
        ("TAINT_UNHEALTHY", "gcu.enflame.com/unhealthy"),
        ("TAINT_FOREIGN", "gcu.enflame.com/foreign"),
        ("ANNOTATION_TERM", "gcu.enflame.com/allocator-term"),
        ("FINALIZER", "resource.kubernetes.io/delete-protection"),
        ("CDI_KIND", "gcu.enflame.com/claim"),
        ("ENV_VISIBLE_DEVICES", "ENFLAME_VISIBLE_DEVICES"),
        ("ENV_TOPS_VISIBLE_DEVICES", "TOPS_VISIBLE_DEVICES"),
    ],
)
def test_a_name_of_the_public_interface(name: str, value: str) -> None:
    assert getattr(names, name) == value


@pytest.mark.parametrize(
    "node", ["n", "gpu-node-1.example.com", "a" * 237, "a" * 238, f"{'a' * 220}.{'b' * 32}"]
)
def test_a_pool_has_a_name_that_the_api_takes(node: str) -> None:
    pool = names.pool_name(node)
    assert len(pool) <= 253
    assert all(DNS_SUBDOMAIN.fullmatch(part) for part in pool.split("/"))
    assert pool != node


def test_a_pool_is_of_one_node() -> None:
    assert names.pool_name("node-1") == "gcu.enflame.com/node-1"
    assert names.pool_name("a" * 252 + "b") != names.pool_name("a" * 252 + "c")
