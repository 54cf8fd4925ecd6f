"""The one error tree of the project; a test holds the drawings to the code.

::

    GcuError                  what happened, to what, and what to do about it
    ├── InvalidValue          something that came in from a person or an API object is malformed
    ├── Refused               a rule of ours forbids what was asked (the rule and the holder named)
    │   ├── ForeignCard       somebody else has divided the card
    │   ├── DeviceHeld        other owners on the node have the devices
    │   ├── MixesDrivers      a claim asks for devices of several drivers, of which one is ours
    │   └── NotLeader         another replica of the controller may write now
    ├── HardwareError         sysfs or efsmi did not answer, or answered what we cannot read
    │   ├── EfsmiFailed       efsmi reported failure, or was killed as it printed without end
    │   ├── EfsmiHung         efsmi did not end in time: what it did is unknown
    │   ├── EfsmiUnclear      efsmi says of a card what is cut off, or is not understood
    │   ├── CardGone          efsmi answers and does not list the card
    │   ├── CardBusy          an earlier call on the card, which was given up, still runs
    │   ├── CardSilent        a read for the card hung a moment ago; calls fail at once for now
    │   ├── CreateRefused     efsmi made no DRS instance, whatever it said
    │   ├── CreateUnclear     efsmi may have made a DRS instance
    │   ├── DestroyFailed     a DRS instance is there still, or may be
    │   ├── SwitchRefused     DRS mode could not be switched
    │   └── CreateMadeOther   efsmi said yes, and made what was not asked for
    ├── JournalError          the record of what was prepared cannot be read or written
    ├── CdiError              the folder of CDI files cannot be read or written
    ├── SocketError           a socket for the kubelet cannot be made
    ├── KubeletError          the kubelet did not answer, or recorded what we cannot read
    ├── PublicationError      the API server did not keep a ResourceSlice as it was written
    ├── KubeError             the API server refused or did not answer (drawn in kube/errors.py)
    ├── DrsRefused            the simulated card refuses a DRS command
    └── UsageError            the simulated efsmi was called with arguments that make no command

An exception of another class stays inside the package that raises it, or is a bug.
The same text reaches the log, the event on the claim and the kubelet, so it is written
for the person who reads ``kubectl describe pod``.
"""

from __future__ import annotations

from collections.abc import Iterable


class GcuError(Exception):
    """An error with a remedy.

    ``what`` says in one sentence what happened and to what; ``remedy`` says what a person
    can do, and may be empty where only the caller knows. ``device`` names the published device
    whose card caused the error, where `dra_driver.node.claims.failures.attribute_to` has set it.
    """

    device: str | None = None

    def __init__(self, what: str, *, remedy: str = "") -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


def internal_error(error: Exception) -> GcuError:
    """For an exception that is a bug of the agent."""
    return GcuError(
        f"internal error of the agent: {error!r}",
        remedy="report it with the stack trace in its log",
    )


class InvalidValue(GcuError):
    """A value from outside is malformed; ``what`` names the field and the value."""


class Refused(GcuError):
    """A rule of the driver forbids what was asked; nothing was changed."""


class ForeignCard(Refused):
    """Somebody else has divided the card; it is no use to anybody here while that is so."""


class DeviceHeld(Refused):
    """Other owners on the node have what was asked for; `holders` are their UIDs."""

    def __init__(self, what: str, holders: Iterable[str], *, remedy: str = "") -> None:
        self.holders = frozenset(holders)
        super().__init__(what, remedy=remedy)


class HardwareError(GcuError):
    """The machine did not answer, or answered something the driver does not understand."""


class JournalError(GcuError):
    """The journal of prepared claims cannot be read or written."""
