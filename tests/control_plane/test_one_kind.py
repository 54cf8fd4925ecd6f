"""A pod with two kinds of GCU is refused when it is made, where pods are served by their limits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from dra_driver.model.names import RESOURCE_DRS, RESOURCE_SHARED, RESOURCE_WHOLE
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.versions import chosen_with_dra, chosen_without_dra
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.driver import NOWHERE
from tests.control_plane.legacy import GCUSHARE, asking, refusal

pytestmark = pytest.mark.control_plane

NAMESPACE = "default"
TWO = asking(NAMESPACE, {RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "3"})


def starting(**limits: str) -> Object:
    return {"name": "before", "image": "none", "resources": {"limits": limits}}


@pytest.fixture(scope="module", params=["without DRA", "with DRA"])
def api(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    cluster_report: Callable[[str], None],
) -> Iterator[Client]:
    """Of a server without DRA and of one with it, once the chart's policies are heeded there."""
    version = chosen_with_dra() if request.param == "with DRA" else chosen_without_dra()
    settings = Settings(f"one-kind-{os.getpid()}", kubernetes=version)
    cluster = Cluster.up(settings, owner=own_process(), report=cluster_report)
    try:
        values = tmp_path_factory.mktemp("values") / "values.json"
        chosen = {"mode": "device-plugin", "agent": NOWHERE, "controller": NOWHERE}
        values.write_text(json.dumps(chosen))
        scope = (f"--namespace={DRIVER_NAMESPACE}", "--create-namespace")
        cluster.helm("install", RELEASE, str(CHART), *scope, f"--values={values}")
        client = connect(cluster.kubeconfig, effects=Effects(), user_agent="tests/1")
        wait_until(lambda: "one-kind" in refusal(client, TWO), PATIENCE, "the policy to be heeded")
        yield client
        client.close()
    finally:
        cluster.down()


REFUSED = {
    "in two containers": TWO,
    "in one container": asking(NAMESPACE, {RESOURCE_SHARED: "1", RESOURCE_DRS: "3"}),
    "in an init container": asking(
        NAMESPACE,
        {RESOURCE_SHARED: "1"},
        initContainers=[starting(**{RESOURCE_DRS: "3"})],
    ),
    "for the extender's scheduler": asking(
        NAMESPACE, {RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "3"}, schedulerName=GCUSHARE
    ),
    "past every scheduler": asking(
        NAMESPACE, {RESOURCE_SHARED: "1"}, {RESOURCE_DRS: "3"}, nodeName="any"
    ),
}


@pytest.mark.parametrize("pod", REFUSED.values(), ids=REFUSED)
def test_two_kinds_are_refused_in_words(api: Client, pod: Object) -> None:
    told = refusal(api, pod)
    assert "asks for enflame.com/shared-gcu and enflame.com/drs-gcu: a pod asks for one" in told
    assert "Split it into several pods." in told


TAKEN = {
    "one kind": asking(NAMESPACE, {RESOURCE_WHOLE: "1"}),
    "one kind in several containers": asking(
        NAMESPACE,
        {RESOURCE_SHARED: "2"},
        {RESOURCE_SHARED: "1", "cpu": "1"},
        {},
        initContainers=[starting(**{RESOURCE_SHARED: "1"})],
    ),
    "none of the other": asking(NAMESPACE, {RESOURCE_SHARED: "1", RESOURCE_DRS: "0"}),
    "none of either": asking(NAMESPACE, {RESOURCE_SHARED: "0"}, {RESOURCE_DRS: "0"}),
    "no GCU": asking(NAMESPACE, {"cpu": "1"}),
}


@pytest.mark.parametrize("pod", TAKEN.values(), ids=TAKEN)
def test_others_are_taken(api: Client, pod: Object) -> None:
    assert refusal(api, pod) == ""
