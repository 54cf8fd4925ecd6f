"""The chart as manifests that `kubectl apply` takes, one file for each way to serve GCUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from dra_driver.version import VERSION
from tests.release.helm import CHART, run_helm

NAMESPACE: Final = "gcu-dra-driver"
RELEASE: Final = "gcu-dra-driver"

_HOOK: Final = "helm.sh/hook"
_DRA: Final = "--api-versions=resource.k8s.io/v1"
_SEPARATOR: Final = re.compile(r"^---\s*$", re.MULTILINE)
_MANAGED_BY: Final = ("app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")


@dataclass(frozen=True, slots=True)
class Mode:
    """One file: how it is rendered, for which clusters it is, and what to do before and after
    `kubectl delete`, in place of the chart's hooks."""

    flags: tuple[str, ...]
    clusters: str
    before_delete: str
    after_delete: str = ""


_CLAIMS: Final = (
    "kubectl get resourceclaims -A -o custom-columns='NAMESPACE:.metadata.namespace,"
    "CLAIM:.metadata.name,DRIVERS:.status.allocation.devices.results[*].driver'"
)
_CARDS: Final = (
    "kubectl get nodes -o custom-columns="
    "'NODE:.metadata.name,CARDS:.metadata.annotations.gcu\\.enflame\\.com/cards'"
)

MODES: Final[Mapping[str, Mode]] = {
    "claims": Mode(
        ("--kube-version=1.36.0", _DRA, "--set=mode=dra"),
        "Kubernetes 1.36 and newer: pods get GCUs by ResourceClaims",
        _CLAIMS,
    ),
    "claims-before-1.36": Mode(
        ("--kube-version=1.34.0", _DRA, "--set=mode=dra"),
        "Kubernetes 1.34 and 1.35: pods get GCUs by ResourceClaims, with a webhook",
        _CLAIMS,
        "kubectl delete resourceslices --field-selector=spec.driver=gcu.enflame.com",
    ),
    "device-plugin": Mode(
        ("--kube-version=1.30.0", "--set=mode=device-plugin"),
        "Kubernetes 1.30 and newer without DRA: pods get GCUs by limits",
        _CARDS,
    ),
}
"""By the name of their folder."""


def render(helm: Path, mode: Mode, values: Path | None = None) -> str:
    """The text of one ``install.yaml``. Raises CommandError where the chart refuses `values`."""
    chosen = [] if values is None else [f"--values={values}"]
    scope = (RELEASE, CHART, f"--namespace={NAMESPACE}")
    rendered = run_helm(helm, "template", *scope, *mode.flags, *chosen)
    kept = list(_without_hooks(rendered))
    has_keys = any(yaml.load(each, yaml.CSafeLoader)["kind"] == "Secret" for each in kept)
    return "---\n".join([_header(mode, has_keys=has_keys), _namespace(), *kept])


def has_private_keys(text: str) -> bool:
    """Whether the file has private keys, so that nobody else may have it."""
    return any(each["kind"] == "Secret" for each in yaml.load_all(text, yaml.CSafeLoader) if each)


def write_all(
    helm: Path, out: Path, values: Path | None = None, *, publish: bool = False
) -> Iterator[Path]:
    """Write ``OUT/MODE/install.yaml`` for each mode; yields what was written. With `publish`, those
    with private keys are left out. Raises CommandError, OSError."""
    for name, mode in MODES.items():
        text = render(helm, mode, values)
        is_secret = has_private_keys(text)
        if publish and is_secret:
            continue
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "install.yaml"
        file.touch()
        file.chmod(0o600 if is_secret else 0o644)
        file.write_text(text, encoding="utf-8")
        yield file


def _without_hooks(rendered: str) -> Iterator[str]:
    """The documents that are no hooks, as text: comments are for those who read manifests."""
    for document in _SEPARATOR.split(rendered):
        found: Any = yaml.load(document, yaml.CSafeLoader)
        if found is None:
            continue
        if _HOOK not in (found["metadata"].get("annotations") or {}):
            yield document.strip("\n").replace(*_MANAGED_BY) + "\n"


def _namespace() -> str:
    return (
        "# The agent needs folders of the node, which other Pod Security levels refuse.\n"
        "apiVersion: v1\n"
        "kind: Namespace\n"
        "metadata:\n"
        f"  name: {NAMESPACE}\n"
        "  labels:\n"
        "    pod-security.kubernetes.io/enforce: privileged\n"
    )


_KEYS: Final = """\
Certificates: the Secrets have private keys, made when this file was rendered. Keep it as you keep a
Secret, give it to nobody, and use it for one cluster. They are valid for a year: render anew, and
apply. The programs read the new files by themselves; a kube-scheduler that calls the extender is
restarted. With certificates of your own (webhook.serverSecret, webhook.caBundle,
extender.serverSecret, extender.clientSecret in VALUES) the file has no keys."""


def _header(mode: Mode, *, has_keys: bool) -> str:
    lines = [
        f"gcu-dra-driver {VERSION}, from its Helm chart by `make manifests`.",
        f"For {mode.clusters}.",
        "",
        "Install or upgrade: kubectl apply --server-side -f install.yaml",
        "What the chart refuses (templates/preflight.yaml) was checked for that version of",
        "Kubernetes when this file was rendered.",
        "",
        "Before you remove it see that nothing is in use; Helm would refuse, kubectl does not.",
        "Without the agent pods with GCUs cannot end, or leave DRS instances behind:",
        f"  {mode.before_delete}",
        "Remove: kubectl delete -f install.yaml",
    ]
    if mode.after_delete:
        lines += ["Afterwards, as no kubelet deletes them:", f"  {mode.after_delete}"]
    if has_keys:
        lines += ["", *_KEYS.splitlines()]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)
