"""What was decided about a waiting pod. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """`node` is the node that has devices for the pod now, or empty. `reason` says why it is not
    served, `by_node` says the same of each node that fits the pod, and `remedy` what would
    help, if `reason` does not say so itself. `helps` names the claims (``namespace/name``) each of
    which would make room for the pod if it ended, and `helps_pods` the pods with several claims
    that would. `needs_person` is whether no end of claims would; then `tainted` names the cards
    whose taints the pod does not tolerate."""

    node: str
    reason: str = ""
    by_node: Mapping[str, str] | None = None
    helps: tuple[str, ...] = ()
    helps_pods: tuple[str, ...] = ()
    remedy: str = ""
    needs_person: bool = False
    tainted: tuple[str, ...] = ()
