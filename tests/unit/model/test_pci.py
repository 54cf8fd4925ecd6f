"""PCI addresses as sysfs and efsmi print them."""

from __future__ import annotations

import pytest
from hypothesis import given

from dra_driver.model.errors import InvalidValue
from dra_driver.model.pci import PciAddress
from tests.unit.model.cards import addresses


@pytest.mark.parametrize(
    ("text", "address", "printed"),
    [
        ("0000:0d:00.0", PciAddress(0, 13, 0, 0), "0000:0d:00.0"),
        ("00000000:0d:00.0", PciAddress(0, 13, 0, 0), "0000:0d:00.0"),
        ("10000:0d:1f.7", PciAddress(0x10000, 13, 31, 7), "10000:0d:1f.7"),
        ("FFFF:FF:1F.0", PciAddress(0xFFFF, 255, 31, 0), "ffff:ff:1f.0"),
        (" 0000:0d:00.0\n", PciAddress(0, 13, 0, 0), "0000:0d:00.0"),
    ],
    ids=["sysfs", "eight digits", "five digits", "upper case", "blanks around"],
)
def test_an_address_is_printed_as_sysfs_names_it(
    text: str, address: PciAddress, printed: str
) -> None:
    assert PciAddress.parse(text) == address
    assert str(address) == printed


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("00:0d:00.0", id="shortened domain of the summary"),
        pytest.param("0d:00.0", id="no domain"),
        pytest.param("000000000:0d:00.0", id="nine digits"),
        pytest.param("0000:0d:20.0", id="a device number of six bits"),
        pytest.param("0000:0d:00.8", id="a function number of four bits"),
        pytest.param("0000:0g:00.0", id="not hexadecimal"),
        pytest.param("\u0660000:0d:00.0", id="digits of another script"),
        pytest.param("0000:0d:00.0 x", id="something behind it"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_no_full_address_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"not a full PCI address; write .*0000:0d:00\.0") as e:
        PciAddress.parse(text)
    assert repr(text) in e.value.what


@given(addresses)
def test_what_is_printed_can_be_read(address: PciAddress) -> None:
    assert PciAddress.parse(str(address)) == address


@given(addresses, addresses)
def test_the_slug_is_part_of_a_dns_label_and_tells_addresses_apart(
    one: PciAddress, other: PciAddress
) -> None:
    assert set(one.slug) <= set("0123456789abcdef-")
    assert len(one.slug) <= len("ffffffff-ff-1f-7")
    assert (one.slug == other.slug) == (one == other)


def test_order_is_that_of_the_bus() -> None:
    texts = ["0000:0d:00.0", "0000:0d:01.0", "0000:1d:00.0", "0001:00:00.0", "10000:00:00.0"]
    assert sorted(map(PciAddress.parse, reversed(texts))) == list(map(PciAddress.parse, texts))
