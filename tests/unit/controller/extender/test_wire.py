"""JSON as kube-scheduler's Go types write and read it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from controller.extender.decide import Filtered
from controller.extender.wire import (
    BindArgs,
    parse_bind,
    parse_filter,
    parse_preemption,
    render_error,
    render_filtered,
    render_scores,
    render_victims,
)
from dra_driver.model.errors import InvalidValue
from tests.unit.controller.extender.build import SHARED, pod

POD = pod("a", {SHARED: 1})
VICTIMS = {"Pods": [{"UID": "low"}], "NumPDBViolations": 1}


def test_a_question_has_a_pod_and_names_of_nodes() -> None:
    body = json.dumps({"Pod": POD, "Nodes": None, "NodeNames": ["n", "m"]}).encode()
    found = parse_filter(body)
    assert (found.pod, found.nodes) == (POD, ("n", "m"))


def test_a_node_is_asked_about_once() -> None:
    """Each is judged under the lock that all calls share."""
    body = json.dumps({"Pod": POD, "NodeNames": ["n", "m", "n", "n"]}).encode()
    assert parse_filter(body).nodes == ("n", "m")


ODD_METADATA: dict[str, object] = {"null": None, "number": 1, "half a character": "\ud800"}


@pytest.mark.parametrize("value", ODD_METADATA.values(), ids=ODD_METADATA)
@pytest.mark.parametrize("key", ["namespace", "name", "uid"])
def test_a_pod_that_cannot_be_written_to_is_none(key: str, value: object) -> None:
    """It would be kept where it fits nowhere, and end the thread that has such pods tried again."""
    odd = {**POD, "metadata": {**POD["metadata"], key: value}}
    with pytest.raises(InvalidValue, match="names no pod"):
        parse_filter(json.dumps({"Pod": odd, "NodeNames": ["n"]}).encode())


@pytest.mark.parametrize(
    "spec",
    [{"priority": "high"}, {"containers": [{"name": {}}]}, {"initContainers": [1]}, []],
    ids=["priority", "name of a container", "container", "spec"],
)
def test_a_pod_that_cannot_be_judged_later_is_none(spec: object) -> None:
    odd = {**POD, "spec": POD["spec"] | spec if isinstance(spec, dict) else spec}
    with pytest.raises(InvalidValue, match="names no pod"):
        parse_filter(json.dumps({"Pod": odd, "NodeNames": ["n"]}).encode())


def test_a_bind_names_one_very_pod_and_a_node() -> None:
    body = {"PodName": "a", "PodNamespace": "default", "PodUID": "u", "Node": "n"}
    assert parse_bind(json.dumps(body).encode()) == BindArgs("default", "a", "u", "n")


@pytest.mark.parametrize(
    ("parse", "body", "words"),
    [
        (parse_filter, {"Pod": POD, "Nodes": {"items": []}}, "nodeCacheCapable: true"),
        (parse_filter, {"NodeNames": []}, "names no pod"),
        (parse_filter, [], "not an object"),
        (parse_bind, {"PodName": "a", "PodNamespace": "d", "PodUID": "u"}, "no 'Node'"),
        (parse_preemption, {"Pod": POD, "NodeNameToVictims": {}}, "nodeCacheCapable: true"),
        (parse_preemption, {"NodeNameToMetaVictims": {}}, "as ExtenderPreemptionArgs has it"),
        (parse_preemption, {"Pod": POD, "NodeNameToMetaVictims": []}, "victims of no nodes"),
        (
            parse_preemption,
            {"Pod": POD, "NodeNameToMetaVictims": {"n": ["low"]}},
            "victims of node n are no object",
        ),
    ],
    ids=[
        "whole nodes",
        "no pod",
        "a list",
        "no node",
        "whole victims",
        "no pod to",
        "no nodes",
        "a list of victims",
    ],
)
def test_what_is_no_call_of_the_protocol(
    parse: Callable[[bytes], object], body: object, words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        parse(json.dumps(body).encode())


NO_VICTIMS: dict[str, object] = {
    "no field": {},
    "null pods": {"Pods": None, "NumPDBViolations": 0},
    "no pods": {"Pods": []},
    "null": None,
}


@pytest.mark.parametrize("victims", NO_VICTIMS.values(), ids=NO_VICTIMS)
def test_a_node_may_have_no_victims(victims: object) -> None:
    """From Kubernetes 1.38 on: the pod fits there as it is (kubernetes#135486). A null in the
    answer would end kube-scheduler, which reads the fields of each (`convertToVictims`)."""
    body = json.dumps({"Pod": POD, "NodeNameToMetaVictims": {"n": victims, "m": VICTIMS}}).encode()
    found = parse_preemption(body).victims
    assert found["m"] == VICTIMS
    answer = json.loads(render_victims(found))["NodeNameToMetaVictims"]
    assert answer["m"] == VICTIMS
    assert answer["n"]["Pods"] == []


def test_a_pod_may_be_nested_deeper_than_python_reads() -> None:
    deep = '{"f": ' * 2500 + "0" + "}" * 2500
    body = json.dumps({"Pod": POD, "NodeNames": ["n"]}).replace('"spec"', f'"deep": {deep}, "spec"')
    found = parse_filter(body.encode())
    assert (found.pod["spec"], found.nodes) == (POD["spec"], ("n",))


def test_what_is_no_json() -> None:
    with pytest.raises(InvalidValue, match="not JSON"):
        parse_filter(b"Pod=a")


def test_answers_have_the_names_of_gos_fields() -> None:
    filtered = json.loads(render_filtered(Filtered(("n",), {"m": "full"})))
    assert filtered == {
        "NodeNames": ["n"],
        "FailedAndUnresolvableNodes": {"m": "full"},
        "Error": "",
    }
    assert json.loads(render_scores({"n": 10})) == [{"Host": "n", "Score": 10}]
    assert json.loads(render_error("why")) == {"Error": "why"}
