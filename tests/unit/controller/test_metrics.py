"""What Prometheus reads of the controller."""

from __future__ import annotations

from typing import cast

from prometheus_client import CollectorRegistry

from controller import metric_specs
from controller.app import Controller
from controller.extender.service import Metrics
from dra_driver.kube.api import Api
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from tests.generated_docs import CONTROLLER_METRICS
from tests.unit.controller.allocator.build import allocated, claim, device, pool
from tests.unit.controller.fake_api import FakeApi
from tests.unit.controller.world import SETTINGS, World, pod

CARD = "whole-0000-00-00-0"


def test_from_a_pods_creation_to_its_allocation() -> None:
    world = World()  # where it is midnight of 2026-01-02
    created = pod("p", "c")
    created["metadata"]["creationTimestamp"] = "2026-01-01T23:59:50Z"
    world.put(RESOURCE_CLAIMS, claim("c"))
    world.put(PODS, created)
    world.run_until_idle()
    assert world.metric("gcu_controller_allocation_duration_seconds_count") == 1
    assert world.metric("gcu_controller_allocation_duration_seconds_sum") == 10


def test_the_longest_wait() -> None:
    world = World(pool("a", [device("whole", 0)]))
    assert world.metric("gcu_controller_longest_wait_seconds") == 0
    world.put(RESOURCE_CLAIMS, allocated("held", "a", CARD))
    for name in ("first", "second"):
        world.ask(name, name)
        world.run_until_idle()
        world.time += 60.0
    assert world.metric("gcu_controller_longest_wait_seconds") == 120
    world.remove(PODS, "first")
    world.run_until_idle()
    assert world.metric("gcu_controller_longest_wait_seconds") == 60


def test_all_metrics_are_described() -> None:
    registry = CollectorRegistry()
    settings = SETTINGS.model_copy(update={"allocator": "scheduler"})
    controller = Controller(settings, cast("Api", FakeApi()), registry, identity="one")
    Metrics(registry)
    found = {each.name for each in registry.collect()}
    others = {
        metric_specs.WEBHOOK_CERTIFICATE_END.name,
        metric_specs.WEBHOOK_REVIEWS.name,
    }
    assert found == {each.name for each in CONTROLLER_METRICS} - others
    assert registry.get_sample_value("gcu_controller_leading") == 0
    controller.stop()
