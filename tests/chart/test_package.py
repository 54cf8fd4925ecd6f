"""The chart's package is what Helm takes."""

from __future__ import annotations

from pathlib import Path

import yaml

from dra_driver.version import VERSION
from tests.chart.helm import CHART, NAMESPACE, RELEASE, Helm
from tests.release.chart_package import write_package


def test_helm_renders_the_package_as_the_folder(helm: Helm, tmp_path: Path) -> None:
    package = tmp_path / f"gcu-dra-driver-{VERSION}.tgz"
    write_package(CHART, package, 1_700_000_000)
    assert yaml.safe_load(helm.run("show", "chart", package))["version"] == VERSION
    scope = f"--namespace={NAMESPACE}"
    assert helm.run("template", RELEASE, package, scope) == helm.run(
        "template", RELEASE, CHART, scope
    )
