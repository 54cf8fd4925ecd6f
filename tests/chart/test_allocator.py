"""Which program allocates, where `allocator: auto`, the default, lets helm choose."""

from __future__ import annotations

from typing import Final

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    ALLOCATOR_SCHEDULER,
    ANNOTATION_SCHEDULER_VERSION,
)
from tests.chart.helm import Helm, Rendered, Values, environment

NEW: Final[Values] = {"schedulerVersion": "1.37.1"}

CHOICES: Final[dict[str, tuple[Values, str, str]]] = {
    "named, and new": (NEW, "1.37.1", ALLOCATOR_SCHEDULER),
    "named, with a vendor's suffix": (
        {"schedulerVersion": "v1.37.1-gke.100"},
        "v1.37.1-gke.100",
        ALLOCATOR_SCHEDULER,
    ),
    "newer than a server of its minor version": (NEW, "1.37.0", ALLOCATOR_SCHEDULER),
    "named, and not yet run": (
        {"schedulerVersion": "1.37.0"},
        "1.37.1",
        ALLOCATOR_CONTROLLER,
    ),
    "named, and of the minor version before": (
        {"schedulerVersion": "1.36.3"},
        "1.37.1",
        ALLOCATOR_CONTROLLER,
    ),
    "named, and old beside a new server": (
        {"schedulerVersion": "1.37.0"},
        "1.38.0",
        ALLOCATOR_CONTROLLER,
    ),
    "a name that is newer than the server": (NEW, "1.36.3", ALLOCATOR_CONTROLLER),
    "a name that is newer than a server that drops shares": (NEW, "1.34.4", ALLOCATOR_CONTROLLER),
    "unknown beside 1.36": ({}, "1.36.3", ALLOCATOR_CONTROLLER),
    "unknown beside 1.37.0": ({}, "1.37.0", ALLOCATOR_CONTROLLER),
    "unknown beside 1.37.1": ({}, "1.37.1", ALLOCATOR_CONTROLLER),
    "unknown beside 1.38": ({}, "1.38.0", ALLOCATOR_SCHEDULER),
    "unknown beside a beta of 1.38": ({}, "1.38.0-beta.0", ALLOCATOR_SCHEDULER),
    "named, and a beta": (
        {"schedulerVersion": "v1.38.0-beta.0"},
        "1.38.0-beta.0",
        ALLOCATOR_SCHEDULER,
    ),
    "unknown beside 1.38, with roles of one's own": (
        {"rbac": {"create": False}},
        "1.38.0",
        ALLOCATOR_CONTROLLER,
    ),
    "a server that plays an older version": (
        NEW | {"kubernetesVersion": "1.36.0"},
        "1.37.1",
        ALLOCATOR_CONTROLLER,
    ),
    "without names of nodes": (
        NEW | {"nomination": {"enabled": False}},
        "1.37.1",
        ALLOCATOR_SCHEDULER,
    ),
    "with hidden slices": (NEW | {"sliceForm": "hidden"}, "1.37.1", ALLOCATOR_CONTROLLER),
    "without claims": (NEW | {"mode": "device-plugin"}, "1.37.1", ALLOCATOR_CONTROLLER),
    "without DRA": (NEW, "1.30.14", ALLOCATOR_CONTROLLER),
    "chosen by hand": (NEW | {"allocator": "controller"}, "1.37.1", ALLOCATOR_CONTROLLER),
}


@pytest.mark.parametrize(("values", "server", "chosen"), CHOICES.values(), ids=CHOICES)
def test_what_is_chosen(helm: Helm, values: Values, server: str, chosen: str) -> None:
    """The programs are given what was chosen, and `kubectl gcu` reads it there."""
    rendered = helm.render(values, f"--kube-version={server}")
    for pod in (rendered.agent, rendered.controller):
        assert environment(pod["containers"][0])["GCU_ALLOCATOR"] == chosen


@pytest.mark.parametrize("server", ["1.36.3", "1.37.1"])
def test_it_is_installed_as_if_it_had_been_named(helm: Helm, server: str) -> None:
    chosen = "scheduler" if server == "1.37.1" else "controller"
    flags = f"--kube-version={server}"
    by_name = helm.render(NEW | {"allocator": chosen}, flags)
    assert without_certificates(helm.render(NEW, flags)) == without_certificates(by_name)


def without_certificates(rendered: Rendered) -> list[Object]:
    """Its objects; helm makes other keys each time."""
    found = [each for each in rendered if each["kind"] != "Secret"]
    for each in found:
        if each["kind"] == "MutatingWebhookConfiguration":
            for webhook in each["webhooks"]:
                del webhook["clientConfig"]["caBundle"]
    return found


@pytest.mark.parametrize(
    ("values", "annotated"), [(NEW, "1.37.1"), (NEW | {"sliceForm": "hidden"}, None)]
)
def test_kube_schedulers_version_is_kept_while_it_allocates(
    helm: Helm, values: Values, annotated: str | None
) -> None:
    pod = helm.render(values).one("Deployment")["spec"]["template"]["metadata"]
    assert pod.get("annotations", {}).get(ANNOTATION_SCHEDULER_VERSION) == annotated


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (NEW, "allocator is auto, which is scheduler here. Each helm upgrade chooses anew"),
        (
            {"schedulerVersion": "1.36.3"},
            "which is controller here (kube-scheduler is 1.36.3, older than 1.37.1). ",
        ),
        ({}, "(helm cannot read the version of kube-scheduler: set schedulerVersion). "),
        (NEW | {"sliceForm": "hidden"}, "which is controller here (sliceForm is hidden). "),
        (
            NEW | {"kubernetesVersion": "1.36.0"},
            "which is controller here (the API server is Kubernetes 1.36.0). ",
        ),
    ],
    ids=["kube-scheduler", "an old one", "an unknown one", "hidden slices", "an old server"],
)
def test_the_notes_say_what_was_chosen_and_why(helm: Helm, values: Values, said: str) -> None:
    assert said in helm.notes(values)


@pytest.mark.parametrize(("values", "shown"), [({}, True), (NEW, False)], ids=["unknown", "known"])
def test_the_notes_show_how_to_name_the_version(helm: Helm, values: Values, shown: bool) -> None:
    """First what lists the refusals, then the upgrade."""
    _, doctor, rest = helm.notes(values).partition("kubectl gcu doctor --allocator scheduler\n")
    assert doctor
    assert ("--reuse-values --set schedulerVersion=VERSION\n" in rest) is shown


def test_the_notes_say_nothing_of_a_choice_that_helm_did_not_make(helm: Helm) -> None:
    notes = helm.notes(NEW | {"allocator": "scheduler"})
    assert "allocator is" not in notes
    assert "another program allocates" not in notes


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            NEW | {"schedulingGate": {"policy": True}, "nomination": {"enabled": False}},
            "allocator is auto, which is scheduler here, nomination.enabled is false",
        ),
        (
            {"legacyResources": {"servedByScheduler": True}},
            "and allocator is auto, which is controller here (helm cannot read",
        ),
        (
            {"allocator": "controller", "legacyResources": {"servedByScheduler": True}},
            "and allocator is controller: kube-scheduler would make claims",
        ),
    ],
    ids=["the gate", "limits that nobody would serve", "the same by name"],
)
def test_a_refusal_says_what_was_chosen(helm: Helm, values: Values, message: str) -> None:
    assert message in helm.refusal(values)


def test_what_is_refused_to_kube_scheduler_makes_auto_choose_the_controller(helm: Helm) -> None:
    values = NEW | {"schedulerVersion": "1.36.1", "schedulingGate": {"policy": True}}
    assert helm.render(values | {"nomination": {"enabled": False}}).controller
