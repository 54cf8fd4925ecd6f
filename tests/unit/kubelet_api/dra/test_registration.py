from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.kubelet_api.dra.registration import Registration
from dra_driver.kubelet_api.generated import pluginregistration_v1_pb2 as api
from dra_driver.kubelet_api.sockets import Sockets
from tests.unit.kubelet_api.callers import Caller

SOCKETS = Sockets.of(Path("/var/lib/kubelet"))


class Asked(Registration):
    """By a kubelet, at a clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__(SOCKETS, 30, lambda: self.now)

    def notify(self, *, registered: bool, error: str = "") -> None:
        status = api.RegistrationStatus(plugin_registered=registered, error=error)
        self.NotifyRegistrationStatus(status, Caller().context)


@pytest.fixture
def registration() -> Asked:
    return Asked()


def test_a_silent_kubelet_is_told_in_words(registration: Asked) -> None:
    registration.wait_from_now()
    registration.now += 29
    assert registration.problem() == "waiting for the kubelet to register the driver"
    registration.now += 1
    told = registration.problem() or ""
    for part in (str(SOCKETS.registration), "30 s", "--root-dir", "kubeletRootDir"):
        assert part in told


def test_a_refusal_is_told_with_the_kubelets_reason(
    registration: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    registration.notify(registered=False, error="no supported version")
    registration.now += 60
    refused = "the kubelet refused to register gcu.enflame.com: no supported version"
    assert [record.getMessage() for record in caplog.records] == [refused]
    offers = "this agent offers v1.DRAPlugin, v1.DRAResourceHealth, v1alpha1.DRAResourceHealth"
    assert registration.problem() == f"{refused}; {offers}"


def test_a_registration_ends_every_complaint(registration: Asked) -> None:
    registration.notify(registered=False, error="not yet")
    registration.notify(registered=True)
    registration.now += 60
    assert registration.problem() is None
