"""The check before an uninstall: what it says, and how it ends."""

from __future__ import annotations

from typing import cast

import pytest

from dra_driver.config.loader import load
from dra_driver.kube.api import Api, Listing
from dra_driver.kube.errors import NotFound, Unavailable
from dra_driver.kube.resources import RESOURCE_CLAIMS, Resource
from dra_driver.model.claim import Object
from dra_driver.model.errors import GcuError, Refused
from dra_driver.uninstall.main import check
from dra_driver.uninstall.settings import UninstallSettings
from tests.unit.uninstall.test_holders import NODE_1, claim

SETTINGS = UninstallSettings(release="gcu", release_namespace="gcu-system", revision=3)


class Claims:
    """The port `Api` with claims, or an error, in place of a server."""

    def __init__(self, *claims: Object, error: GcuError | None = None) -> None:
        self._claims = claims
        self._error = error

    def list(self, resource: Resource) -> Listing:
        assert resource == RESOURCE_CLAIMS
        if self._error is not None:
            raise self._error
        return Listing(self._claims, "1")


def api(*claims: Object, error: GcuError | None = None) -> Api:
    return cast("Api", Claims(*claims, error=error))


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
    assert "  claim default/a: 1 device of node-1, used by pod p" in told
    assert "  claim default/b: 1 device of node-1, used by no pod yet" in told
    assert "  helm rollback gcu 3 --namespace gcu-system" in told
    assert "  helm uninstall gcu --namespace gcu-system --no-hooks" in told


def test_what_cannot_be_found_out_is_no_consent() -> None:
    away = Unavailable("list of resourceclaims")
    with pytest.raises(Unavailable):
        check(api(error=away), SETTINGS)


def test_the_pod_tells_the_release() -> None:
    environ = {"GCU_RELEASE": "gcu", "GCU_RELEASE_NAMESPACE": "gcu-system", "GCU_REVISION": "3"}
    assert load(UninstallSettings, [], environ, prog="check", description="") == SETTINGS
