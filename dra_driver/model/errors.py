"""The one error tree of the project.

::

    GcuError                 what happened, to what, and what to do about it
    ├── InvalidValue         something that came in from a person or an API object is malformed
    ├── Refused              a rule of ours forbids what was asked (the rule and the holder named)
    ├── HardwareError        sysfs or efsmi did not answer, or answered what we cannot read
    ├── KubeError            the API server refused or could not be reached (dra_driver.kube)
    └── JournalError         the record of what was prepared cannot be read or written

The same text reaches the log, the event on the claim and the kubelet, so it is written
for the person who reads ``kubectl describe pod``.
"""

from __future__ import annotations


class GcuError(Exception):
    """An error with a remedy.

    ``what`` says in one sentence what happened and to what; ``remedy`` says what a person
    can do, and may be empty where only the caller knows.
    """

    def __init__(self, what: str, *, remedy: str = "") -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


class InvalidValue(GcuError):
    """A value from outside is malformed; ``what`` names the field and the value."""


class Refused(GcuError):
    """A rule of the driver forbids what was asked; nothing was changed."""


class HardwareError(GcuError):
    """The machine did not answer, or answered something the driver does not understand."""


class JournalError(GcuError):
    """The journal of prepared claims cannot be read or written."""
