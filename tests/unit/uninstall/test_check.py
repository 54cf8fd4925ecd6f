"""The check before an uninstall: what it says, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dra_driver.config.loader import load
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.uninstall.check import CheckSettings, check
from tests.fake_api.api import KNOWN, FakeApi
from tests.unit.uninstall.test_holders import FREE, NODE_1, SHARED, claim, node

SETTINGS = CheckSettings(release="gcu", release_namespace="gcu-system", revision=3)
BY_LIMITS = SETTINGS.model_copy(update={"by_limits": True})


def pod(name: str, node: str) -> Object:
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"nodeName": node}}


def api(*claims: Object, nodes: Sequence[Object] = (), dra: bool = True) -> FakeApi:
    """A server with these, and a pod ``default/a`` on node ``n``, whose neighbour is elsewhere."""
    return FakeApi(
        *((RESOURCE_CLAIMS, each) for each in claims),
        *((NODES, each) for each in nodes),
        *((PODS, each) for each in (pod("a", "n"), pod("b", "elsewhere"))),
        served=KNOWN if dra else KNOWN - {RESOURCE_CLAIMS},
    )


def test_nothing_is_said_when_no_claim_has_a_gcu_or_there_are_no_claims(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check(api(claim("waits")), SETTINGS)
    check(api(dra=False), SETTINGS)
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
        check(api(nodes=[node("n", SHARED, FREE)], dra=False), BY_LIMITS)
    told = capsys.readouterr().err.splitlines()
    users = "a pod that has just started or ended, pod default/a"
    assert f"  node n: card 0000:01:00.0, shared, used by {users}" in told
    assert "  helm uninstall gcu --namespace gcu-system --no-hooks" in told
    check(api(nodes=[node("n", FREE)], dra=False), BY_LIMITS)


@pytest.mark.parametrize("by_limits", [False, True], ids=["claims", "cards"])
def test_a_long_list_is_cut(capsys: pytest.CaptureFixture[str], by_limits: bool) -> None:
    claims = [] if by_limits else [claim(f"c{number:02}", NODE_1) for number in range(45)]
    nodes = [node(f"n{number:02}", SHARED) for number in range(45)] if by_limits else []
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
    check(api(nodes=[node("n", SHARED)]), SETTINGS)


def test_the_pod_tells_the_release() -> None:
    environ = {"GCU_RELEASE": "gcu", "GCU_RELEASE_NAMESPACE": "gcu-system", "GCU_REVISION": "3"}
    assert load(CheckSettings, [], environ, prog="check", description="") == SETTINGS
