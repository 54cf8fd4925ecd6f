"""Quantities against decimal arithmetic, and against the tables of k8s.io/apimachinery."""

from __future__ import annotations

from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.model.errors import InvalidValue
from dra_driver.model.quantity import format_binary, parse_quantity

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
MOST_BINARY = 2**63 - 1

EXACT = Context(prec=200)
whole = st.integers(0, 10**15).map(str)
numbers = st.one_of(
    whole,
    st.builds("{}.{}".format, whole, st.text("0123456789", max_size=12)),
    st.text("0123456789", min_size=1, max_size=12).map(".{}".format),
)
signs = st.sampled_from(["", "+", "-"])


def nanos(value: Decimal) -> Fraction:
    """`value` rounded away from zero to a nano."""
    return Fraction(value.quantize(Decimal("1e-9"), ROUND_UP, EXACT))


@given(signs, numbers, st.sampled_from(sorted(DECIMAL)))
def test_decimal_suffixes(sign: str, number: str, suffix: str) -> None:
    exact = EXACT.scaleb(Decimal(f"{sign}{number}"), DECIMAL[suffix])
    assert parse_quantity(f"{sign}{number}{suffix}") == nanos(exact)


@given(signs, numbers, st.sampled_from("eE"), signs, st.integers(0, 30))
def test_decimal_exponents(sign: str, number: str, e: str, minus: str, exponent: int) -> None:
    exact = EXACT.scaleb(Decimal(f"{sign}{number}"), int(f"{minus}{exponent}"))
    assert parse_quantity(f"{sign}{number}{e}{minus}{exponent}") == nanos(exact)


@given(signs, numbers, st.sampled_from(sorted(BINARY)))
def test_binary_suffixes(sign: str, number: str, suffix: str) -> None:
    exact = EXACT.multiply(Decimal(f"{sign}{number}"), Decimal(BINARY[suffix]))
    capped = max(Decimal(-MOST_BINARY), min(exact, Decimal(MOST_BINARY)))
    assert parse_quantity(f"{sign}{number}{suffix}") == nanos(capped)


# From TestQuantityParse of apimachinery 1.36.3, "things that saturate/round" and "trolls".
@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("3.001n", 4),
        ("1.1E-9", 2),
        ("0.0000000001", 1),
        ("0.5e-9", 1),
        ("0.9n", 1),
        ("0.00000012345", 124),
        ("-0.9n", -1),
        ("9Ei", MOST_BINARY * 10**9),
        ("9223372036854775807Ki", MOST_BINARY * 10**9),
        ("-9Ei", -MOST_BINARY * 10**9),
        ("12E", 12 * 10**27),
        ("0.000000000001Ki", 2),
        ("100.035Ki", 10243584 * 10**7),
        (".0001k", 10**8),
        ("1.", 10**9),
        ("1.G", 10**18),
        ("1E", 10**27),
        ("1E3", 10**12),
        ("0Mi", 0),
        ("00.50", 5 * 10**8),
    ],
)
def test_corners_of_upstream(text: str, nano: int) -> None:
    assert parse_quantity(text) == Fraction(nano, 10**9)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1 Gi", " 1", "1\n", "1gi", "1KI", "1K", "1ki", "1mi", "1ni", "1i"),
        *("--1", "+-1", "1.2.3", "1e", "1e+", "1e1.5", "1Ee3", "1e3Ki", "1Gi3", "0x10", "1_000"),
        *("1,5", "Infinity", "NaN", "\u0661", "1\u0660", "1e\u0663", "1e100"),
        # Upstream's scanner takes these for 0.
        *(".", "-", "+", "Ki", "m", ".Gi", "-E12"),
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is not a quantity; write a number") as caught:
        parse_quantity(text)
    assert repr(text) in caught.value.what


def test_a_quantity_is_shorter_than_any_text() -> None:
    assert parse_quantity("9" * 400) == 10**400 - 1
    with pytest.raises(InvalidValue, match="is not a quantity"):
        parse_quantity("9" * 5000)


# From TestQuantityString of apimachinery 1.36.3: the canonical form, and another spelling.
@pytest.mark.parametrize(
    ("canonical", "other"),
    [
        ("1Gi", "1024Mi"),
        ("300Mi", "307200Ki"),
        ("6Ki", "6144"),
        ("1001Gi", "1025024Mi"),
        ("1Ti", "1024Gi"),
        ("1025", "1025"),
        ("1023", "1023"),
        ("5", "5000m"),
        ("0", "0Gi"),
        ("144Gi", "147456Mi"),
        ("42976Mi", "44007424Ki"),
    ],
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_the_form_that_the_server_writes_back(canonical: str, other: str, sign: str) -> None:
    value = parse_quantity(f"{sign}{other}")
    assert format_binary(int(value)) == (f"{sign}{canonical}" if value else "0")
    assert parse_quantity(f"{sign}{canonical}") == value


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_is_written_can_be_read_and_no_larger_suffix_would_do(value: int) -> None:
    text = format_binary(value)
    assert parse_quantity(text) == value
    if value and not text.endswith("Ei"):
        assert int(text.rstrip("KMGTPEi")) % 1024
