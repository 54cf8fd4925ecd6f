"""docs/user/gitops.md: its values render the same each time, and its names are the chart's."""

from __future__ import annotations

import re
from typing import Final

import pytest
import yaml

from dra_driver.model.claims.claim import Object
from tests.chart.helm import CHECKOUT, Helm, Values, objects_of
from tests.release.helm import CHART

PAGE: Final = (CHECKOUT / "docs/user/gitops.md").read_text(encoding="utf-8")
NAMESPACE: Final = "gcu-dra-driver"
BELOW: Final = "--kube-version=1.35.4"
BLOCKS: Final[list[Object]] = [
    each
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for each in yaml.safe_load_all(block)
]


def of(kind: str) -> Object:
    [found] = [each for each in BLOCKS if each.get("kind") == kind]
    return found


def text(helm: Helm, values: str, *flags: str) -> str:
    scope = ("template", "gcu-dra-driver", CHART, f"--namespace={NAMESPACE}")
    return helm.run(*scope, f"--values={values}", *flags)


@pytest.fixture
def values(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    file.write_text(yaml.safe_dump(of("Application")["spec"]["source"]["helm"]["valuesObject"]))
    return str(file)


@pytest.mark.parametrize("version", [BELOW, "--kube-version=1.36.3"])
def test_argo_cd_compares_the_same_twice(helm: Helm, values: str, version: str) -> None:
    rendered = text(helm, values, version)
    assert rendered == text(helm, values, version)
    assert "kind: Secret\n" not in rendered


def test_without_them_it_does_not(helm: Helm) -> None:
    """Which the page warns of."""
    secrets = [helm.render_anew({}, BELOW).of("Secret") for _ in range(2)]
    assert secrets[0] != secrets[1]
    assert helm.render({}, "--kube-version=1.36.3").of("Secret") == []


def test_the_certificate_is_of_the_webhooks_service(helm: Helm, values: str) -> None:
    objects = objects_of(text(helm, values, BELOW))
    [service] = [each for each in objects if each["kind"] == "Service"]
    [webhooks] = [each for each in objects if each["kind"] == "MutatingWebhookConfiguration"]
    certificate = of("Certificate")
    names = service["metadata"]
    assert certificate["spec"]["dnsNames"] == [f"{names['name']}.{names['namespace']}.svc"]
    assert webhooks["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": f"{NAMESPACE}/{certificate['metadata']['name']}"
    }
    for each in webhooks["webhooks"]:
        assert "caBundle" not in each["clientConfig"]
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    mounted = [
        each["secret"]["secretName"]
        for each in deployment["spec"]["template"]["spec"]["volumes"]
        if "secret" in each
    ]
    assert mounted == [certificate["spec"]["secretName"]]


def test_the_values_stand_alone_as_in_the_application() -> None:
    alone: list[Values] = [each for each in BLOCKS if "webhook" in each]
    application = of("Application")["spec"]["source"]["helm"]["valuesObject"]
    assert alone == [{"webhook": application["webhook"]}]


def test_the_schema_takes_the_values_of_the_helm_release(helm: Helm) -> None:
    assert helm.render(of("HelmRelease")["spec"]["values"]).agent
