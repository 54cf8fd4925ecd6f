"""The chart without Helm: `make manifests`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chart.helm import CHECKOUT, Helm, Values, objects_of
from tests.control_plane.issued import cert_manager_manifests
from tests.release.__main__ import main
from tests.release.manifests import (
    MODES,
    NAMESPACE,
    PUBLISHED,
    has_private_keys,
    render,
    secrets_named,
)

WITH_KEYS = {"claims-before-1.36", "device-plugin"}
OWN: Values = {
    "image": {"repository": "registry.example.com/gcu"},
    "webhook": {"serverSecret": "own", "caBundle": "Y2E="},
    "extender": {"serverSecret": "own", "clientSecret": "own-client"},
}


@pytest.fixture(scope="module")
def written(helm: Helm) -> dict[str, str]:
    """The text of each file, by its mode."""
    return {name: render(helm.program, mode) for name, mode in MODES.items()}


@pytest.mark.parametrize("name", MODES)
def test_it_is_all_of_the_release_and_nothing_that_would_never_run(
    helm: Helm, written: dict[str, str], name: str
) -> None:
    found = objects_of(written[name])
    rendered = helm.render(None, *MODES[name].flags)
    hooks = [
        each for each in rendered if "helm.sh/hook" in (each["metadata"].get("annotations") or {})
    ]
    identities = {(each["kind"], each["metadata"]["name"]) for each in found}
    assert len(identities) == len(found) == len(list(rendered)) - len(hooks) + 1
    assert hooks
    assert not {(each["kind"], each["metadata"]["name"]) for each in hooks} & identities
    assert "helm.sh/hook" not in written[name]


@pytest.mark.parametrize("name", MODES)
def test_the_namespace_comes_first_and_has_all_that_is_namespaced(
    written: dict[str, str], name: str
) -> None:
    first, *others = objects_of(written[name])
    assert (first["kind"], first["metadata"]["name"]) == ("Namespace", NAMESPACE)
    assert {each["metadata"].get("namespace", NAMESPACE) for each in others} <= {
        NAMESPACE,
        "kube-system",
    }
    for each in others:
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "kubectl"


@pytest.mark.parametrize(
    ("name", "kind", "env"),
    [
        ("claims", "MutatingAdmissionPolicy", ("GCU_MODE", "dra")),
        ("claims-before-1.36", "MutatingWebhookConfiguration", ("GCU_SLICE_FORM", "hidden")),
        ("device-plugin", "Service", ("GCU_MODE", "device-plugin")),
    ],
)
def test_each_is_for_its_clusters(
    written: dict[str, str], name: str, kind: str, env: tuple[str, str]
) -> None:
    found = objects_of(written[name])
    assert kind in {each["kind"] for each in found}
    [deployment] = [each for each in found if each["kind"] == "Deployment"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert {"name": env[0], "value": env[1]} in container["env"]


@pytest.mark.parametrize("name", MODES)
def test_keys_are_where_the_head_says_so(written: dict[str, str], name: str) -> None:
    head = written[name].partition("---\n")[0]
    assert has_private_keys(written[name]) is (name in WITH_KEYS)
    assert ("Certificates: the Secrets have private keys" in head) is (name in WITH_KEYS)
    assert "kubectl delete -f install.yaml" in head
    assert ("kubectl delete resourceslices" in head) is (name == "claims-before-1.36")


def test_with_certificates_of_ones_own_there_are_none(helm: Helm, tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps(OWN))
    for mode in MODES.values():
        text = render(helm.program, mode, values)
        assert not has_private_keys(text)
        assert "image: registry.example.com/gcu:" in text


@pytest.mark.parametrize("name", MODES)
def test_what_is_published_names_secrets_that_the_pages_have_made(helm: Helm, name: str) -> None:
    text = render(helm.program, MODES[name], flags=PUBLISHED)
    named = secrets_named(objects_of(text))
    assert not has_private_keys(text)
    assert bool(named) is (name in WITH_KEYS)
    made = {
        each["spec"]["secretName"]
        for page in ("gitops.md", "scheduler-extender.md")
        for each in cert_manager_manifests(CHECKOUT / "docs/user" / page)
        if each["kind"] == "Certificate"
    }
    # That of the extender's client is kube-scheduler's: no pod of the chart mounts it.
    chosen = {flag.rpartition("=")[2] for flag in PUBLISHED if "Secret=" in flag}
    assert named <= chosen <= made
    head = text.partition("---\n")[0]
    assert all(each in head for each in named)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", f"--out={tmp_path / 'out'}"]) == 0
    files = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [each.relative_to(tmp_path / "out") for each in files] == [
        Path(name, "install.yaml") for name in MODES
    ]
    for file in files:
        secret = file.parent.name in WITH_KEYS
        assert file.stat().st_mode & 0o777 == (0o600 if secret else 0o644)


def test_values_that_the_chart_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = tmp_path / "values.json"
    values.write_text('{"alocator": "x"}')
    assert main(["manifests", f"--out={tmp_path}", f"--values={values}"]) == 1
    assert "'alocator' not allowed" in capsys.readouterr().err
