"""Which requests one container's variables must name together."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.claims.usage_sets import Use, may_be_together, usage_sets
from dra_driver.model.errors import Refused
from dra_driver.model.mode import Mode

A1, A2, B1 = Use("uid-a", "one"), Use("uid-a", "two"), Use("uid-b", "one")
CLAIMS = {"a": "uid-a", "b": "uid-b"}
REQUESTS = {"uid-a": frozenset({"one", "two"}), "uid-b": frozenset({"one"})}


def container(name: str, *claims: str) -> dict[str, Any]:
    """`claims` as ``name`` or ``name/request``."""
    entries = []
    for claim in claims:
        entry, _, request = claim.partition("/")
        entries.append({"name": entry} | ({"request": request} if request else {}))
    return {"name": name, "resources": {"claims": entries}}


def pod(*containers: dict[str, Any], init: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    spec = {"containers": list(containers)} | ({"initContainers": init} if init else {})
    return {"metadata": {"namespace": "ns", "name": "pod"}, "spec": spec}


def sets(found: dict[Use, frozenset[Use]]) -> set[frozenset[Use]]:
    assert all(use in used for use, used in found.items())
    return set(found.values())


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([container("c", "a")], [{A1, A2}, {B1}], id="a whole claim"),
        pytest.param([container("c", "a", "b")], [{A1, A2, B1}], id="two claims"),
        pytest.param([container("c", "a/one")], [{A1}, {A2}, {B1}], id="one request"),
        pytest.param(
            [container("c", "a/one", "b"), container("d", "a/two")],
            [{A1, B1}, {A2}],
            id="disjoint",
        ),
        pytest.param([container("c", "a"), container("d", "a")], [{A1, A2}, {B1}], id="equal"),
        pytest.param(
            [container("c", "a/one", "a/two"), container("d", "a")],
            [{A1, A2}, {B1}],
            id="equal in other words",
        ),
        pytest.param([container("c", "a/one", "a")], [{A1, A2}, {B1}], id="twice in one"),
        pytest.param([{"name": "c"}], [{A1}, {A2}, {B1}], id="nobody names them"),
        pytest.param(
            [container("c", "other"), container("d", "a")], [{A1, A2}, {B1}], id="foreign"
        ),
        pytest.param(
            [container("c", "a/foreign"), container("d", "a")],
            [{A1, A2}, {B1}],
            id="a request that another driver serves",
        ),
    ],
)
def test_sets(containers: list[dict[str, Any]], expected: list[set[Use]]) -> None:
    found = usage_sets(pod(*containers), CLAIMS, REQUESTS)
    assert found.keys() == {A1, A2, B1}
    assert sets(found) == {frozenset(used) for used in expected}


@pytest.mark.parametrize(
    ("containers", "init"),
    [
        pytest.param([container("c", "a"), container("d", "a/one")], [], id="part of it"),
        pytest.param([container("c", "a", "b"), container("d", "b")], [], id="one of two claims"),
        pytest.param([container("d", "b")], [container("c", "a", "b")], id="init container"),
        pytest.param(
            [container("x", "a/two"), container("c", "a/one", "b"), container("d", "a/one")],
            [],
            id="two of three",
        ),
    ],
)
def test_sets_that_overlap_are_refused_with_both_names(
    containers: list[dict[str, Any]], init: list[dict[str, Any]]
) -> None:
    with pytest.raises(Refused, match=r"containers 'c' and 'd' of pod ns/pod share some") as e:
        usage_sets(pod(*containers, init=init), CLAIMS, REQUESTS)
    assert "same requests, or none in common" in e.value.remedy


def test_a_pod_without_claims_of_ours() -> None:
    assert usage_sets(pod(container("c", "other")), {}, {}) == {}


def test_fields_that_are_null_are_as_if_left_out() -> None:
    spec = {"initContainers": None, "containers": [{"name": "c", "resources": {"claims": None}}]}
    assert usage_sets({"metadata": {"name": "p"}, "spec": spec}, {}, {}) == {}


@pytest.mark.parametrize(
    ("modes", "together"),
    [
        pytest.param([], True, id="nothing"),
        pytest.param([Mode.DRS], True, id="one instance"),
        pytest.param([Mode.DRS, Mode.DRS], False, id="two instances"),
        pytest.param([Mode.WHOLE, Mode.DRS], False, id="an instance and a card"),
        pytest.param([Mode.WHOLE, Mode.SHARED], True, id="a card and a share"),
        pytest.param(["drs", "unknown"], False, id="an instance and what is not known yet"),
    ],
)
def test_a_container_has_one_instance_or_none(modes: list[str], together: bool) -> None:
    assert may_be_together(modes) is together
