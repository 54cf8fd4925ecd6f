"""The check before an uninstall: what it says, and how it ends."""

from __future__ import annotations

from typing import cast

import pytest

from dra_driver.config.loader import load
from dra_driver.kube.api import Api, Listing
from dra_driver.kube.errors import NotFound, Unavailable
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError, Refused
from dra_driver.uninstall.check import CheckSettings, check
from tests.unit.uninstall.test_holders import FREE, NODE_1, SHARED, claim, node

SETTINGS = CheckSettings(release="gcu", release_namespace="gcu-system", revision=3)
BY_LIMITS = SETTINGS.model_copy(update={"by_limits": True})


POD = {"metadata": {"namespace": "default", "name": "a", "uid": "uid-a"}}


class Claims:
    """The port `Api` with claims, or an error, nodes, and a pod ``default/a`` on node ``n``."""

    def __init__(
        self, *claims: Object, error: GcuError | None = None, nodes: tuple[Object, ...] = ()
    ) -> None:
        self._claims = claims
        self._error = error
        self._nodes = nodes

    def list(self, resource: Resource, *, field_selector: str = "") -> Listing:
        if resource == NODES:
            return Listing(self._nodes, "1")
        if resource == PODS:
            pods = {"spec.nodeName=n": (POD,)}
            return Listing(pods.get(field_selector, ()), "1")
        assert resource == RESOURCE_CLAIMS
        if self._error is not None:
            raise self._error
        return Listing(self._claims, "1")


def api(*claims: Object, error: GcuError | None = None, nodes: tuple[Object, ...] = ()) -> Api:
    return cast("Api", Claims(*claims, error=error, nodes=nodes))


NO_DRA = NotFound("list of resourceclaims: not found")


def test_nothing_is_said_when_no_claim_has_a_gcu_or_there_are_no_claims(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check(api(claim("waits")), SETTINGS)
    check(api(error=NotFound("list of resourceclaims: not found")), SETTINGS)
    assert capsys.readouterr() == ("", "")


def test_holders_and_what_can_be_done_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refused, match="while claims have GCUs"):
        check(api(claim("a", NODE_1, pods=("p",)), claim("b", NODE_1)), SETTINGS)
    told = capsys.readouterr().err.splitlines()
    assert "  claim default/a: 1 device of node-1, used by pod default/p" in told
    assert "  claim default/b: 1 device of node-1, used by no pod yet" in told
    assert "  helm rollback gcu 3 --namespace gcu-system" in told
    assert "  helm uninstall gcu --namespace gcu-system --no-hooks" in told


def test_cards_of_pods_by_limits_are_told_where_there_is_no_dra(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody would destroy their instances."""
    with pytest.raises(Refused, match="while containers have GCUs"):
        check(api(error=NO_DRA, nodes=(node("n", SHARED, FREE),)), BY_LIMITS)
    told = capsys.readouterr().err.splitlines()
    users = "a pod that has just started or ended, pod default/a"
    assert f"  node n: card 0000:01:00.0, shared, used by {users}" in told
    assert "  helm uninstall gcu --namespace gcu-system --no-hooks" in told
    check(api(error=NO_DRA, nodes=(node("n", FREE),)), BY_LIMITS)


@pytest.mark.parametrize("by_limits", [False, True], ids=["claims", "cards"])
def test_a_long_list_is_cut(capsys: pytest.CaptureFixture[str], by_limits: bool) -> None:
    claims = [] if by_limits else [claim(f"c{number:02}", NODE_1) for number in range(45)]
    nodes = tuple(node(f"n{number:02}", SHARED) for number in range(45)) if by_limits else ()
    with pytest.raises(Refused):
        check(api(*claims, nodes=nodes), BY_LIMITS)
    told = capsys.readouterr().err.splitlines()
    assert sum(line.startswith(("  claim", "  node")) for line in told) == 40
    assert "  … and 5 more" in told


def test_a_list_that_just_fits_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refused):
        check(api(*(claim(f"c{number:02}", NODE_1) for number in range(40))), SETTINGS)
    told = capsys.readouterr().err
    assert told.count("  claim") == 40
    assert "…" not in told


def test_where_there_is_dra_nodes_tell_of_the_time_before() -> None:
    check(api(nodes=(node("n", SHARED),)), SETTINGS)


def test_what_cannot_be_found_out_is_no_consent() -> None:
    away = Unavailable("list of resourceclaims")
    with pytest.raises(Unavailable):
        check(api(error=away), SETTINGS)


def test_the_pod_tells_the_release() -> None:
    environ = {"GCU_RELEASE": "gcu", "GCU_RELEASE_NAMESPACE": "gcu-system", "GCU_REVISION": "3"}
    assert load(CheckSettings, [], environ, prog="check", description="") == SETTINGS
