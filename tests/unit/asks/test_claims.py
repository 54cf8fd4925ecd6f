"""What becomes of a pod's limits: the same as by the chart's policy
(tests/control_plane/test_legacy_policy.py)."""

from __future__ import annotations

import random

import pytest

from dra_driver.asks.claims import claim_of
from dra_driver.asks.templates import template_for
from dra_driver.model.errors import Refused
from tests.unit.asks.cases import REFUSED, TRANSLATED, Case, claimed, random_pod


@pytest.mark.parametrize("case", TRANSLATED.values(), ids=TRANSLATED)
def test_limits_become_a_claim(case: Case) -> None:
    assert claimed(case.pod("team")) == (case.template, case.uses)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused_in_words(case: Case) -> None:
    with pytest.raises(Refused, match=case.words):
        claim_of(case.pod("team"))


@pytest.mark.parametrize("seed", range(30))
def test_every_container_has_what_it_asks_for(seed: int) -> None:
    """At any time: devices are shared with containers alone that have ended or not begun."""
    claim = claim_of(random_pod(random.Random(seed), "team"))
    if claim is None:
        return
    assert template_for("team", claim.template) is not None
    by_request = dict[str, list[int]]()
    for place, request in enumerate(claim.requests):
        by_request.setdefault(request, []).append(place)
    for places in by_request.values():
        users = [claim.ask.containers[place] for place in places]
        assert all(user.ends for user in users[:-1])
        assert any(all(user.covers(other) for other in users) for user in users)
