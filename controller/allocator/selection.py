"""Which devices of a node a request's selectors allow, remembered until the node's change."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from controller.allocator.changes import Changed
from controller.allocator.device import Device
from controller.allocator.inventory import Inventory
from controller.allocator.tables import Tables
from dra_driver.model.errors import InvalidValue
from dra_driver.selector.selector import Selectors

_MOST_ANSWERS = 1024


@dataclass(frozen=True, slots=True)
class Selected:
    """`error` says why a selector could not be evaluated on a device; such a device is not
    selected."""

    devices: tuple[Device, ...]
    error: str = ""


class Selection:
    """Selectors decide on what a device is, never on what is held of it."""

    def __init__(self, inventory: Inventory, selectors: Selectors) -> None:
        self._inventory = inventory
        self._selectors = selectors
        self._tables: Tables[tuple[str, ...], Selected] = Tables()
        self._anywhere: dict[tuple[str, ...], bool] = {}

    def forget(self, changed: Changed) -> None:
        if changed.published:
            self._tables.forget(changed.published)
            self._anywhere.clear()

    def selected(
        self, expressions: tuple[str, ...], node: str, found: Mapping[str, Any] | None = None
    ) -> Selected:
        """The devices of `node` (`found` is its object) that all `expressions` select."""
        if self._inventory.roams:
            return self._select(expressions, self._inventory.devices_of(node, found))
        table = self._tables.of(expressions)
        known = table.get(node)
        if known is None:
            devices = self._inventory.devices_of(node)
            known = table[node] = self._select(expressions, devices)
        return known

    def selects_any(self, expressions: tuple[str, ...]) -> bool:
        """Whether any published device is selected."""
        if expressions not in self._anywhere:
            if len(self._anywhere) >= _MOST_ANSWERS:
                self._anywhere.clear()
            self._anywhere[expressions] = self._search_all(expressions)
        return self._anywhere[expressions]

    def _search_all(self, expressions: tuple[str, ...]) -> bool:
        for device in self._inventory.by_id.values():
            self._selectors.allowance.check()
            with suppress(InvalidValue):
                if self._matches(expressions, device):
                    return True
        return False

    def _select(self, expressions: tuple[str, ...], devices: tuple[Device, ...]) -> Selected:
        selected: list[Device] = []
        error = ""
        for device in devices:
            try:
                if self._matches(expressions, device):
                    selected.append(device)
            except InvalidValue as failed:
                error = error or str(failed)
        return Selected(tuple(selected), error)

    def _matches(self, expressions: tuple[str, ...], device: Device) -> bool:
        """In order, the first that is false deciding."""
        matches, given = self._selectors.matches, device.selector_input
        return all(matches(expression, given) for expression in expressions)
