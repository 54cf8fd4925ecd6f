"""What a check finds, and the description that docs/user/kubectl-gcu.md lists (`make docs`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is the name of the check, which scripts may rely on."""

    check: str
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class Check:
    """`reports` completes "reports …" on the page."""

    name: str
    reports: str

    def finding(self, where: str, what: str, remedy: str) -> Finding:
        return Finding(self.name, where, what, remedy)
