"""Chart.yaml: what catalogues of charts show is true."""

from __future__ import annotations

import pytest
import yaml

from dra_driver.version import VERSION
from tests.chart.helm import CHART, CHECKOUT, Helm, Values

METADATA = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
ANNOTATIONS: dict[str, str] = METADATA["annotations"]


def test_the_version_is_the_programs() -> None:
    assert METADATA["version"] == METADATA["appVersion"] == VERSION


def test_the_license_is_the_checkouts() -> None:
    assert ANNOTATIONS["artifacthub.io/license"] == "Apache-2.0"
    text = (CHECKOUT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0" in text


def test_annotations_are_texts_and_links_have_a_name_and_an_address() -> None:
    assert all(isinstance(each, str) for each in ANNOTATIONS.values())
    for link in yaml.safe_load(ANNOTATIONS["artifacthub.io/links"]):
        assert link.keys() == {"name", "url"}
        assert link["url"].startswith("https://")


@pytest.mark.parametrize("values", [{}, {"mode": "device-plugin"}], ids=["DRA", "device plugins"])
def test_no_crds_are_installed(helm: Helm, values: Values) -> None:
    assert not (CHART / "crds").exists()
    assert not helm.render(values).of("CustomResourceDefinition")
