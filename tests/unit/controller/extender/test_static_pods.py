"""Static pods: what they hold, by the UID that their kubelet gave them, and forged mirrors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.extender.annotated_cluster import AnnotatedCluster
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold
from dra_driver.model.mode import Mode
from tests.unit.controller.extender.build import (
    SHARED,
    WHOLE,
    address,
    card,
    hold,
    node,
    pod,
    problem,
    slices_left,
    view,
)

ONE, TWO = str(address(1)), str(address(2))
STATIC = "0123456789abcdef" * 2
"""A UID as kubelets give it to static pods."""


def mirror(name: str, static: str, cards: str = "", phase: str = "Pending") -> Object:
    """A pod with the annotation of mirrors, on the node n."""
    made = pod(name, {SHARED: 2}, on="n", cards=cards, phase=phase)
    made["metadata"]["annotations"]["kubernetes.io/config.mirror"] = static
    return made


def test_a_static_pod_is_known_by_the_uid_that_its_kubelet_gave_it() -> None:
    told = node("n", card(1, Mode.SHARED, Hold(STATIC, "c0", 2)))
    found = view(told, mirror("a", STATIC))
    assert (problem(found, "n"), slices_left(found)) == ("", 4)
    found.drop_pod("uid-a")
    assert slices_left(found) == 6
    found.put_pod(mirror("b", STATIC))  # the kubelet makes another mirror of what runs on
    assert (problem(found, "n"), slices_left(found)) == ("", 4)
    found.put_pod(mirror("b", STATIC, phase="Failed"))
    assert slices_left(found) == 6


@pytest.mark.parametrize(
    "end",
    [
        lambda *_: None,
        lambda found, forged: found.drop_pod(forged["metadata"]["uid"]),
        lambda found, forged: found.put_pod({**forged, "status": {"phase": "Failed"}}),
    ],
    ids=["stays", "deleted", "failed"],
)
@pytest.mark.parametrize(
    "named",
    [
        "uid-other",
        "",
        "uid-mirror",
        STATIC,
        "f" * 32,
        "F" * 32,
        "f" * 33,
        f"{'f' * 32}\n",
        "ü" * 32,
    ],
    ids=[
        "an ordinary pod",
        "nothing",
        "itself",
        "a static pod",
        "a pod that nobody knows",
        "upper case",
        "too long",
        "a line",
        "no hash",
    ],
)
@pytest.mark.parametrize("hint", ["", ONE, TWO], ids=["no hint", "a card", "another card"])
def test_a_mirror_that_a_tenant_made_changes_nothing(
    end: Callable[[AnnotatedCluster, Object], None], named: str, hint: str
) -> None:
    """Neither takes it the node from others, nor are cards free that others have."""
    found = view(
        node(
            "n",
            card(1, Mode.SHARED, hold("other"), Hold(STATIC, "c0", 2), Hold("", "", 1)),
            card(2, Mode.WHOLE, hold("big")),
        ),
        pod("other", {SHARED: 1}, on="n"),
        pod("big", {WHOLE: 1}, on="n"),
        mirror("own", STATIC),
    )
    assert (problem(found, "n"), slices_left(found)) == ("", 2)
    forged = mirror("mirror", named, cards=hint)
    found.put_pod(forged)
    end(found, forged)
    assert (problem(found, "n"), slices_left(found)) == ("", 2)
