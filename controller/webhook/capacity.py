"""Writes what a claim's GcuConfig asks for into ``capacity.requests``, which kube-scheduler reads
(docs/adr/0038). Pure, but for what selectors remember.

A request whose amount differs between kinds of cards becomes ``firstAvailable``, with an
alternative for each amount. Entries of ``config`` and constraints name the request as before, as
containers do; those that name a subrequest name all that it became.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from controller.allocator.claim_request import ExactRequest, parse_exact
from controller.allocator.ownership import forms, names_driver
from controller.webhook.alternatives import Alternative, CardParts
from dra_driver.model.claims.claim import ClaimRef, Object, ReadOnlyObject
from dra_driver.model.errors import Refused

MOST_ALTERNATIVES: Final = 8  # resource.k8s.io/v1, FirstAvailableDeviceRequestMaxSize

Form = Mapping[str, Any]
"""``exactly`` of a request, or a subrequest of ``firstAvailable``."""

Choose = Callable[[ExactRequest, Form], Sequence[Alternative]]
"""The alternatives of a form; none where it is left as it is. Raises Refused."""


def written_devices(claim: Object, classes: Mapping[str, ReadOnlyObject], choose: Choose) -> Object:
    """``spec.devices`` of a claim as it is to be stored, which may be new. `choose` is asked about
    each form that is for this driver. Raises Refused and InvalidValue with the reason why the claim
    is not to be stored."""
    devices: Object = claim["spec"].get("devices") or {}
    if not devices.get("requests"):
        return devices
    ref, renamed = _ref(claim), dict[str, list[str]]()

    def alternatives(name: str, form: Form) -> Sequence[Alternative]:
        if not names_driver(form, classes):
            return ()
        return choose(parse_exact(ref, claim, classes, name, form), form)

    requests = [
        _from_exactly(entry, alternatives)
        if entry.get("exactly")
        else _from_alternatives(entry, alternatives, renamed)
        for entry in devices["requests"]
    ]
    for entry in requests:
        if (count := len(entry.get("firstAvailable") or ())) > MOST_ALTERNATIVES:
            raise Refused(
                f"claim {ref}, request {entry['name']}: the cards of this cluster differ, so it "
                f"would need {count} alternatives, and a request can have {MOST_ALTERNATIVES}",
                remedy="select fewer models of cards, or say which isolation is wanted",
            )
    named = {
        field: [_with_names(entry, renamed) for entry in devices[field]]
        for field in ("config", "constraints")
        if devices.get(field)
    }
    return {**devices, "requests": requests, **named}


def by_parts(claim: Object, parts: CardParts) -> Choose:
    """For a new claim: by the cards that are known."""
    ref = _ref(claim)
    return lambda exact, _: parts.alternatives(f"claim {ref}, request {exact.name}", exact)


def as_stored(stored: Object) -> Choose:
    """For a claim that is `stored`: what was written when it was made, whatever is known now. The
    API server then sees no change where its author made none."""
    devices = stored["spec"].get("devices") or {}

    def choose(exact: ExactRequest, form: Form) -> Sequence[Alternative]:
        main, _, sub = exact.name.partition("/")
        found = [
            (full.partition("/")[2], _alternative(each, form))
            for full, each in forms(devices)
            if exact.unwritten and full.partition("/")[0] == main
        ]
        return [
            alternative
            for name, alternative in found
            if alternative.capacity and (not sub or name in {sub, f"{sub}-{alternative.name}"})
        ]

    return choose


def _from_exactly(
    entry: Object, alternatives: Callable[[str, Form], Sequence[Alternative]]
) -> Object:
    name, form = entry["name"], entry["exactly"]
    match alternatives(name, form):
        case []:
            return entry
        case [only]:
            return {**entry, "exactly": _written(form, only)}
        case several:
            # A subrequest has no such field.
            rest = {field: value for field, value in form.items() if field != "adminAccess"}
            subs = [{"name": each.name, **_written(rest, each)} for each in several]
            return {"name": name, "firstAvailable": subs}


def _from_alternatives(
    entry: Object,
    alternatives: Callable[[str, Form], Sequence[Alternative]],
    renamed: dict[str, list[str]],
) -> Object:
    """Puts subrequests that became several into `renamed`, by their full names."""
    subs: list[Object] = []
    for form in entry.get("firstAvailable") or ():
        name = f"{entry['name']}/{form['name']}"
        match alternatives(name, form):
            case []:
                subs.append(form)
            case [only]:
                subs.append(_written(form, only))
            case several:
                made = [
                    {**_written(form, each), "name": f"{form['name']}-{each.name}"}
                    for each in several
                ]
                renamed[name] = [f"{entry['name']}/{each['name']}" for each in made]
                subs += made
    return {**entry, "firstAvailable": subs} if subs else entry


def _written(form: Form, alternative: Alternative) -> Object:
    requests = (form.get("capacity") or {}).get("requests") or {}
    capacity = {**(form.get("capacity") or {}), "requests": {**requests, **alternative.capacity}}
    selectors = list(form.get("selectors") or ())
    if alternative.selector:
        selectors.append({"cel": {"expression": alternative.selector}})
    return {**form, "capacity": capacity, **({"selectors": selectors} if selectors else {})}


def _alternative(stored: Form, asked: Form) -> Alternative:
    """What the stored form has more than the one that is asked for."""
    selectors = (stored.get("selectors") or ())[len(asked.get("selectors") or ()) :]
    before = (asked.get("capacity") or {}).get("requests") or {}
    capacity = (stored.get("capacity") or {}).get("requests") or {}
    return Alternative(
        {name: str(amount) for name, amount in capacity.items() if name not in before},
        selectors[0]["cel"]["expression"] if selectors else "",
    )


def _with_names(entry: Object, renamed: Mapping[str, Iterable[str]]) -> Object:
    """An entry of ``config`` or a constraint."""
    if not entry.get("requests"):
        return entry
    return {
        **entry,
        "requests": [new for name in entry["requests"] for new in renamed.get(name, [name])],
    }


def _ref(claim: Object) -> ClaimRef:
    """A new claim has no UID, and one that is made from a template no name."""
    metadata = claim["metadata"]
    name = metadata.get("name") or metadata.get("generateName") or ""
    return ClaimRef(metadata.get("namespace", ""), name, metadata.get("uid", ""))
