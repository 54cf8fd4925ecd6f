"""The chart as manifests that `kubectl apply` takes, one file for each way to serve GCUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    after_delete: tuple[str, ...] = ()


_CLAIMS: Final = (
    "kubectl get resourceclaims -A -o custom-columns='NAMESPACE:.metadata.namespace,"
    "CLAIM:.metadata.name,DRIVERS:.status.allocation.devices.results[*].driver'"
)
_CARDS: Final = (
    "kubectl get nodes -o custom-columns="
    "'NODE:.metadata.name,CARDS:.metadata.annotations.gcu\\.enflame\\.com/cards'"
)

_ANNOTATIONS: Final = (
    "gcu.enflame.com/cards- enflame.com/gcu-shared-capacity- enflame.com/gcu-drs-capacity-"
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
        ("kubectl delete resourceslices --field-selector=spec.driver=gcu.enflame.com",),
    ),
    "device-plugin": Mode(
        ("--kube-version=1.30.0", "--set=mode=device-plugin"),
        "Kubernetes 1.30 and newer without DRA: pods get GCUs by limits",
        _CARDS,
        (
            f"kubectl annotate nodes --all {_ANNOTATIONS}",
            "kubectl label nodes --all enflame.com/gcushare-",
        ),
    ),
}
"""By the name of their folder."""


PUBLISHED: Final = (
    "--set=webhook.serverSecret=gcu-webhook",
    r"--set=webhook.annotations.cert-manager\.io/inject-ca-from=gcu-dra-driver/gcu-webhook",
    "--set=extender.serverSecret=gcu-extender",
    "--set=extender.clientSecret=gcu-extender-client",
)
"""Flags of a file without private keys: the Secrets are those of docs/user/gitops.md and
docs/user/scheduler-extender.md, which cert-manager makes."""


def render(helm: Path, mode: Mode, values: Path | None = None, *, flags: Sequence[str] = ()) -> str:
    """The text of one ``install.yaml``; `flags` are more flags of helm. Raises CommandError where
    the chart refuses `values`."""
    chosen = [] if values is None else [f"--values={values}"]
    scope = (RELEASE, CHART, f"--namespace={NAMESPACE}")
    rendered = run_helm(helm, "template", *scope, *mode.flags, *chosen, *flags)
    kept = list(_without_hooks(rendered))
    objects = [yaml.load(each, yaml.CSafeLoader) for each in kept]
    return "---\n".join([_header(mode, _about_certificates(objects)), _namespace(), *kept])


def has_private_keys(text: str) -> bool:
    """Whether the file has private keys, so that nobody else may have it."""
    return any(each["kind"] == "Secret" for each in yaml.load_all(text, yaml.CSafeLoader) if each)


def secrets_named(objects: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of the Secrets that the pods of these objects mount."""
    return {
        volume["secret"]["secretName"]
        for each in objects
        if each["kind"] in ("DaemonSet", "Deployment")
        for volume in each["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    }


def write_all(helm: Path, out: Path, values: Path | None = None) -> Iterator[Path]:
    """Write ``OUT/MODE/install.yaml`` for each mode; yields what was written. Raises CommandError,
    OSError."""
    for name, mode in MODES.items():
        text = render(helm, mode, values)
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "install.yaml"
        file.touch()
        file.chmod(0o600 if has_private_keys(text) else 0o644)
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


def _about_certificates(objects: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    if any(each["kind"] == "Secret" for each in objects):
        return tuple(_KEYS.splitlines())
    if names := sorted(secrets_named(objects)):
        return (
            f"Certificates: the controller starts once there are the Secrets {', '.join(names)}:",
            "docs/user/without-helm.md#certificates.",
        )
    return ()


def _header(mode: Mode, certificates: Sequence[str]) -> str:
    lines = [
        f"gcu-dra-driver {VERSION}, from its Helm chart.",
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
        lines += [
            "Afterwards, for what agents wrote:",
            *(f"  {each}" for each in mode.after_delete),
        ]
    if certificates:
        lines += ["", *certificates]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)
