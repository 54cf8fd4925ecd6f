"""Packing, as claims, classes and settings say."""

from __future__ import annotations

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import DEVICE_CLASSES
from dra_driver.model.claims.claim import Object, allocation, results
from dra_driver.model.names import CLASS_SHARED, DRIVER
from tests.component.controller.conftest import Start
from tests.component.controller.stage import Stage
from tests.control_plane.objects import claim, pod_with, shared, whole

PACKED: Object = {
    "metadata": {"name": "packed"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}


def says(**packing: str) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": packing}
    return {"opaque": {"driver": DRIVER, "parameters": parameters}}


def start(stage: Stage, name: str, device_class: str, *config: Object) -> None:
    """A pod with a claim, both of that name."""
    wanted = claim(name, stage.namespace)
    wanted["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = device_class
    if config:
        wanted["spec"]["devices"]["config"] = list(config)
    stage.add_made_claim(wanted)
    stage.add_pod(name, name)


def test_a_claim_chooses_for_itself_and_wins_over_its_class(
    stage: Stage, start_controller: Start
) -> None:
    """Its parameters are not sent back with its finalizer: the server would refuse them."""
    small, large = (stage.add_node([whole(bus) for bus in range(n)]) for n in (1, 3))
    spec = PACKED["spec"] | {"config": [says(nodes="binpack")]}
    stage.api.put(DEVICE_CLASSES, PACKED | {"spec": spec})
    start_controller()
    start(stage, "spread", "packed", says(nodes="spread"))
    assert stage.bind("spread") == large
    written = (allocation(stage.claim("spread")) or {})["devices"]["config"]
    assert written == [
        {"source": "FromClass", "requests": ["gcu"], **says(nodes="binpack")},
        {"source": "FromClaim", **says(nodes="spread")},
    ]
    start(stage, "packed", "packed")
    assert stage.bind("packed") == small


def test_cards_are_filled_or_spread_as_the_claim_says(
    stage: Stage, start_controller: Start
) -> None:
    stage.add_node([shared(0), shared(1)])

    start_controller()

    def card_for(name: str, *config: Object) -> str:
        start(stage, name, CLASS_SHARED, *config)
        stage.bind(name)
        [result] = results(stage.claim(name))
        return result.device

    begun = card_for("first")
    assert card_for("apart", says(cards="spread")) != begun
    assert card_for("beside", says(cards="binpack")) == card_for("as-set")


def test_replicas_keep_apart(stage: Stage, start_controller: Start) -> None:
    """Spreading without counting replicas would put both on the node where less is in use."""
    busy, idle = (stage.add_node([whole(bus) for bus in range(4)]) for _ in range(2))
    start_controller(pack_nodes="spread")
    for name in ("one", "two"):
        stage.start(name, nodeSelector={"machine": busy})
        stage.bind(name)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "twins", "uid": "twins"}
    for name in ("twin-0", "twin-1"):
        stage.add_claim(name)
        made = pod_with(name, stage.namespace, name)
        made["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        stage.put_pod(made)
    assert {stage.bind(name) for name in ("twin-0", "twin-1")} == {busy, idle}
