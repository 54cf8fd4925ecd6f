"""What can go wrong with DRS, each by its name.

::

    HardwareError
    └── DrsError
        ├── CardGone            efsmi does not list the card
        ├── CardBusy            an earlier call on the card, which was given up, still runs
        ├── CardSilent          a read for the card hung a moment ago; calls fail at once for now
        ├── SwitchRefused       ``--drs on`` or ``off`` failed
        ├── NoProfiles          the card offers none
        ├── CreateRefused       efsmi said no, and nothing was made
        ├── CreateHung          efsmi did not end in time; what was made is undone by the caller
        ├── CreateMadeNothing   efsmi said yes, and nothing was made
        ├── CreateMadeOther     efsmi said yes, and made what was not asked for, which is gone again
        ├── CreateSaidFailed    efsmi said no, but made an instance, which the caller undoes
        ├── InstanceUnclear     several instances appeared: whose is whose cannot be told
        └── DestroyFailed       the instance is still listed, or efsmi did not end in time
"""

from __future__ import annotations

from dra_driver.model.errors import HardwareError


class DrsError(HardwareError):
    """Something about a card's DRS mode or instances."""


class CardGone(DrsError):
    """efsmi answers and does not list the card."""


class CardBusy(DrsError):
    """An earlier call on the card, which was given up, still runs."""


class CardSilent(DrsError):
    """A read for the card hung a moment ago: calls fail at once for now."""


class SwitchRefused(DrsError):
    """The card's DRS mode could not be switched."""


class NoProfiles(DrsError):
    """The card is in DRS mode and offers no profiles."""


class CreateRefused(DrsError):
    """A create failed and made nothing."""


class CreateHung(DrsError):
    """A create did not end in time."""


class CreateMadeNothing(DrsError):
    """A create reported success and made nothing."""


class CreateMadeOther(DrsError):
    """A create reported success and made an instance of another profile."""


class CreateSaidFailed(DrsError):
    """A create reported failure and made an instance."""


class InstanceUnclear(DrsError):
    """More than one instance appeared during a create."""


class DestroyFailed(DrsError):
    """An instance is still there after it was to be destroyed, or that is not known."""
