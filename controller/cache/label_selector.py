"""Label selectors (meta/v1) as values that are compared, and whether they match labels. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from controller.cache.nodes import operator_holds


class LabelSelector(NamedTuple):
    """`requirements` are of key, operator and values. One without any matches everything."""

    requirements: tuple[tuple[str, str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, selector: Mapping[str, Any] | None) -> LabelSelector | None:
        """None matches nothing (k8s.io/apimachinery, LabelSelectorAsSelector)."""
        if selector is None:
            return None
        labels = (selector.get("matchLabels") or {}).items()
        expressions = selector.get("matchExpressions") or ()
        return cls(
            (
                *((key, "In", (value,)) for key, value in sorted(labels)),
                *(
                    (each["key"], each["operator"], tuple(each.get("values") or ()))
                    for each in expressions
                ),
            )
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, operator, values in self.requirements:
            if not operator_holds(operator, values, labels.get(key)):
                return False
        return True
