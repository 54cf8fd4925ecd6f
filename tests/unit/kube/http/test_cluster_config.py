"""In a pod, and by a kubeconfig."""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

from dra_driver.kube.client import connect
from dra_driver.kube.http.cluster_config import in_pod, token_file
from dra_driver.kube.http.kubeconfig import by_kubeconfig, current_namespace
from dra_driver.model.effects import Effects
from dra_driver.model.errors import InvalidValue
from tests.cluster.pki import Authority, Identity

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A pod's folder with its service account."""
    Authority(tmp_path)
    (tmp_path / "token").write_text("one\n")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "server"),
    [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")],
)
def test_a_pod_reaches_the_server_by_its_service_account(
    account: Path, host: str, server: str
) -> None:
    found = in_pod(POD | {"KUBERNETES_SERVICE_HOST": host}, account)
    assert (found.server, found.token(), found.proxy) == (server, "one", "")
    assert found.tls.verify_mode is ssl.CERT_REQUIRED
    assert found.tls.check_hostname


@pytest.mark.parametrize("missing", ["ca.crt", "token"])
def test_a_pod_without_a_service_account_is_told(account: Path, missing: str) -> None:
    (account / missing).unlink()
    with pytest.raises(InvalidValue, match=r"the pod's service account.*; .* name a kubeconfig"):
        in_pod(POD, account)


def test_an_empty_token_is_told(account: Path) -> None:
    (account / "token").write_text("\n")
    with pytest.raises(InvalidValue, match="token is empty"):
        in_pod(POD, account)


def test_what_is_no_pod_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InvalidValue, match=r"_HOST and _PORT are not set; .* name a kubeconfig"):
        connect(None, effects=Effects(), user_agent="test/1")


def test_a_token_is_read_again_after_a_minute(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "token"
    path.write_text("one")
    token = token_file(path, lambda: now)
    assert token() == "one"
    path.write_text("two")
    now = 59.0
    assert token() == "one"
    now = 60.0
    assert token() == "two"
    path.unlink()
    now = 120.0
    with pytest.raises(FileNotFoundError):
        token()


TOKEN = {"token": "secret"}


def kubeconfig(folder: Path, user: Mapping[str, object] = TOKEN, /, **cluster: object) -> Path:
    """Its context `x` is the current one, and `far` another, with a namespace."""
    server, far = "https://10.0.0.1:6443", "https://10.9.9.9:6443"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": server, **cluster}},
            {"name": "far", "cluster": {"server": far}},
        ],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u"}},
            {"name": "far", "context": {"cluster": "far", "user": "u", "namespace": "team"}},
        ],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


def test_a_kubeconfig_with_a_token(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    cluster = {"certificate-authority": str(account / "ca.crt"), "tls-server-name": "kubernetes"}
    path = kubeconfig(account, **cluster)
    found = by_kubeconfig(path)
    assert (found.server, found.token()) == ("https://10.0.0.1:6443", "secret")
    assert (found.server_name, found.proxy) == ("kubernetes", "")
    assert found.tls.verify_mode is ssl.CERT_REQUIRED
    assert current_namespace(path) == "default"


def test_a_kubeconfig_that_trusts_anybody_and_goes_through_a_proxy(account: Path) -> None:
    cluster = {"insecure-skip-tls-verify": True, "proxy-url": "http://proxy:3128"}
    found = by_kubeconfig(kubeconfig(account, {}, **cluster))
    assert (found.token(), found.proxy) == ("", "http://proxy:3128")
    assert found.tls.verify_mode is ssl.CERT_NONE


def test_a_plugin_that_gives_a_token(account: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from the plugin"},
    }
    plugin = account / "plugin"
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o755)
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }
    found = by_kubeconfig(kubeconfig(account, user))
    assert found.token() == "from the plugin"


def test_a_kubeconfig_with_a_certificate_of_ours(account: Path) -> None:
    authority = Authority(account)
    ours = authority.client("ours", Identity("somebody"))
    user = {"client-certificate": str(ours.certificate), "client-key": str(ours.key)}
    assert by_kubeconfig(kubeconfig(account, user)).token() == ""
    embedded = {
        f"{key}-data": base64.b64encode(Path(path).read_bytes()).decode()
        for key, path in user.items()
    }
    trusted = base64.b64encode(authority.certificate.read_bytes()).decode()
    cluster = {"certificate-authority-data": trusted}
    found = by_kubeconfig(kubeconfig(account, embedded, **cluster))
    assert found.tls.cert_store_stats()["x509_ca"] == 1
    other = authority.client("other", Identity("somebody"))
    with pytest.raises(InvalidValue, match="KEY_VALUES_MISMATCH"):
        by_kubeconfig(kubeconfig(account, {**user, "client-key": str(other.key)}))


@pytest.mark.parametrize(
    "text",
    ["a: [b", "just text", "contexts: 3", "current-context: x\ncontexts: [{}]", "{}", None],
    ids=["no YAML", "no object", "no list", "no context", "nothing", "no file"],
)
def test_a_kubeconfig_that_cannot_be_used_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidValue, match="no API server can be reached through") as refused:
        by_kubeconfig(path)
    assert "name a kubeconfig" in refused.value.remedy
    with pytest.raises(InvalidValue, match="cannot be read"):
        current_namespace(path)


def test_several_kubeconfigs_are_merged_as_kubectl_does(account: Path, tmp_path: Path) -> None:
    """A file that does not exist counts as empty; the first current context is taken."""
    first = tmp_path / "first"
    first.write_text("current-context: far")
    paths = Path(os.pathsep.join(map(str, ("", tmp_path / "nowhere", first, kubeconfig(account)))))
    assert by_kubeconfig(paths).server == "https://10.9.9.9:6443"
    assert current_namespace(paths) == "team"


def test_another_context_than_the_current_one(account: Path) -> None:
    path = kubeconfig(account)
    assert by_kubeconfig(path, "far").server == "https://10.9.9.9:6443"
    assert current_namespace(path, "far") == "team"
    with pytest.raises(InvalidValue, match="nowhere"):
        by_kubeconfig(path, "nowhere")


def test_a_pod_has_no_context() -> None:
    with pytest.raises(InvalidValue, match="the context far is of a kubeconfig"):
        connect(None, effects=Effects(), user_agent="test/1", context="far")
