"""A PCI address: the only stable key that joins sysfs, efsmi and Kubernetes."""

from __future__ import annotations

import re

import msgspec

from dra_driver.model.errors import InvalidValue

# The kernel prints at least four digits of the domain (some bridges have five), efsmi up to
# eight; a device number has five bits.
_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([01][0-9a-f])\.([0-7])")


class PciAddress(msgspec.Struct, frozen=True, order=True):
    """Domain, bus, device and function as numbers; prints as ``0000:0d:00.0``.

    efsmi may print a domain of eight digits where sysfs prints four; both parse to the same
    address. A shortened domain (``00:0d:00.0``, efsmi's summary) is refused: two cards of
    different domains could share it.
    """

    domain: int
    bus: int
    device: int
    function: int

    @classmethod
    def parse(cls, text: str) -> PciAddress:
        """Raise InvalidValue unless `text` is a full address; case is ignored."""
        match = _ADDRESS.fullmatch(text.strip().lower())
        if match is None:
            raise InvalidValue(
                f"{text!r} is not a full PCI address",
                remedy="write domain, bus, device and function, as in 0000:0d:00.0",
            )
        domain, bus, device, function = (int(part, 16) for part in match.groups())
        return cls(domain, bus, device, function)

    def __str__(self) -> str:
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.{self.function}"

    @property
    def slug(self) -> str:
        """The address as part of a DNS label: ``0000-0d-00-0``."""
        return str(self).replace(":", "-").replace(".", "-")
