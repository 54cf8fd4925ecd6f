"""The chart and the programs' settings say the same."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller import app
from controller.filter.predictions import PLUGINS
from controller.settings import ControllerSettings
from dra_driver.agent import agent
from dra_driver.agent.settings import AgentSettings
from dra_driver.config.card_rules import CardConfig, load_card_rules
from dra_driver.config.loader import Settings, load, variable
from dra_driver.model.claims.claim import Object
from dra_driver.model.mode import Mode
from dra_driver.model.names import ANNOTATION_SCHEDULER_VERSION
from dra_driver.model.pci import PciAddress
from dra_driver.telemetry.program import LINGER
from dra_driver.version import VERSION
from tests.chart.helm import CHART, CHECKOUT, Helm, Values, environment, fields

SCHEDULER: Values = {"allocator": "scheduler", "schedulerVersion": "1.37.1"}
PROGRAMS: dict[str, type[Settings]] = {"agent": AgentSettings, "controller": ControllerSettings}
# In a pod there is no kubeconfig; the rest are as their defaults on purpose.
LEFT_TO_THE_PROGRAM = {
    "agent": {"kubeconfig", "state_dir", "lease_name"},
    "controller": {
        "kubeconfig",
        "lease_name",
        "legacy_resources_delay",
        # Of the scheduler extender, which serves where there is no DRA.
        "extender_host",
        "extender_port",
        "extender_certificate",
        "extender_key",
        "extender_client_authority",
        "extender_client_subject",
        # Of the webhook, which serves before Kubernetes 1.36.
        "webhook_certificate",
        "webhook_key",
        "webhook_port",
        "webhook_drain",
        "webhook_device_classes",
        "webhook_scheduler_names",
        "webhook_scheduler_name",
        "webhook_drop_node_selector",
    },
}
# What the pods differ in from a program started by hand.
OF_THE_POD = {"node_name": "node-1", "pod_name": "pod-1", "pod_uid": "1-2-3"}
DIFFERENT = {
    "efsmi_path",
    "efsmi_library",
    "card_rules",
    "lease_namespace",
    "count_cards",
    "legacy_resources_config",
    "agent_labels",
    *OF_THE_POD,
}


def container_of(helm: Helm, program: str, values: Values | None = None) -> Object:
    rendered = helm.render(values)
    pod = rendered.agent if program == "agent" else rendered.controller
    [container] = pod["containers"]
    found: Object = container
    return found


def settings_of(helm: Helm, program: str, values: Values | None = None) -> Settings:
    """What the program would read in its pod."""
    container = container_of(helm, program, values)
    environ = environment(container)
    environ |= {name: f"field-{path}".lower() for name, path in fields(container).items()}
    return load(PROGRAMS[program], [], environ, prog=program, description="")


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_setting_is_set_or_left_on_purpose(helm: Helm, program: str) -> None:
    container = container_of(helm, program)
    given = {name for name in environment(container) | fields(container) if name.startswith("GCU_")}
    known = {variable(name): name for name in PROGRAMS[program].model_fields}
    assert given <= set(known)
    assert {known[name] for name in given} == set(known.values()) - LEFT_TO_THE_PROGRAM[program]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_values_are_the_programs_defaults(helm: Helm, program: str) -> None:
    found = settings_of(helm, program)
    model = PROGRAMS[program]
    assert {name: getattr(found, name) for name in model.model_fields if name not in DIFFERENT} == {
        name: field.default for name, field in model.model_fields.items() if name not in DIFFERENT
    }


@pytest.mark.parametrize(
    ("program", "values", "setting", "value"),
    [
        ("agent", {"logLevel": "debug"}, "log_level", "debug"),
        ("agent", {"logFormat": "json"}, "log_format", "json"),
        ("agent", {"injection": "runtime"}, "injection", "runtime"),
        ("agent", SCHEDULER, "allocator", "scheduler"),
        ("controller", SCHEDULER, "allocator", "scheduler"),
        ("agent", {"efsmi": {"timeout": 7}}, "efsmi_timeout", 7.0),
        ("agent", {"agent": {"presenceInterval": 0.5}}, "presence_interval", 0.5),
        ("agent", {"agent": {"inventoryInterval": 3600}}, "inventory_interval", 3600.0),
        ("agent", {"agent": {"releaseInterval": 2.5}}, "release_interval", 2.5),
        ("agent", {"agent": {"registrationTimeout": 1000000}}, "registration_timeout", 1e6),
        ("agent", {"agent": {"errorLimit": 1000000}}, "error_limit", 1000000),
        ("agent", {"agent": {"evictOn": ["lost", "rma"]}}, "evict_on", "lost,rma"),
        (
            "controller",
            {"controller": {"ignoredClaimFields": ["score", "derivedAttributes"]}},
            "ignored_claim_fields",
            "score,derivedAttributes",
        ),
        (
            "controller",
            {"controller": {"unconsideredPlugins": [*PLUGINS]}},
            "unconsidered_plugins",
            ",".join(PLUGINS),
        ),
        ("controller", {"logLevel": "debug"}, "log_level", "debug"),
        ("controller", {"logFormat": "json"}, "log_format", "json"),
        ("controller", {"controller": {"advanced": {"leaseDuration": 20}}}, "lease_duration", 20.0),
        (
            "controller",
            {"controller": {"advanced": {"leaseRenewDeadline": 9}}},
            "lease_renew_deadline",
            9.0,
        ),
        ("controller", {"controller": {"advanced": {"leaseRetry": 1}}}, "lease_retry", 1.0),
        ("controller", {"controller": {"advanced": {"quietTime": 0}}}, "quiet_time", 0.0),
        (
            "controller",
            {"controller": {"advanced": {"schedulingPatience": 9}}},
            "scheduling_patience",
            9.0,
        ),
        ("controller", {"controller": {"advanced": {"nodeRetry": 1.5}}}, "node_retry", 1.5),
        (
            "controller",
            {"controller": {"advanced": {"nodeRetryLongest": 60}}},
            "node_retry_longest",
            60.0,
        ),
    ],
    ids=lambda case: str(case) if isinstance(case, dict) else "",
)
def test_a_value_reaches_the_program(
    helm: Helm, program: str, values: Values, setting: str, value: Any
) -> None:
    assert getattr(settings_of(helm, program, values), setting) == value


def test_the_commands_are_the_projects_console_scripts(helm: Helm) -> None:
    scripts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]
    for program in PROGRAMS:
        [command] = container_of(helm, program)["command"]
        assert command in scripts


@pytest.mark.parametrize("program", PROGRAMS)
def test_probes_ask_the_port_that_the_program_listens_on(helm: Helm, program: str) -> None:
    container = container_of(helm, program)
    [port] = container["ports"]
    found = settings_of(helm, program)
    assert port["containerPort"] == getattr(found, "probe_port", None) or getattr(
        found, "http_port", None
    )
    asked = {
        probe: container[f"{probe}Probe"]["httpGet"]
        for probe in ("startup", "liveness", "readiness")
    }
    assert {each["port"] for each in asked.values()} == {port["name"]}
    assert [each["path"] for each in asked.values()] == ["/startz", "/healthz", "/readyz"]


def test_the_lease_is_the_one_that_the_controller_may_write(helm: Helm) -> None:
    rendered = helm.render()
    role = rendered.one("Role", "-controller")
    assert fields(rendered.controller["containers"][0])["GCU_LEASE_NAMESPACE"] == (
        "metadata.namespace"
    )
    leases = [rule for rule in role["rules"] if rule["resources"] == ["leases"]]
    named = [name for rule in leases for name in rule.get("resourceNames", ())]
    assert named == [ControllerSettings.model_fields["lease_name"].default]


def test_the_chart_has_the_projects_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == VERSION


def test_the_card_rules_arrive_as_they_were_written(helm: Helm, tmp_path: Path) -> None:
    rule = {"nodes": ["node-1"], "cards": ["0000:0d:00.0"], "sliceCount": 4, "modes": ["shared"]}
    rendered = helm.render({"cards": {"sliceCount": 8, "rules": [rule]}})
    file = tmp_path / "cards.json"
    file.write_text(rendered.one("ConfigMap", "cards")["data"][file.name])
    rules = load_card_rules(file)
    card, other = map(PciAddress.parse, ("0000:0d:00.0", "0000:0e:00.0"))
    assert rules.offer("node-1", {}, card) == CardConfig(4, frozenset({Mode.SHARED}))
    assert rules.offer("node-1", {}, other) == CardConfig(8, frozenset(Mode))
    path = Path(environment(rendered.agent["containers"][0])["GCU_CARD_RULES"])
    [mount] = [
        each
        for each in rendered.agent["containers"][0]["volumeMounts"]
        if each["mountPath"] == str(path.parent)
    ]
    [volume] = [each for each in rendered.agent["volumes"] if each["name"] == mount["name"]]
    assert (path.name, volume["configMap"]["name"]) == (
        file.name,
        rendered.one("ConfigMap", "cards")["metadata"]["name"],
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pod_has_the_time_that_its_program_takes_to_end(helm: Helm, program: str) -> None:
    rendered = helm.render()
    pod = rendered.agent if program == "agent" else rendered.controller
    stops = {"agent": agent._STOP_WITHIN, "controller": app._END}[program]
    assert pod["terminationGracePeriodSeconds"] > stops + LINGER


@pytest.mark.parametrize(("values", "version"), [({}, None), (SCHEDULER, "1.37.1")])
def test_the_controller_has_the_version_of_kube_scheduler(
    helm: Helm, values: Values, version: str | None
) -> None:
    [deployment] = helm.render(values).of("Deployment")
    metadata = deployment["spec"]["template"]["metadata"]
    assert (metadata.get("annotations") or {}).get(ANNOTATION_SCHEDULER_VERSION) == version
