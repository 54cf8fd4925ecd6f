"""Watches this driver's slices of one node, in either form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_driver.agent.slices.slice_cache import SliceCache
from dra_driver.agent.slices.slices import SliceForm
from dra_driver.kube.api import Api, Change
from dra_driver.kube.resources import RESOURCE_SLICES
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.hidden_device import hidden_name
from dra_driver.model.names import DRIVER
from dra_driver.telemetry.program import Deadline


def own_slices(node: str) -> str:
    """The field selector of this driver's visible slices of `node`."""
    return f"spec.nodeName={node},spec.driver={DRIVER}"


class SliceWatcher:
    """Keeps `published` as the slices of one form are on the API server.

    Visible slices are found by their node. Hidden ones are not, so each is watched by its name: an
    API server sends its events to no other watch. Constructing it has no effect.
    """

    def __init__(self, api: Api, node_name: str, form: SliceForm, published: SliceCache) -> None:
        self._api = api
        self._node_name = node_name
        self._form = form
        self._published = published
        self._reflectors: list[Reflector] = []
        self._started = False
        if form is SliceForm.VISIBLE:
            selector = own_slices(node_name)
            self._reflectors.append(
                Reflector(api, RESOURCE_SLICES, published, field_selector=selector)
            )
        else:
            self.watch(1)

    def watch(self, count: int) -> bool:
        """Watch at least so many hidden slices. Returns False if some of them are not known yet:
        their watches have just begun. Visible slices are all watched."""
        if self._form is SliceForm.VISIBLE or len(self._reflectors) >= count:
            return True
        for index in range(len(self._reflectors), count):
            name = hidden_name(self._node_name, index)
            self._published.expect(name)
            reflector = Reflector(
                self._api,
                RESOURCE_SLICES,
                _OneSlice(self._published, name),
                field_selector=f"metadata.name={name}",
            )
            self._reflectors.append(reflector)
            if self._started:
                reflector.start()
        return False

    def unwatched(self) -> list[Object]:
        """The node's slices that are not watched, read now: those of the other form, and hidden
        ones beyond those that are watched. Raises KubeError."""
        if self._form is SliceForm.VISIBLE:
            return list(self._hidden_from(0))
        visible = self._api.list(RESOURCE_SLICES, field_selector=own_slices(self._node_name)).items
        return [*visible, *self._hidden_from(len(self._reflectors))]

    def start(self) -> None:
        self._started = True
        for each in self._reflectors:
            each.start()

    def stop(self, timeout: float) -> None:
        """End the watches within `timeout` seconds."""
        deadline = Deadline(timeout)
        for each in self._reflectors:
            each.stop(deadline.left())

    def is_alive(self) -> bool:
        return all(each.is_alive() for each in self._reflectors)

    @property
    def problem(self) -> str | None:
        """Why a slice is not watched right now, or None."""
        return next((each.problem for each in self._reflectors if each.problem), None)

    def _hidden_from(self, index: int) -> Iterator[Object]:
        """Their names are without gaps: the first that does not exist ends them."""
        while True:
            name = hidden_name(self._node_name, index)
            found = self._api.list(RESOURCE_SLICES, field_selector=f"metadata.name={name}").items
            if not found:
                return
            yield from found
            index += 1


class _OneSlice:
    """Hands the list and the events of one slice to the cache of all."""

    def __init__(self, published: SliceCache, name: str) -> None:
        self._published = published
        self._name = name

    def on_replace(self, items: Sequence[Object]) -> None:
        self._published.on_listed(self._name, items)

    def on_event(self, change: Change, obj: Object) -> None:
        self._published.on_event(change, obj)
