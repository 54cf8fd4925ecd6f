"""The configuration from a kubeconfig, by the official client, which takes 20 MiB of memory.

No other file imports ``kubernetes``, and this one is never imported in a pod.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from ssl import CERT_NONE
from typing import Final

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, list_kube_config_contexts, load_kube_config
from kubernetes.config.kube_config import KubeConfigMerger

from dra_driver.kube.http.cluster_config import ClusterConfig, trusting
from dra_driver.model.errors import InvalidValue

# Of the client's reading of a file that somebody wrote.
_UNUSABLE: Final = (
    ConfigException,
    OSError,
    yaml.YAMLError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def by_kubeconfig(path: Path, context: str = "") -> ClusterConfig:
    """By the `context`, or by the current one; raises InvalidValue if that cannot be used. `path`
    may be several files, with what separates them in ``KUBECONFIG``."""
    found = Configuration()
    try:
        load_kube_config(
            str(path),
            context=context or _current_context(path),
            client_configuration=found,
            persist_config=False,
        )
        return _cluster_config(found)
    except _UNUSABLE as error:
        raise InvalidValue(
            f"no API server can be reached through {path}: {error}",
            remedy="run in a pod with a service account, or name a kubeconfig",
        ) from error


def current_namespace(path: Path, context: str = "") -> str:
    """The namespace of the `context`, or of the current one; ``default`` where it has none. Raises
    InvalidValue if the file cannot be used."""
    try:
        contexts, current = list_kube_config_contexts(str(path))
        name = context or _current_context(path)
        found = next((each for each in contexts if each["name"] == name), current)
        return str((found.get("context") or {}).get("namespace") or "default")
    except _UNUSABLE as error:
        raise InvalidValue(f"{path} cannot be read: {error}") from error


def _current_context(paths: Path) -> str | None:
    """As kubectl chooses it: that of the first file which names one. The official client takes the
    last one's."""
    for path in str(paths).split(os.pathsep):
        config = KubeConfigMerger(path).config
        name = None if config is None else config.safe_get("current-context")
        if name:
            return str(name)
    return None


def _cluster_config(found: Configuration) -> ClusterConfig:
    data = found.ca_cert_data
    tls = trusting(found.ssl_ca_cert, data.decode() if isinstance(data, bytes) else data)
    if not found.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = CERT_NONE
    if found.cert_file:
        tls.load_cert_chain(found.cert_file, found.key_file)
    proxy = found.proxy or ""
    if proxy and should_bypass_proxies(found.host, found.no_proxy or ""):
        proxy = ""
    name = found.tls_server_name or ""
    return ClusterConfig(found.host, tls, partial(_token, found), name, proxy)


def _token(found: Configuration) -> str:
    try:
        bearer = found.auth_settings().get("BearerToken")
    except ConfigException as error:  # a plugin or a file failed
        raise ValueError(str(error)) from error
    return str(bearer["value"] or "").partition(" ")[2] if bearer else ""
