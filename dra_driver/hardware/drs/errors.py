"""What can go wrong with DRS and callers tell apart; whatever else is a HardwareError as well."""

from __future__ import annotations

from dra_driver.model.errors import HardwareError


class CardGone(HardwareError):
    """efsmi answers and does not list the card."""


class CardBusy(HardwareError):
    """An earlier call on the card, which was given up, still runs."""


class CardSilent(HardwareError):
    """A read for the card hung a moment ago: calls fail at once for now."""


class CreateRefused(HardwareError):
    """efsmi refused to create an instance, and nothing was made."""


class CreateMadeNothing(HardwareError):
    """efsmi reported success and made nothing."""


class CreateMadeOther(HardwareError):
    """efsmi reported success and made an instance of another profile, which is gone again."""
