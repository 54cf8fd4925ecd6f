"""What `kubectl gcu inspect` reads of an API server, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_driver.kube.api import Listing, ServerVersion
from dra_driver.kube.errors import Forbidden, NotFound, Unavailable
from dra_driver.kube.resources import (
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from kubectl_gcu.cluster.state import ClusterState, read_cluster
from kubectl_gcu.main import FAILED, PARTIAL
from tests.unit.kubectl_gcu.command import gcu
from tests.unit.kubectl_gcu.inventory.inspected import BY_CLAIMS, annotated


class Server:
    """Lists; `refused` has (kind, namespace), with "" for all namespaces."""

    def __init__(self, state: ClusterState, *refused: tuple[Resource, str]) -> None:
        self._found = {
            RESOURCE_SLICES: state.slices,
            RESOURCE_CLAIMS: state.claims,
            NODES: state.nodes,
            PODS: state.pods,
            DEVICE_TAINT_RULES: state.rules,
        }
        self._refused = refused
        self.has_dra = True
        self.minor = 36

    def server_version(self) -> ServerVersion:
        return ServerVersion(1, self.minor)

    def close(self) -> None:
        """Nothing is open."""

    def list(self, resource: Resource, *, namespace: str = "", field_selector: str = "") -> Listing:
        assert bool(field_selector) == (resource == RESOURCE_SLICES)
        if not self.has_dra and resource in {RESOURCE_SLICES, RESOURCE_CLAIMS}:
            raise NotFound("no such kind", status=404)
        if (resource, namespace) in self._refused:
            raise Forbidden("no", status=403)
        items = self._found[resource]
        if namespace:
            items = tuple(each for each in items if each["metadata"]["namespace"] == namespace)
        return Listing(tuple(items), "1")


def read(server: Any, namespace: str = "team") -> ClusterState:
    return read_cluster(server, namespace)


def test_everything_is_read_and_a_server_without_dra_has_no_claims() -> None:
    server = Server(BY_CLAIMS)
    assert read(server) == BY_CLAIMS
    server.has_dra = False
    assert read(server) == ClusterState(pods=BY_CLAIMS.pods)
    old = Server(BY_CLAIMS, (RESOURCE_SLICES, ""), (RESOURCE_CLAIMS, ""))
    old.minor = 33
    assert read(old) == ClusterState(pods=BY_CLAIMS.pods)


def test_a_user_of_one_namespace_sees_its_claims_and_what_is_missing() -> None:
    refused = [(RESOURCE_CLAIMS, ""), (PODS, ""), (PODS, "team"), (NODES, "")]
    found = read(Server(BY_CLAIMS, *refused))
    assert (found.claims, found.pods) == (BY_CLAIMS.claims, ())
    claims, nodes, pods = found.missing.values()
    assert claims.startswith("you may not list resourceclaims in all namespaces: cards may be")
    assert nodes == "you may not list nodes: cards of nodes that serve limits are not shown"
    assert pods.startswith("you may not list pods, not even in the namespace team: pods and")


def test_exit_codes() -> None:
    code, out, errors = gcu(Server(BY_CLAIMS), "inspect", "a", "--output=json")
    assert (code, errors, json.loads(out)["nodes"][0]["name"]) == (0, "", "a")
    code, out, errors = gcu(Server(BY_CLAIMS), "inspect", "z")
    assert (code, out) == (FAILED, "")
    assert errors == "error: the node z has no GCUs of this driver\n"
    code, _, errors = gcu(Server(ClusterState()), "inspect")
    assert (code, errors) == (FAILED, "error: the cluster has no GCUs of this driver\n")
    code, out, errors = gcu(Server(BY_CLAIMS, (NODES, "")), "inspect")
    assert (code, errors.startswith("warning: you may not list nodes")) == (PARTIAL, True)
    assert "0000:01:00.0" in out
    broken = ClusterState(nodes=(annotated("b", "{"),))
    code, _, errors = gcu(Server(broken), "inspect")
    assert code == PARTIAL
    assert errors.startswith("warning: node b: annotation gcu.enflame.com/cards cannot be read")


@pytest.mark.parametrize("form", ["table", "json", "gcushare"])
def test_a_named_node_that_is_not_found_is_an_error_with_any_rights(form: str) -> None:
    code, out, errors = gcu(Server(BY_CLAIMS, (NODES, "")), "inspect", "z", f"--output={form}")
    assert (code, out) == (FAILED, "")
    assert errors.splitlines()[1:] == ["error: the node z has no GCUs of this driver that you see"]


def test_a_server_that_does_not_answer_is_an_error() -> None:
    class Silent(Server):
        def server_version(self) -> ServerVersion:
            raise Unavailable("no answer")

    code, out, errors = gcu(Silent(BY_CLAIMS), "inspect")
    assert (code, out) == (FAILED, "")
    assert errors.startswith("error: no answer")


def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gcu(Server(BY_CLAIMS), "inspect", "--output=xml")
    assert ended.value.code == 2
    assert "invalid choice: 'xml'" in capsys.readouterr().err
