"""On which nodes the agent runs."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import PCI_VENDORS
from tests.chart.helm import Helm, Values

SIMULATED: Values = {"simulation": {"enabled": True}}


def labels_that_choose(pod: Object) -> set[str]:
    """Labels of nodes, of which a node needs one to get an agent."""
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return {
        expression["key"]
        for term in terms["nodeSelectorTerms"]
        for expression in term["matchExpressions"]
    }


def test_by_default_it_runs_where_a_gcu_is_known(helm: Helm) -> None:
    assert labels_that_choose(helm.render().agent) == {
        "enflame.com/gcushare",
        *(f"feature.node.kubernetes.io/pci-1200_{vendor}.present" for vendor in PCI_VENDORS),
    }


@pytest.mark.parametrize(
    ("agent", "affinity"),
    [
        ({"nodeSelector": {"gcu": "yes"}}, None),
        ({"affinity": {"nodeAffinity": {"x": 1}}}, {"nodeAffinity": {"x": 1}}),
    ],
    ids=["nodeSelector", "affinity"],
)
def test_a_choice_of_nodes_replaces_the_default(
    helm: Helm, agent: Values, affinity: Object | None
) -> None:
    pod = helm.render({"agent": agent}).agent
    assert pod.get("affinity") == affinity
    assert pod.get("nodeSelector") == agent.get("nodeSelector")


def test_a_simulation_runs_everywhere(helm: Helm) -> None:
    pod = helm.render(SIMULATED).agent
    assert not {"affinity", "nodeSelector"} & set(pod)
    assert pod["tolerations"] == [{"operator": "Exists"}]
