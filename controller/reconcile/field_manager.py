"""Who wrote a claim's allocation? The API server keeps the record, in ``managedFields``.

An annotation of ours could outlive the allocation that it speaks of: kube-scheduler clears one
and another allocator may write the next. The server's own record cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_driver.model.claim import allocation

# The server takes the manager from the user agent, up to its first slash.
MANAGER: Final = "gcu-dra-controller"


def allocated_by_us(claim: Mapping[str, Any]) -> bool:
    """Whether the present allocation was written by a controller of ours, of any replica."""
    return allocation(claim) is not None and MANAGER in _writers(claim)


def writer_of_allocation(claim: Mapping[str, Any]) -> str:
    """Who wrote the present allocation, as far as is known."""
    return ", ".join(_writers(claim)) or "an unknown writer"


def _writers(claim: Mapping[str, Any]) -> list[str]:
    return [
        str(entry.get("manager"))
        for entry in claim["metadata"].get("managedFields") or ()
        if entry.get("subresource") == "status"
        and "f:allocation" in ((entry.get("fieldsV1") or {}).get("f:status") or {})
    ]
