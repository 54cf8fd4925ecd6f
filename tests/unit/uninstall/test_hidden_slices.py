"""After an uninstall hidden slices are deleted, and no others."""

from __future__ import annotations

from typing import cast

from dra_driver.kube.api import Api
from dra_driver.uninstall.hidden_slices import delete_hidden_slices
from tests.unit.controller.test_slice_cleaner import Slices, hidden, visible


def test_hidden_slices_are_deleted_and_visible_ones_stay() -> None:
    slices = Slices(hidden("a"), hidden("b", 1), visible("c"))
    delete_hidden_slices(cast("Api", slices))
    assert [*slices.slices] == [visible("c")["metadata"]["name"]]
