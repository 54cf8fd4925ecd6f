"""When names stop, because kube-scheduler does not heed them."""

from __future__ import annotations

import pytest

from controller.nominate.nominations import FollowedNames
from controller.write.node_hint import NodeHint


@pytest.mark.parametrize(
    ("followed", "hint"),
    [(199, NodeHint.NAME), (100, NodeHint.NAME), (99, NodeHint.AFFINITY), (0, NodeHint.AFFINITY)],
)
def test_of_200_names_half_are_followed(followed: int, hint: NodeHint) -> None:
    names = FollowedNames()
    stopped = [names.record(followed=number < followed) for number in range(200)]
    assert names.hint is hint
    assert sum(stopped) == (hint is NodeHint.AFFINITY)


def test_a_few_names_prove_nothing() -> None:
    names = FollowedNames()
    assert not any(names.record(followed=False) for _ in range(199))
    assert names.hint is NodeHint.NAME


def test_affinity_stays() -> None:
    names = FollowedNames()
    for _ in range(200):
        names.record(followed=False)
    assert not any(names.record(followed=True) for _ in range(400))
    assert names.hint is NodeHint.AFFINITY
