"""The settings' rules."""

from __future__ import annotations

import pytest

from controller.settings import ControllerSettings
from dra_driver.config.loader import load
from dra_driver.model.errors import InvalidValue


def settings(*argv: str) -> ControllerSettings:
    return load(ControllerSettings, argv, {}, prog="gcu-dra-controller", description="")


def test_defaults_are_client_gos_lease_times() -> None:
    found = settings()
    assert (found.lease_duration, found.lease_renew_deadline, found.lease_retry) == (15, 10, 2)


@pytest.mark.parametrize(
    "flag", ["--lease-duration=10", "--lease-renew-deadline=15", "--lease-retry=10"]
)
def test_lease_times_out_of_order_are_refused(flag: str) -> None:
    with pytest.raises(InvalidValue, match="lease_retry < lease_renew_deadline < lease_duration"):
        settings(flag)


def test_another_allocator_is_refused() -> None:
    with pytest.raises(InvalidValue, match="allocator"):
        settings("--allocator=kubelet")


def test_filters_that_are_left_out_are_those_that_are_predicted() -> None:
    found = settings("--unconsidered-plugins=NodePorts, InterPodAffinity")
    assert found.plugins_left_out == {"NodePorts", "InterPodAffinity"}
    assert not settings().plugins_left_out
    with pytest.raises(InvalidValue, match="no filter that is predicted: NodeName"):
        settings("--unconsidered-plugins=NodeName,NodePorts")


def test_every_setting_says_what_it_is() -> None:
    assert all(field.description for field in ControllerSettings.model_fields.values())
