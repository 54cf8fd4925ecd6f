"""What RBAC allows the chart's accounts, and an admission policy refuses: attempts, and the words.

`AGENT` and `CONTROLLER` have the attempts with the token of that program.
"""

from __future__ import annotations

from collections.abc import Callable

from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.hidden_device import hidden_name
from dra_driver.model.names import ANNOTATION_TERM, DRIVER, FINALIZER, pool_name
from tests.control_plane.attempts import Stage
from tests.control_plane.objects import TAINT, whole

Attempt = Callable[[Stage], object]
Cases = dict[str, tuple[Attempt, str]]

OTHERS_DRIVER = "gpu.example.com"
RESERVED = {"resource": "pods", "name": "pod", "uid": "1"}
BARE: Object = {key: value for key, value in whole(0x0D).items() if key != "taints"}

UNTAINTED = rf"publishes devices with the taint {DRIVER}/allocated-by=controller:NoSchedule only"
HIDDEN: Object = {"nodeName": None, "nodeSelector": {"nodeSelectorTerms": [{}]}}
NOT_ITS_NODE = r"the agent on node '.*' may not write a slice of driver"
NOT_ITS_NAME = (
    r"may not write the slice '.*': its slices are .*000 to 015, and one that ends in hidden"
)
OWN_DRIVER = "allocates and releases devices of its own driver only"
IN_STATUS = "changes neither reservedFor nor devices in the status of an allocated claim"


def in_own_name(program: str) -> str:
    return rf"an event of this account has the reportingController {DRIVER}/{program}"


def tainted(**changes: str) -> Object:
    return {**BARE, "taints": [TAINT | changes]}


def numbered(ending: str) -> Attempt:
    return lambda s: s.make_slice(name=f"{s.own}-{DRIVER}-{ending}")


AGENT: Cases = {
    "report as the kubelet": (lambda s: s.report("kubelet"), in_own_name("agent")),
    "report as the controller": (
        lambda s: s.report(f"{DRIVER}/controller"),
        in_own_name("agent"),
    ),
    "report with another source": (
        lambda s: s.report(f"{DRIVER}/agent", deprecatedSource={"component": "kubelet"}),
        "source: Invalid value: .* needs to be unset",
    ),
    "publish a device without taints": (lambda s: s.make_slice(devices=[BARE]), UNTAINTED),
    "publish one among others": (
        lambda s: s.make_slice(devices=[whole(0x0E), {**BARE, "name": "second"}]),
        UNTAINTED,
    ),
    "publish for another allocator": (
        lambda s: s.make_slice(devices=[tainted(value="scheduler")]),
        UNTAINTED,
    ),
    "publish with another taint": (
        lambda s: s.make_slice(devices=[tainted(key="example.com/any")]),
        UNTAINTED,
    ),
    "publish with another effect": (
        lambda s: s.make_slice(devices=[tainted(effect="NoExecute")]),
        UNTAINTED,
    ),
    "publish a seventeenth slice": (numbered("016"), NOT_ITS_NAME),
    "publish a slice of another number": (numbered("100"), NOT_ITS_NAME),
    "publish a slice of more digits": (numbered("0000"), NOT_ITS_NAME),
    "publish a slice without a number": (numbered("x"), NOT_ITS_NAME),
    "publish a slice of another name": (lambda s: s.make_slice(name="any"), NOT_ITS_NAME),
    "take a name of another node": (
        lambda s: s.make_slice(name=f"{s.other}-{DRIVER}-000"),
        NOT_ITS_NAME,
    ),
    "hide a slice under the name of a visible one": (
        lambda s: s.make_slice(**HIDDEN),
        NOT_ITS_NAME,
    ),
    "publish a visible slice under the name of a hidden one": (
        lambda s: s.make_slice(name=hidden_name(s.own)),
        NOT_ITS_NAME,
    ),
    "hide a slice under the name of another node": (
        lambda s: s.make_slice(name=hidden_name(s.other), **HIDDEN),
        NOT_ITS_NAME,
    ),
    "hide a second slice": (
        lambda s: s.make_slice(name=f"{hidden_name(s.own)}-001", **HIDDEN),
        NOT_ITS_NAME,
    ),
    "hide a slice in the pool of another node": (
        lambda s: s.make_slice(
            name=hidden_name(s.own),
            pool={"name": pool_name(s.other), "generation": 1, "resourceSliceCount": 1},
            **HIDDEN,
        ),
        NOT_ITS_NODE,
    ),
    "offer a slice to nodes by their labels": (
        lambda s: s.make_slice(
            name=hidden_name(s.own),
            nodeName=None,
            nodeSelector={
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
            },
        ),
        NOT_ITS_NODE,
    ),
    "offer a slice to all nodes": (
        lambda s: s.make_slice(name=hidden_name(s.own), nodeName=None, allNodes=True),
        NOT_ITS_NODE,
    ),
}


def result(driver: str = DRIVER) -> Object:
    return {"request": "gcu", "driver": driver, "pool": f"{driver}/any", "device": "any"}


def allocated(*drivers: str) -> Object:
    return {"devices": {"results": [result(driver) for driver in drivers]}}


CONTROLLER: Cases = {
    "report as kube-scheduler": (
        lambda s: s.report("default-scheduler"),
        in_own_name("controller"),
    ),
    "allocate another driver's device": (
        lambda s: s.replace_status("free", allocation=allocated(OTHERS_DRIVER)),
        OWN_DRIVER,
    ),
    "allocate it beside one of its own": (
        lambda s: s.replace_status("free", allocation=allocated(DRIVER, OTHERS_DRIVER)),
        OWN_DRIVER,
    ),
    "allocate nothing": (
        lambda s: s.replace_status("free", allocation={"devices": {}}),
        OWN_DRIVER,
    ),
    "release another driver's device": (
        lambda s: s.replace_status("theirs", allocation=None),
        OWN_DRIVER,
    ),
    "release it beside one of its own": (
        lambda s: s.replace_status("mixed", allocation=None),
        OWN_DRIVER,
    ),
    "allocate and reserve": (
        lambda s: s.replace_status("free", allocation=allocated(DRIVER), reservedFor=[RESERVED]),
        IN_STATUS,
    ),
    "reserve": (lambda s: s.replace_status("held", reservedFor=[RESERVED]), IN_STATUS),
    "take a reservation away": (
        lambda s: s.replace_status("reserved", reservedFor=None),
        IN_STATUS,
    ),
    "label a claim": (lambda s: s.replace_metadata("free", labels={"a": "b"}), "nor its labels"),
    "own a claim": (
        lambda s: s.replace_metadata(
            "free",
            ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "1"}],
        ),
        "nor its labels or owners",
    ),
    "annotate a claim": (
        lambda s: s.replace_metadata("free", annotations={"a": "b"}),
        f"writes its annotation {ANNOTATION_TERM}, and no other",
    ),
    "take an annotation away": (
        lambda s: s.replace_metadata("held", annotations={}),
        f"writes its annotation {ANNOTATION_TERM}, and no other",
    ),
    "add another finalizer": (
        lambda s: s.replace_metadata("free", finalizers=["example.com/any"]),
        f"adds the finalizer {FINALIZER}, and changes no other",
    ),
    "take another finalizer away": (
        lambda s: s.replace_metadata("held", finalizers=[FINALIZER]),
        f"adds the finalizer {FINALIZER}, and changes no other",
    ),
    "take the finalizer away": (
        lambda s: s.replace_metadata("held", finalizers=["example.com/theirs"]),
        f"adds the finalizer {FINALIZER}, and changes no other",
    ),
}
