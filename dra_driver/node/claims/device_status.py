"""A claim's ``status.devices``, which shows people the prepared devices. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dra_driver.model.card import Card, Cards
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from dra_driver.model.profile import ProfileTable, ProfileTableOf
from dra_driver.node.checkpoint.records import PreparedDevice


def device_statuses(
    devices: Iterable[PreparedDevice],
    cards: Cards,
    previous: Sequence[Mapping[str, Any]] = (),
    *,
    table: ProfileTableOf,
    failure: str = "",
    now: str,
) -> list[Object]:
    """An AllocatedDeviceStatus (resource.k8s.io/v1) for each device of a claim. Its condition is
    true if the claim is prepared, and false with the `failure`. Shares of one device have one entry
    for each share ID; without share IDs, before Kubernetes 1.36, they have one entry together.

    `cards` has the cards that can be read now, and `table` their profiles. `previous` is the
    present ``status.devices`` of all drivers: an unchanged condition has its earlier time. `now` is
    RFC 3339.
    """
    before = {
        (entry["pool"], entry["device"], entry.get("shareID")): entry
        for entry in previous
        if entry.get("driver") == DRIVER
    }
    entries: dict[tuple[str, str, str | None], list[PreparedDevice]] = {}
    for device in devices:
        key = (device.pool, device.device_name, device.share_id)
        entries.setdefault(key, []).append(device)
    statuses: list[Object] = []
    for (pool, name, share_id), shares in entries.items():
        card = cards.get(shares[0].card)
        known = before.get((pool, name, share_id), {}).get("conditions") or ()
        statuses.append(
            {
                "driver": DRIVER,
                "pool": pool,
                "device": name,
                **({"shareID": share_id} if share_id is not None else {}),
                "conditions": [_ready(shares[0], card, known, failure, now)],
                "data": _data(shares, card, table(card) if card else None),
            }
        )
    return statuses


def _ready(
    device: PreparedDevice,
    card: Card | None,
    known: Iterable[Mapping[str, Any]],
    failure: str,
    now: str,
) -> Object:
    problems = "; ".join(problem.text for problem in card.problems) if card else ""
    if card is None:
        status, reason, message = "False", "CardLost", f"card {device.card} cannot be found"
    elif problems:
        status, reason, message = "False", "CardUnhealthy", f"card {device.card}: {problems}"
    elif failure:
        status, reason, message = "False", "PrepareFailed", failure
    else:
        status, reason, message = "True", "Prepared", f"prepared on card {device.card}"
    since = next(
        (
            condition["lastTransitionTime"]
            for condition in known
            if (condition["type"], condition["status"]) == ("Ready", status)
        ),
        now,
    )
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def _data(
    shares: Sequence[PreparedDevice], card: Card | None, table: ProfileTable | None
) -> Object:
    device = shares[0]
    data: Object = {"card": str(device.card), "mode": device.mode.value}
    if card is not None:
        data |= {"index": card.index, "minor": card.minor}
    if device.admin_access:
        data["adminAccess"] = True
    if len(shares) > 1:
        entries = [{"request": each.request, **_share(each, table)} for each in shares]
        return data | {"shares": entries}
    return data | _share(device, table)


def _share(device: PreparedDevice, table: ProfileTable | None) -> Object:
    ids = {profile.name: profile.id for profile in table or ()}
    data: Object = dict(device.consumed) if device.amount is not None else {}
    if device.instance is not None:
        data |= {"profile": device.instance.profile, "instanceID": device.instance.id}
        if device.instance.uuid is not None:
            data["instanceUUID"] = device.instance.uuid
        if device.instance.profile in ids:
            data["profileID"] = ids[device.instance.profile]
    return data
