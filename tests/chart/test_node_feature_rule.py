"""The rule by which Node Feature Discovery labels nodes."""

from __future__ import annotations

from dra_driver.model.names import PCI_VENDORS
from tests.chart.helm import Helm


def test_nodes_are_labelled_by_model_and_driver(helm: Helm) -> None:
    """In the form of nfd.k8s-sigs.io/v1alpha1 (docs of node-feature-discovery, customization)."""
    assert helm.render({}).of("NodeFeatureRule") == []
    [rule] = helm.render({"nodeFeatureRule": {"enabled": True}}).of("NodeFeatureRule")
    *models, driver = rule["spec"]["rules"]
    devices = {}
    for each in models:
        [label] = each["labels"]
        [feature] = each["matchFeatures"]
        wanted = feature["matchExpressions"]
        assert feature["feature"] == "pci.device"
        assert set(wanted["vendor"]["value"]) == PCI_VENDORS
        devices[label] = wanted["device"]["value"]
    assert devices["gcu.enflame.com/model.S60"] == ["c035"]
    assert devices["gcu.enflame.com/model.T20"] == ["0021", "0022"]
    everything = [device for ids in devices.values() for device in ids]
    assert len(everything) == len(set(everything))
    assert driver["labels"] == {"gcu.enflame.com/kernel-driver": "true"}
    assert driver["matchFeatures"] == [
        {"feature": "kernel.loadedmodule", "matchExpressions": {"enflame": {"op": "Exists"}}}
    ]
