"""The controller knows which nodes kube-scheduler will refuse: kube-scheduler's own filters are
asked about the same nodes and pods.

Each case has ten pods: ``GCU_CASES=1000 GCU_SEED=1`` asks about 10,000.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from controller.cache.cache import ClusterCache
from controller.filter.predictions import Predictions
from controller.informers.decoders import decoders
from dra_driver.kube.api import Change
from dra_driver.kube.encode import encode
from dra_driver.kube.resources import DEVICE_CLASSES, NAMESPACES, NODES, PODS
from dra_driver.model.claims.claim import Object
from dra_driver.selector.selector import Selectors
from tests.cluster.build import Report, build
from tests.cluster.versions import FILTER_PLUGINS, PARTS
from tests.control_plane.predicted_cases import Case, case
from tests.seed import Sample, told

CASES: Final = Sample(always=30, of_the_day=30, soak=10_000)
_BLOCK: Final = 100

Verdicts = dict[str, str]
"""By node: fits, preempts or refused."""


@pytest.fixture(scope="session")
def filters(cluster_report: Report) -> Path:
    """kube-scheduler's filters as a program."""
    return build(PARTS, cluster_report) / FILTER_PLUGINS


@pytest.mark.parametrize("seeds", CASES.blocks(_BLOCK))
def test_the_nodes_that_kube_scheduler_refuses(seeds: range, filters: Path) -> None:
    cases = [case(seed) for seed in seeds]
    seen = Counter[str]()
    for seed, given, expected in zip(seeds, cases, _upstream(filters, cases), strict=True):
        with told(seed):
            found = _predicted(given)
            for pod, ours, theirs in zip(given.waiting, found, expected, strict=True):
                assert ours == theirs, pod
                seen.update(ours.values())
    if len(seeds) > 1:  # each verdict is put to the test
        assert min(seen[each] for each in ("fits", "preempts", "refused")) > len(seeds) // 10


def _upstream(filters: Path, cases: Iterable[Case]) -> list[list[Verdicts]]:
    questions = [
        {
            "nodes": given.nodes,
            "pods": given.pods,
            "namespaces": given.namespaces,
            "classes": given.classes,
            "wait": given.waiting,
        }
        for given in cases
    ]
    asked = "\n".join(map(json.dumps, questions))
    done = subprocess.run([filters], input=asked, capture_output=True, text=True, check=True)
    return [
        [{node: _word(each) for node, each in verdicts.items()} for verdicts in json.loads(line)]
        for line in done.stdout.splitlines()
    ]


def _word(verdict: Object) -> str:
    if verdict["fits"]:
        return "fits"
    return "preempts" if verdict["preempts"] else "refused"


def _predicted(given: Case) -> list[Verdicts]:
    cache, known = ClusterCache(Selectors()), decoders()
    for resource, objects in (
        (NAMESPACES, given.namespaces),
        (DEVICE_CLASSES, given.classes),
        (NODES, given.nodes),
        (PODS, given.pods),
    ):
        for number, each in enumerate(objects):
            stored = {"uid": f"{resource.plural}-{number}", "resourceVersion": "1"}
            made = each | {"metadata": stored | each["metadata"]}
            cache.apply(resource, Change.ADDED, known[resource].decode(encode(made)))
    predictions, numbers = Predictions(cache), cache.state().numbers
    every_node = numbers.set_of(cache.nodes)
    verdicts = []
    for pod in given.waiting:
        found = predictions.of(pod, every_node)
        verdicts.append(
            dict.fromkeys(cache.nodes, "refused")
            | dict.fromkeys(numbers.names(found.fits), "fits")
            | dict.fromkeys(numbers.names(found.preempting), "preempts")
        )
    return verdicts
