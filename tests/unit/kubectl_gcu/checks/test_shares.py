"""Clusters with so many shares that the controller allocates quicker than kube-scheduler."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from kubectl_gcu.checks.installation import Installation
from kubectl_gcu.checks.shares import MOST_SHARES
from tests.unit.controller.allocator.build import device, pool
from tests.unit.kubectl_gcu.checks.installations import HEALTHY, found_in, with_state
from tests.unit.kubectl_gcu.checks.test_programs_and_cards import FOR_SCHEDULER
from tests.unit.kubectl_gcu.checks.test_versions_and_policies import server


def shared(slices: int) -> tuple[Object, ...]:
    """Slices of one card, and its other devices, which are no shares."""
    return tuple(pool("a", [device("whole", 1), device("shared", 1, slices=slices)]))


def published(slices: int, of: Installation = FOR_SCHEDULER) -> Installation:
    return with_state(of, slices=shared(slices))


FAULTS: dict[str, tuple[Installation, str]] = {
    "many shares": (
        published(MOST_SHARES + 1),
        (
            "many-shares: allocator: it is kube-scheduler, and 3,601 slices of shared cards are "
            "published: above 3,600 the controller is quicker. Let it allocate: helm upgrade "
            "gcu-dra-driver charts/gcu-dra-driver --namespace gcu --reuse-values "
            "--set allocator=controller "
            "(docs/user/which-allocator.md#what-it-costs-kube-scheduler)."
        ),
    ),
}


@pytest.mark.parametrize(("found", "line"), FAULTS.values(), ids=FAULTS)
def test_a_fault(found: Installation, line: str) -> None:
    assert line in found_in(found)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(published(MOST_SHARES), id="not so many"),
        pytest.param(published(MOST_SHARES + 1, HEALTHY), id="the controller allocates"),
        pytest.param(published(MOST_SHARES + 1, server(38, FOR_SCHEDULER)), id="1.38"),
    ],
)
def test_nothing_is_wrong(found: Installation) -> None:
    assert not [line for line in found_in(found) if line.startswith("many-shares")]
