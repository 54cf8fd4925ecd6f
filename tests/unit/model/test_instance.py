from __future__ import annotations

import pytest

from dra_driver.model.errors import InvalidValue
from dra_driver.model.instance import Instance

UUID = "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11"
ONE = Instance(1, "1g.6gb", UUID)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(Instance(2, "1g.6gb", UUID), True, id="same uuid under another id"),
        pytest.param(Instance(1, "1g.6gb", UUID.upper()), False, id="another uuid"),
        pytest.param(Instance(1, "1g.6gb"), True, id="a tool that prints no uuid"),
        pytest.param(Instance(1, "3g.20gb"), False, id="the id of another profile's"),
        pytest.param(Instance(2, "1g.6gb"), False, id="another id without uuid"),
    ],
)
def test_which_instances_are_one(other: Instance, same: bool) -> None:
    assert ONE.is_same(other) is same
    assert other.is_in([ONE]) is same


@pytest.mark.parametrize(
    ("number", "profile", "uuid"),
    [
        pytest.param(1, "1g.6gb", "a b", id="blank"),
        pytest.param(1, "1g.6gb", "a,DRS-b", id="a second one"),
        pytest.param(1, "1g.6gb", "", id="empty"),
        pytest.param(1, "1g.6gb", "x" * 65, id="too long"),
        pytest.param(-1, "1g.6gb", UUID, id="negative id"),
        pytest.param(10**309, "1g.6gb", UUID, id="an id that no JSON can express"),
        pytest.param(1, "garbage", UUID, id="no profile"),
    ],
)
def test_what_must_not_end_in_an_environment_is_refused(
    number: int, profile: str, uuid: str
) -> None:
    with pytest.raises(InvalidValue):
        Instance(number, profile, uuid)


def test_people_read_the_uuid_or_the_number() -> None:
    assert str(ONE) == f"1g.6gb {UUID}"
    assert str(Instance(1, "1g.6gb")) == "1g.6gb number 1"
