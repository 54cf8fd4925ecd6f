"""Waits for what the nodes answer that are cleared up after an uninstall."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dra_driver.kube.api import Api
from dra_driver.kube.resources import DAEMON_SETS, NODES, PODS
from dra_driver.model.claim import Object
from dra_driver.model.errors import Refused
from dra_driver.uninstall.answers import Answers

_INTERVAL: Final = 1.0
_NODES_INTERVAL: Final = 10.0  # all nodes are much to read in a large cluster


class Sweeps:
    """The DaemonSet of that name, which was made just now."""

    def __init__(
        self,
        api: Api,
        *,
        namespace: str,
        name: str,
        wait: Callable[[float], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wait(seconds)` returns True when the program was stopped; `clock` is monotonic
        seconds."""
        self._api = api
        self._namespace = namespace
        self._name = name
        self._wait = wait
        self._clock = clock
        self._ready: dict[str, bool] = {}
        self._looked = float("-inf")

    def answers(self, patience: float) -> Answers:
        """Once every node that is ready has answered, or what is known after so many seconds.

        Raises KubeError, and Refused where not even the nodes are known.
        """
        end = self._clock() + patience
        while True:
            answers = self._look()
            if answers is not None and answers.are_all:
                return answers
            if self._clock() >= end or self._wait(_INTERVAL):
                break
        if answers is None:
            raise Refused(f"nobody made pods of the DaemonSet {self._namespace}/{self._name}")
        return answers

    def _look(self) -> Answers | None:
        """None while it is not known yet how many nodes there are."""
        made = self._api.get(DAEMON_SETS, self._name, namespace=self._namespace)
        status = made.get("status", {})
        if status.get("observedGeneration", 0) < made["metadata"]["generation"]:
            return None
        answers = Answers.of(self._pods(made), status["desiredNumberScheduled"])
        return answers.knowing(self._nodes()) if answers.awaited else answers

    def _pods(self, made: Object) -> Iterator[Object]:
        labels = made["spec"]["selector"]["matchLabels"]
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        for pod in self._api.list(PODS, namespace=self._namespace, label_selector=selector).items:
            owners = pod["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == made["metadata"]["uid"] for owner in owners):
                yield pod

    def _nodes(self) -> Mapping[str, bool]:
        """Whether each is ready, as of a few seconds ago."""
        if self._clock() >= self._looked + _NODES_INTERVAL:
            nodes = self._api.list(NODES).items
            self._ready = {node["metadata"]["name"]: _is_ready(node) for node in nodes}
            self._looked = self._clock()
        return self._ready


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
