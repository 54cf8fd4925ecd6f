"""DeviceTaintRules: honoured where they are served, and not missed elsewhere."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2
from dra_driver.model.names import DRIVER
from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import whole


def test_a_pod_waits_while_a_rule_taints_all_devices(stage: Stage, start_controller: Start) -> None:
    stage.add_node([whole(0), whole(1)])
    taint = {"key": "example.com/drain", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    stage.api.put(DEVICE_TAINT_RULES, {"metadata": {"name": "drain"}, "spec": spec})
    start_controller()
    stage.start("one")
    stage.wait_for_event("one", "2 tainted example.com/drain by DeviceTaintRule drain")
    stage.api.remove(DEVICE_TAINT_RULES, "drain")
    stage.bind("one")


def test_a_server_without_rules_is_served(
    stage: Stage, start_controller: Start, caplog: pytest.LogCaptureFixture
) -> None:
    stage.api.served -= {DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1BETA2}
    stage.add_node([whole(0)])
    start_controller()
    stage.start("one")
    stage.bind("one")
    assert caplog.text.count("does not serve devicetaintrules: going on without them") == 1
