from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.kubelet_api.dra.registration import Registration
from dra_driver.kubelet_api.generated import pluginregistration_v1_pb2 as api
from dra_driver.kubelet_api.sockets import Sockets

SOCKETS = Sockets.of(Path("/var/lib/kubelet"))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Context:
    """Stands where gRPC's context does; the registration asks nothing of it."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registration(clock: Clock) -> Registration:
    return Registration(SOCKETS, 30, clock)


def notify(registration: Registration, *, registered: bool, error: str = "") -> None:
    status = api.RegistrationStatus(plugin_registered=registered, error=error)
    registration.NotifyRegistrationStatus(status, Context())  # type: ignore[arg-type]  # unused


def test_a_silent_kubelet_is_told_in_words(registration: Registration, clock: Clock) -> None:
    registration.wait_from_now()
    clock.now += 29
    assert registration.problem() == "waiting for the kubelet to register the driver"
    clock.now += 1
    told = registration.problem() or ""
    for part in (str(SOCKETS.registration), "30 s", "--root-dir", "kubeletRootDir"):
        assert part in told


def test_a_refusal_is_told_with_the_kubelets_reason(
    registration: Registration, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    notify(registration, registered=False, error="no supported version")
    clock.now += 60
    refused = "the kubelet refused to register gcu.enflame.com: no supported version"
    assert [record.getMessage() for record in caplog.records] == [refused]
    offers = "this agent offers v1.DRAPlugin, v1.DRAResourceHealth, v1alpha1.DRAResourceHealth"
    assert registration.problem() == f"{refused}; {offers}"


def test_a_registration_ends_every_complaint(registration: Registration, clock: Clock) -> None:
    notify(registration, registered=False, error="not yet")
    notify(registration, registered=True)
    clock.now += 60
    assert registration.problem() is None
