"""The configuration from a kubeconfig. No other file imports ``kubernetes``.

The official client supports everything that a kubeconfig can contain (plugins, for example), and
takes 20 MiB of memory. So this module is only imported with a kubeconfig, never in a pod.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from ssl import CERT_NONE

from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, list_kube_config_contexts, load_kube_config

from dra_driver.kube.http.cluster_config import ClusterConfig, trusting
from dra_driver.model.errors import InvalidValue


def by_kubeconfig(path: Path) -> ClusterConfig:
    """By the file's current context; raises InvalidValue if that cannot be used."""
    found = Configuration()
    try:
        load_kube_config(str(path), client_configuration=found, persist_config=False)
        return _cluster_config(found)
    except (ConfigException, OSError) as error:
        raise InvalidValue(
            f"no API server can be reached through {path}: {error}",
            remedy="run in a pod with a service account, or name a kubeconfig",
        ) from error


def current_namespace(path: Path) -> str:
    """The namespace of the file's current context, ``default`` where it has none. Raises
    InvalidValue if the file cannot be used."""
    try:
        _, current = list_kube_config_contexts(str(path))
    except (ConfigException, OSError) as error:
        raise InvalidValue(f"{path} cannot be read: {error}") from error
    return str((current.get("context") or {}).get("namespace") or "default")


def _cluster_config(found: Configuration) -> ClusterConfig:
    data = found.ca_cert_data
    tls = trusting(found.ssl_ca_cert, data.decode() if isinstance(data, bytes) else data)
    if not found.verify_ssl or found.assert_hostname is False:
        tls.check_hostname = False
    if not found.verify_ssl:
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
