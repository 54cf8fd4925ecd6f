"""etcd, the API server, the scheduler and the controllers, in a network namespace of theirs."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from tests.cluster import configs
from tests.cluster.addresses import API_SERVICE, POD_SUBNET, SERVICE_SUBNET
from tests.cluster.context import Context
from tests.cluster.network import NETWORK, enter
from tests.cluster.pki import (
    ADMIN,
    API_SERVER_TO_KUBELET,
    CONTROLLER_MANAGER,
    SCHEDULER,
    Authority,
    Identity,
    service_account_keys,
)
from tests.cluster.waiting import PATIENCE, wait_until

COMPONENTS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")

_OLDER = "older-kube-apiserver"  # during an upgrade
_PORT, _OLDER_PORT = 6443, 6444
_ETCD = "http://127.0.0.1:2379"
_API_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class ControlPlane:
    """The control plane of one cluster."""

    def __init__(
        self, context: Context, *, api_server: str = "kube-apiserver", port: int = _PORT
    ) -> None:
        """`api_server` is the name of its process."""
        self._api_server = api_server
        self._port = port
        self._settings = context.settings
        self._addresses = context.addresses
        self._etcd_directory = context.directory / "etcd"
        self._pki = context.pki
        self._programs = context.programs
        self._table = context.processes
        self.server = f"https://{context.addresses.control_plane}:{port}"
        self.kubeconfig = context.directory / "kubeconfig"

    @classmethod
    def behind(cls, context: Context) -> ControlPlane:
        """One whose API server another one of the cluster takes over from: at another port, and
        not an endpoint of the Service `kubernetes`."""
        return cls(context, api_server=_OLDER, port=_OLDER_PORT)

    def start(self, authority: Authority) -> None:
        """Start everything; returns when the API server answers and the controllers have begun.

        Raises ClusterError with the end of a component's log.
        """
        self._start_etcd()
        self.start_api_server(authority)
        self._start_scheduler(authority)
        self._start_controller_manager(authority)
        # The controllers make it, and every pod needs it.
        self._wait_for("/api/v1/namespaces/default/serviceaccounts/default", authority)

    def start_api_server(self, authority: Authority) -> None:
        """Start the API server, and give administrators its address; returns when it answers."""
        self.write_kubeconfig(authority, self.kubeconfig, "admin", ADMIN)
        self._start_api_server(authority)
        # Not earlier: the others give up when they are refused, and the API server writes what
        # they are allowed only after it has begun to answer.
        self._wait_for("/readyz", authority)

    def stop(self) -> None:
        """Stop everything; what etcd has on disk stays."""
        running = self._table.names()
        for name in reversed((COMPONENTS[0], _OLDER, *COMPONENTS[1:])):
            if name in running:
                self._table.end(name)

    def write_kubeconfig(
        self, authority: Authority, path: Path, file_name: str, identity: Identity
    ) -> None:
        """Give `identity` a certificate and a kubeconfig that holds it."""
        client = authority.client(file_name, identity)
        content = configs.kubeconfig(self.server, authority.certificate, client)
        path.touch(mode=0o600)
        path.write_text(json.dumps(content, indent=2) + "\n")

    def _start_etcd(self) -> None:
        flags = [
            f"--data-dir={self._etcd_directory}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--log-level=warn",
            # A single member waits for a leader to appear before it makes itself one.
            "--election-timeout=500",
            "--heartbeat-interval=100",
            # What a crash of the machine would lose is not worth a disk flush for each write.
            "--unsafe-no-fsync",
        ]
        self._start("etcd", flags)

    def _start_api_server(self, authority: Authority) -> None:
        addresses = self._addresses
        serving = authority.server(
            "kube-apiserver", (addresses.control_plane, API_SERVICE), _API_NAMES
        )
        kubelet_client = authority.client("kube-apiserver-kubelet-client", API_SERVER_TO_KUBELET)
        public, private = service_account_keys(self._pki)
        flags = [
            f"--etcd-servers={_ETCD}",
            f"--bind-address={addresses.control_plane}",
            f"--secure-port={self._port}",
            f"--advertise-address={addresses.control_plane}",
            f"--service-cluster-ip-range={SERVICE_SUBNET}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            f"--client-ca-file={authority.certificate}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            # Without it every component logs, again and again, that it is missing.
            f"--requestheader-client-ca-file={authority.certificate}",
            "--requestheader-allowed-names=front-proxy-client",
            f"--kubelet-certificate-authority={authority.certificate}",
            f"--kubelet-client-certificate={kubelet_client.certificate}",
            f"--kubelet-client-key={kubelet_client.key}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
        ]
        if self._api_server == _OLDER:
            flags.append("--endpoint-reconciler-type=none")
        self._start("kube-apiserver", flags, self._api_server)

    def _start_scheduler(self, authority: Authority) -> None:
        self._start("kube-scheduler", self._as_client(authority, "kube-scheduler", SCHEDULER))

    def _start_controller_manager(self, authority: Authority) -> None:
        flags = self._as_client(authority, "kube-controller-manager", CONTROLLER_MANAGER)
        flags += [
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._pki / 'service-account.key'}",
            f"--root-ca-file={authority.certificate}",
            f"--cluster-cidr={POD_SUBNET}",
            # Its own defaults make its start alone take five seconds.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]
        if self._settings.keep_nodes_ready:
            flags.append("--node-monitor-grace-period=24h")
        self._start("kube-controller-manager", flags)

    def _as_client(self, authority: Authority, name: str, identity: Identity) -> list[str]:
        kubeconfig = self._pki / f"{name}.kubeconfig"
        self.write_kubeconfig(authority, kubeconfig, name, identity)
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
        ]

    def _start(self, name: str, flags: Sequence[str], process: str = "") -> None:
        network = self._table.get(NETWORK)
        chosen = (
            self._settings.extra_flags_of(name) if name == "etcd" else self._settings.flags(name)
        )
        command = [*enter(network), str(self._programs / name), *flags, *chosen]
        self._table.start(process or name, command)

    def _wait_for(self, path: str, authority: Authority) -> None:
        trust = ssl.create_default_context(cafile=str(authority.certificate))
        trust.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")

        def answers() -> bool:
            for name in {*COMPONENTS, _OLDER} & set(self._table.names()):
                self._table.check(name)
            host = str(self._addresses.control_plane)
            connection = HTTPSConnection(host, self._port, context=trust, timeout=5)
            with closing(connection):
                connection.request("GET", path)
                return connection.getresponse().status == HTTPStatus.OK

        failures = (OSError, HTTPException)
        wait_until(answers, PATIENCE, self.server + path, retry_on=failures)
