"""What `helm test` runs."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.model.devices.plugin_device import RESOURCES
from dra_driver.model.mode import Mode
from dra_driver.model.names import CLASS_DRS, CLASS_SHARED, CLASS_WHOLE
from tests.chart.helm import Helm, Values

OLD = "--kube-version=1.30.14"
CLASSES = {Mode.WHOLE: CLASS_WHOLE, Mode.SHARED: CLASS_SHARED, Mode.DRS: CLASS_DRS}
MODES = pytest.mark.parametrize(
    ("modes", "mode"),
    [(["whole", "shared", "drs"], Mode.SHARED), (["drs"], Mode.DRS), (["whole"], Mode.WHOLE)],
    ids=["a slice", "an instance", "a card"],
)


def rendered(helm: Helm, values: Values, *flags: str) -> dict[str, Any]:
    """By kind; all are hooks."""
    objects = [
        each
        for each in helm.render(values, *flags)
        if (each["metadata"].get("annotations") or {}).get("helm.sh/hook") == "test"
    ]
    return {each["kind"]: each for each in objects}


@MODES
def test_with_claims(helm: Helm, modes: list[str], mode: Mode) -> None:
    found = rendered(helm, {"cards": {"modes": modes}})
    claim, pod = found["ResourceClaim"], found["Pod"]
    [wanted] = claim["spec"]["devices"]["requests"]
    assert wanted["exactly"] == {"deviceClassName": CLASSES[mode]}
    [used] = pod["spec"]["resourceClaims"]
    assert used["resourceClaimName"] == claim["metadata"]["name"]
    assert pod["spec"]["containers"][0]["resources"] == {"claims": [{"name": used["name"]}]}


@MODES
def test_by_limits(helm: Helm, modes: list[str], mode: Mode) -> None:
    found = rendered(helm, {"cards": {"modes": modes}}, OLD)
    assert found.keys() == {"Pod"}
    spec = found["Pod"]["spec"]
    assert spec["containers"][0]["resources"] == {"limits": {RESOURCES[mode]: 1}}
    assert "schedulerName" not in spec
    scheduled = {"extender": {"schedulerImage": "kube-scheduler:v1.30.14"}}
    spec = rendered(helm, scheduled, OLD)["Pod"]["spec"]
    assert spec["schedulerName"] == "gcushare-scheduler"


def test_without_tolerations(helm: Helm) -> None:
    """A value of null takes the default away."""
    assert "tolerations" not in rendered(helm, {"agent": {"tolerations": None}})["Pod"]["spec"]
