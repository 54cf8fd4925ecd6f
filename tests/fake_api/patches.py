"""What a patch makes of an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dra_driver.kube.api import PatchType
from dra_driver.model.claims.claim import Object
from tests.fake_api.errors import Unplayed

_MERGE_KEYS: Final = {"schedulingGates": "name", "conditions": "type"}
"""By the name of a list, the field by which the items of a strategic merge are told apart
(`patchMergeKey` in k8s.io/api)."""
_ATOMIC: Final = {"preferredDuringSchedulingIgnoredDuringExecution"}
"""Lists that a strategic merge replaces: those without such a field."""


def patched(obj: Object, body: Object | Sequence[Object], patch_type: PatchType) -> Object:
    """A new object. Raises Unplayed."""
    if not isinstance(body, dict) or patch_type not in {
        PatchType.MERGE,
        PatchType.STRATEGIC_MERGE,
    }:
        raise Unplayed(f"a patch of {patch_type}")
    found: Object = _merged(obj, body, strategic=patch_type is PatchType.STRATEGIC_MERGE)
    return found


def _merged(old: Any, new: Any, *, strategic: bool) -> Any:
    """RFC 7386; null removes."""
    if not isinstance(new, dict):
        return new
    if "$patch" in new:
        raise Unplayed(f"the directive {new}")
    made = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            made.pop(key, None)
        elif strategic and isinstance(value, list) and key not in _ATOMIC:
            made[key] = _items(key, made.get(key) or [], value)
        else:
            made[key] = _merged(made.get(key), value, strategic=strategic)
    return made


def _items(name: str, old: Sequence[Object], new: Sequence[Object]) -> list[Object]:
    key = _MERGE_KEYS.get(name)
    if key is None:
        raise Unplayed(f"a strategic merge of the list {name}")
    made = {each[key]: each for each in old}
    for each in new:
        if each.get("$patch") == "delete":
            made.pop(each[key], None)
        else:
            made[each[key]] = _merged(made.get(each[key]), each, strategic=True)
    return [*made.values()]
