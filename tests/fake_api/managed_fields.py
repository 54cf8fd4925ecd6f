"""``managedFields``: who wrote the fields of a status.

A real server knows it of all fields. Of a status our code reads the uppermost ones.
"""

from __future__ import annotations

from dra_driver.model.claims.claim import Object


def with_writer(old: Object | None, new: Object, manager: str) -> Object:
    """The object, whose status was changed from that of `old` by `manager`."""
    before, after = ((each or {}).get("status") or {} for each in (old, new))
    written = {key for key in after if after[key] != before.get(key)}
    entries: list[Object] = []
    kept: set[str] = set()
    for each in new["metadata"].get("managedFields") or ():
        if each.get("subresource") != "status":
            entries.append(each)
            continue
        fields = {key[2:] for key in each["fieldsV1"]["f:status"]} & after.keys()
        own = each["manager"] == manager
        if fields := (fields | written if own else fields - written):
            entries.append(_entry(each["manager"], fields))
        kept |= written if own else set()
    if written - kept:
        entries.append(_entry(manager, written))
    metadata = {key: each for key, each in new["metadata"].items() if key != "managedFields"}
    return new | {"metadata": metadata | ({"managedFields": entries} if entries else {})}


def _entry(manager: str, fields: set[str]) -> Object:
    owned: Object = {f"f:{key}": {} for key in sorted(fields)}
    return {
        "manager": manager,
        "operation": "Update",
        "subresource": "status",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": owned},
    }
