"""DeviceClasses whose containers get device metadata."""

from __future__ import annotations

from dra_driver.config.device_config import read_config
from dra_driver.model.names import CLASS_SHARED, CLASS_WHOLE
from tests.chart.helm import Helm


def test_the_classes_of_the_value_ask_for_it(helm: Helm) -> None:
    classes = helm.render({"deviceMetadata": [CLASS_WHOLE, CLASS_SHARED]}).of("DeviceClass")
    entries = {
        each["metadata"]["name"]: each["spec"]["config"]
        for each in classes
        if "config" in each["spec"]
    }
    assert entries.keys() == {CLASS_WHOLE, CLASS_SHARED}
    for [entry] in entries.values():
        config = read_config(entry, "the class")
        assert config is not None
        assert config.device_metadata is True


def test_without_the_value_no_class_has_a_configuration(helm: Helm) -> None:
    assert all("config" not in each["spec"] for each in helm.render({}).of("DeviceClass"))
