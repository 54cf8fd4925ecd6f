"""The policies for pods with the vendor's limits; what they do is tried on a real API server."""

from __future__ import annotations

import pytest

from dra_driver.model.names import (
    CLASS_ADMIN,
    CLASS_LIMIT_PREFIX,
    CLASS_SHARED,
    CLASS_WHOLE,
    DEVICE_CLASSES,
    LABEL_MADE_FOR_LIMITS,
)
from tests.chart.helm import Helm, Values, environment

NAME = "legacy-resources.gcu.enflame.com"
ONE_KIND = "one-kind.gcu.enflame.com"


def policies(helm: Helm, values: Values | None = None, *flags: str) -> list[str]:
    """The kinds of what is rendered under that name."""
    rendered = helm.render(values, *flags)
    return sorted(each["kind"] for each in rendered if each["metadata"]["name"] == NAME)


def test_both_are_there_with_their_bindings(helm: Helm) -> None:
    assert policies(helm) == [
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]


WITHOUT: dict[str, tuple[Values, tuple[str, ...]]] = {
    "switched off": ({"legacyResources": {"enabled": False}}, ()),
    "device plugins": ({"mode": "device-plugin"}, ()),
    "no DRA": ({}, ("--kube-version=1.30.14",)),
}


@pytest.mark.parametrize(("values", "flags"), WITHOUT.values(), ids=WITHOUT)
def test_where_limits_stay_limits(helm: Helm, values: Values, flags: tuple[str, ...]) -> None:
    assert policies(helm, values, *flags) == []


def test_limits_that_kube_scheduler_serves_are_not_translated(helm: Helm) -> None:
    values: Values = {"allocator": "scheduler", "schedulerVersion": "1.37.1"}
    own = helm.render(values)
    served = helm.render(values | {"legacyResources": {"servedByScheduler": True}})
    assert {each["spec"].get("extendedResourceName") for each in own.of("DeviceClass")} == {None}
    names = {
        each["metadata"]["name"]: each["spec"].get("extendedResourceName")
        for each in served.of("DeviceClass")
    }
    assert names == dict.fromkeys((*DEVICE_CLASSES, CLASS_ADMIN)) | {CLASS_WHOLE: "enflame.com/gcu"}
    policies = [str(each.one("ValidatingAdmissionPolicy", NAME)) for each in (own, served)]
    for limit, translated in {
        "enflame.com/gcu": [True, False],
        "enflame.com/shared-gcu": [True, True],
        "enflame.com/drs-gcu": [True, True],
        CLASS_LIMIT_PREFIX + CLASS_SHARED: [True, False],
    }.items():
        assert [f'"{limit}"' in each for each in policies] == translated, limit


COUNTED: dict[str, tuple[Values, str]] = {
    "limits are served": ({}, "true"),
    "limits are left to others": ({"legacyResources": {"enabled": False}}, "false"),
    "device plugins": (
        {"mode": "device-plugin", "legacyResources": {"enabled": False}},
        "true",
    ),
}


@pytest.mark.parametrize(("values", "counted"), COUNTED.values(), ids=COUNTED)
def test_cards_are_counted_where_limits_are_served(
    helm: Helm, values: Values, counted: str
) -> None:
    [agent] = helm.render(values).agent["containers"]
    assert environment(agent)["GCU_COUNT_CARDS"] == counted


def test_namespaces_are_chosen_by_their_labels(helm: Helm) -> None:
    chosen = helm.render({"legacyResources": {"namespaceLabels": {"gcu": "claims"}}})
    for kind in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"):
        constraints = chosen.one(kind, NAME)["spec"]["matchConstraints"]
        assert constraints["namespaceSelector"] == {"matchLabels": {"gcu": "claims"}}
        assert "namespaceSelector" not in helm.render().one(kind, NAME)["spec"]["matchConstraints"]


def test_the_schedulers_are_those_of_the_values(helm: Helm) -> None:
    values: Values = {
        "extender": {"schedulerNames": ["a", "b"]},
        "legacyResources": {"schedulerName": "c"},
    }
    spec = helm.render(values).one("MutatingAdmissionPolicy", NAME)["spec"]
    [_, condition], [mutation] = spec["matchConditions"], spec["mutations"]
    assert 'in ["a","b"]' in condition["expression"]
    assert 'value: "c"' in mutation["jsonPatch"]["expression"]


@pytest.mark.parametrize("drop", [True, False])
def test_the_vendors_label_is_waited_for_where_people_set_it(helm: Helm, drop: bool) -> None:
    spec = helm.render({"legacyResources": {"dropNodeSelector": drop}}).one(
        "MutatingAdmissionPolicy", NAME
    )["spec"]
    assert ("/spec/nodeSelector/" in spec["mutations"][0]["jsonPatch"]["expression"]) is drop


def test_the_policy_for_templates_knows_the_label(helm: Helm) -> None:
    policy = helm.render().one("ValidatingAdmissionPolicy", "controller-templates")
    expressions = [each["expression"] for each in policy["spec"]["validations"]]
    assert any(f'"{LABEL_MADE_FOR_LIMITS}"' in each for each in expressions)


def test_the_controller_is_told_how_long_templates_stay(helm: Helm) -> None:
    rendered = helm.render({"legacyResources": {"templateRetention": 5}})
    [container] = rendered.controller["containers"]
    assert environment(container)["GCU_TEMPLATE_RETENTION"] == "5"


@pytest.mark.parametrize(
    ("values", "version", "names"),
    [
        ({}, "1.36.3", [NAME]),
        ({}, "1.30.14", [ONE_KIND]),
        ({"mode": "device-plugin"}, "1.36.3", [ONE_KIND]),
        ({"legacyResources": {"enabled": False}}, "1.36.3", []),
        ({}, "1.29.9", []),
    ],
    ids=["DRA", "no DRA", "device plugins", "limits are left to others", "no policies"],
)
def test_one_policy_refuses_two_kinds(
    helm: Helm, values: Values, version: str, names: list[str]
) -> None:
    rendered = helm.render(values, f"--kube-version={version}")
    refusing = [
        each["metadata"]["name"]
        for each in rendered.of("ValidatingAdmissionPolicy")
        if any("one kind of GCU" in one.get("message", "") for one in each["spec"]["validations"])
    ]
    assert refusing == names
