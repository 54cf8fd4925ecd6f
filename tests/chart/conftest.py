"""Fixtures of the chart's tests: helm, without a cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.chart.helm import Helm
from tests.cluster.build import build_all
from tests.cluster.versions import chosen_kubernetes


@pytest.fixture(scope="session")
def helm(cluster_report: Callable[[str], None], tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = build_all(chosen_kubernetes(), cluster_report) / "helm"
    return Helm(program, tmp_path_factory.mktemp("helm"))
