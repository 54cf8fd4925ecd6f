"""What comes of placing a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from controller.allocator.allocate import Allocation, FitError
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.results import allocation_status
from controller.filter.node_filter import FeasibleNodes
from dra_driver.model.claims.claim import Object, ReadOnlyObject
from dra_driver.model.errors import Refused


@dataclass(frozen=True, slots=True)
class Placed(Allocation):
    """Devices of one node for all claims `wanted`, in their order. The pod may have them. If it
    `preempts`, other pods must end there before it is bound."""

    wanted: Sequence[ClaimRequest]
    preempts: bool = False

    def of(self, wanted: Sequence[ClaimRequest]) -> Allocation:
        """The devices of ours alone, of these claims."""
        by_claim = {
            each.ref.uid: tuple(chosen for chosen in devices if not chosen.request.of_others)
            for each, devices in zip(self.wanted, self.assignments, strict=True)
        }
        return Allocation(self.node, tuple(by_claim[each.ref.uid] for each in wanted))

    def claims(self, classes: Mapping[str, ReadOnlyObject], timestamp: str) -> list[Object]:
        """The claims as they are allocated, without a reservation. `classes` maps a name to the
        DeviceClass; `timestamp` is RFC 3339."""
        claims: list[Object] = []
        for wanted, devices in zip(self.wanted, self.assignments, strict=True):
            status = allocation_status(
                wanted,
                devices,
                self.node,
                classes,
                timestamp=timestamp,
                new_share_id=lambda: str(uuid4()),
            )
            known = wanted.claim.get("status") or {}
            claims.append(wanted.claim | {"status": known | {"allocation": status}})
        return claims


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The pod gets no devices. `nodes` are those that were tried. `why` is Refused if there are
    devices, and the pod may not have them."""

    nodes: FeasibleNodes
    why: FitError | Refused

    @property
    def depends_on_devices(self) -> bool:
        """Whether the devices that were chosen are refused: others that come later may not be."""
        return isinstance(self.why, Refused)

    @property
    def is_prediction(self) -> bool:
        """Whether nodes were left out that kube-scheduler is expected to refuse."""
        return bool(self.nodes.unfit)

    @property
    def was_stopped(self) -> bool:
        """Whether the search was stopped, so that there may be devices."""
        return isinstance(self.why, FitError) and bool(self.why.stopped)

    def explain(self) -> str:
        """Why, for people. It takes longer than the decision, so it is called only if somebody
        reads it, and before the state changes."""
        if isinstance(self.why, Refused):
            return str(self.why)
        if not self.nodes.feasible:
            return f"no node fits the pod: {self.nodes.reason}"
        of = f" (of {self.nodes.reason})" if self.nodes.reason else ""
        return f"{self.why.explain()}{of}"
