"""Which nodes are tried for a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.allocator.nodes.node_set import NodeSet
from dra_driver.model.claims.packing import Packing

EVERY_NODE: Final[NodeSet] = -1


@dataclass(frozen=True, slots=True)
class Candidates:
    """Beyond what the pod's own constraints say.

    - `excluded` nodes are not tried, each with the reason for people; nor are nodes outside of
      `within`.
    - Nodes of the sets in `last` are tried if no other node has devices: those of a later set after
      those of an earlier one.
    - `packing` sorts nodes in place of the policy, where the claims say nothing.
    - Nodes where other pods must be preempted come after all others, if that `may_preempt`.
    - Nodes that kube-scheduler is expected to refuse are tried at last, and only `with_unfit`.
    """

    excluded: Mapping[str, str] = field(default_factory=dict)
    within: NodeSet = EVERY_NODE
    last: Sequence[NodeSet] = ()
    packing: Packing | None = None
    may_preempt: bool = True
    with_unfit: bool = False


ALL: Final = Candidates()
