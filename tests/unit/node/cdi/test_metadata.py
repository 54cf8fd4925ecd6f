"""The files of device metadata; tests/component has a reader of upstream's for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import InvalidValue
from dra_driver.node.checkpoint.records import MetadataRef
from tests.unit.node.cdi.device_metadata import ASKED, REFUSED, SILENT, mounted, of_template
from tests.unit.node.drs_world import DrsWorld, errors
from tests.unit.node.effects import Crash, Kill
from tests.unit.node.world import CARDS, POOL, claim, result


def prepare(world: DrsWorld, made: dict[str, Any]) -> ClaimRef:
    ref = world.api.add(made)
    assert errors(world.start(), ref) == [""]
    return ref


def metadata_files(world: DrsWorld) -> dict[str, str]:
    found = (world.root / "metadata").glob("*/*")
    return {f"{path.parent.name}/{path.name}": path.read_text() for path in found}


def test_a_container_has_the_attributes_of_all_devices_of_a_request(world: DrsWorld) -> None:
    prepare(world, claim("one", result(0), result(1), config=(ASKED, SILENT)))
    [(inside, outside)] = mounted(world).items()
    assert inside == (
        "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/one/gcu/"
        "gcu.enflame.com-metadata.json"
    )
    newest, oldest = map(json.loads, Path(outside).read_text().splitlines())
    assert newest["apiVersion"] == "metadata.resource.k8s.io/v1beta1"
    assert oldest == newest | {"apiVersion": "metadata.resource.k8s.io/v1alpha1"}
    assert newest["metadata"] == {
        "name": "one",
        "namespace": "team",
        "uid": "uid-one",
        "generation": 1,
    }
    [request] = newest["requests"]
    assert request["name"] == "gcu"
    assert [(each["pool"], each["name"]) for each in request["devices"]] == [
        (POOL, "whole-0000-0d-00-0"),
        (POOL, "whole-0000-0e-00-0"),
    ]
    attributes = request["devices"][1]["attributes"]
    assert attributes["resource.kubernetes.io/pciBusID"] == {"string": str(CARDS[1])}
    assert attributes["type"] == {"string": "whole"}


def test_a_claim_of_a_template_is_found_by_the_pods_name_for_it(world: DrsWorld) -> None:
    prepare(world, of_template(claim("pod-x-7", result(0, "gcu/big"), config=(ASKED,)), "x"))
    [(inside, outside)] = mounted(world).items()
    assert "/resourceclaimtemplates/x/gcu/" in inside
    newest = json.loads(Path(outside).read_text().splitlines()[0])
    assert (newest["podClaimName"], newest["requests"][0]["name"]) == ("x", "gcu/big")


@pytest.mark.parametrize("configs", [(), (SILENT,), (ASKED, REFUSED)], ids=["none", "other", "no"])
def test_without_a_class_that_asks_for_it_there_is_none(
    world: DrsWorld, configs: tuple[dict[str, Any], ...]
) -> None:
    prepare(world, claim("one", result(0), config=configs))
    assert (mounted(world), metadata_files(world)) == ({}, {})


def test_it_comes_back_and_goes_with_its_claim(world: DrsWorld) -> None:
    ref = prepare(world, claim("one", result(0), config=(ASKED,)))
    before = metadata_files(world)
    assert before.keys() == {"uid-one/gcu.json"}
    (world.root / "metadata" / "uid-one" / "gcu.json").unlink()
    agent = world.start()
    assert metadata_files(world) == before
    assert agent.preparer.unprepare([ref]) == {"uid-one": None}
    assert metadata_files(world) == {}
    assert not list((world.root / "metadata").iterdir())


@pytest.mark.parametrize("step", ["prepare", "unprepare"])
def test_a_kill_anywhere_leaves_no_file_behind(tmp_path: Path, step: str) -> None:
    kills = 0
    while True:
        world = DrsWorld(tmp_path / f"{kills}")
        ref = world.api.add(claim("one", result(0), config=(ASKED,)))
        if step == "unprepare":
            world.start().preparer.prepare([ref])
        agent = world.start(kill := Kill())
        kill.n = len(kill.moments) + kills + 1
        try:
            getattr(agent.preparer, step)([ref])
        except Crash:
            kills += 1
        else:
            break
        agent = world.start()
        has_all = bool(agent.held())
        assert (bool(world.files()), bool(metadata_files(world))) == (has_all, has_all)
        assert agent.preparer.unprepare([ref]) == {"uid-one": None}
        assert (world.files(), metadata_files(world), agent.held()) == ({}, {}, {})
    assert kills > 5


@pytest.mark.parametrize(("request_name", "pod_claim"), [("../x", ""), ("gcu", "../x"), ("", "")])
def test_names_that_are_no_part_of_a_path_are_refused(request_name: str, pod_claim: str) -> None:
    with pytest.raises(InvalidValue):
        MetadataRef(request_name, pod_claim)
