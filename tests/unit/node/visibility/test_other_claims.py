"""Which prepared claims are read beside the one of a call."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger, PreparedClaim
from dra_driver.node.visibility.other_claims import others_to_read


def claim(name: str, namespace: str = "team") -> ClaimRef:
    return ClaimRef(namespace, name, f"uid-{namespace}-{name}")


def prepared(*claims: ClaimRef) -> Ledger:
    """Of none of them it is known that one pod alone may use it."""
    return Ledger(
        {ref.uid: PreparedClaim(ref, ClaimState.PREPARE_COMPLETED, (), ()) for ref in claims}
    )


OTHERS = tuple(claim(f"other-{number}") for number in range(4))
CALLED = claim("called")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_few_are_read(count: int) -> None:
    some = OTHERS[:count]
    ledger = prepared(CALLED, *some, claim("one", "another-team"))
    assert others_to_read(ledger, {CALLED.uid: CALLED}) == {ref.uid: ref for ref in some}


def test_of_many_none_is_read() -> None:
    """The pod is read instead: to read some of them would leave out what it may use."""
    assert others_to_read(prepared(CALLED, *OTHERS), {CALLED.uid: CALLED}) == {}


def test_for_a_call_of_several_claims_none_is_read() -> None:
    called = {ref.uid: ref for ref in (CALLED, claim("also-called"))}
    assert others_to_read(prepared(*called.values(), OTHERS[0]), called) == {}
