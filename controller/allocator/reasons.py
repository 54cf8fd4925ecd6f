"""Why nothing was allocated, in the words that reach the event on the claim and on the pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from controller.allocator.device import Device
from controller.allocator.request import Request, Wanted
from controller.allocator.state import Standing, State
from controller.allocator.taints import untolerated
from dra_driver.model.names import ATTR_TYPE, DRIVER

_NOUNS = {"whole": "card", "shared": "shared card", "drs": "DRS card"}


def explain(state: State, wanted: Sequence[Wanted], nodes: Sequence[str], stopped: str) -> str:
    """One sentence about all requests over all candidate `nodes`; `stopped` is empty unless the
    search came to its bound."""
    return "; ".join(
        [*_about_requests(state, wanted, nodes), *_about_pools(state), *_said(stopped)]
    )


def _about_requests(state: State, wanted: Sequence[Wanted], nodes: Sequence[str]) -> Iterator[str]:
    if not state.inventory.by_id:
        if not state.inventory.problems:
            yield f"no ResourceSlice of {DRIVER} is published"
        return
    if not any(state.inventory.by_node.get(node) for node in nodes):
        yield f"none of the {len(nodes)} nodes that fit the pod publishes a device of {DRIVER}"
        return
    several = sum(len(each.requests) for each in wanted) > 1
    for each in wanted:
        for request in each.requests:
            prefix = f"claim {each.ref.name}, request {request.name}: " if several else ""
            yield prefix + _about(state, each, request, nodes, several=several)


def _about(
    state: State, wanted: Wanted, request: Request, nodes: Sequence[str], *, several: bool
) -> str:
    selected: list[Device] = []
    counted: Counter[str] = Counter()
    free_on: Counter[str] = Counter()
    for node in nodes:
        for device in state.inventory.by_node.get(node, ()):
            standing = state.standing(request, device)
            if standing is Standing.NOT_SELECTED:
                continue
            selected.append(device)
            counted[_word(standing, request, device)] += 1
            free_on[node] += standing is Standing.FREE
    if not selected:
        known = sum(len(state.inventory.by_node.get(node, ())) for node in nodes)
        return (
            f"{_plural(known, 'device')}, none selected by DeviceClass {request.class_name} and "
            f"the request; {request.count} asked"
        )
    parts = [f"{count} {word}" for word, count in sorted(counted.items(), key=_by_count)]
    total = _plural(len(selected), _noun(selected))
    text = f"{total}: {', '.join(parts)}"
    return text + _why_not_free(wanted, request, free_on, several=several)


def _why_not_free(wanted: Wanted, request: Request, free_on: Counter[str], *, several: bool) -> str:
    asked = f"{request.count} asked"
    most = max(free_on.values(), default=0)
    if most < request.count:
        spread = f" (at most {most} on one node)" if 0 < most < free_on.total() else ""
        return f"{spread}; {asked}"
    attributes = [each.attribute for each in wanted.constraints if each.applies(request.name)]
    if attributes:
        return f"; {asked} with the same {' and '.join(attributes)}"
    return f"; {asked}, but not all requests fit together" if several else f"; {asked}"


def _about_pools(state: State) -> Iterator[str]:
    yield from state.inventory.problems.values()


def _said(text: str) -> Iterator[str]:
    if text:
        yield text


def _word(standing: Standing, request: Request, device: Device) -> str:
    if standing is Standing.TAINTED:
        return f"tainted {untolerated(device, request.tolerations)[0].key}"
    return str(standing.value)


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _noun(devices: Sequence[Device]) -> str:
    kinds = {device.text(ATTR_TYPE) for device in devices}
    return _NOUNS.get(next(iter(kinds)), "device") if len(kinds) == 1 else "device"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
