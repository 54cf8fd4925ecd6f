"""Calls the API server over one connection, where a kubectl process would be too dear.

It costs a tenth of a second of processor time. Tests ask for a state several times a second, and
each begins and ends with a namespace.
"""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from kubernetes.stream import stream
from kubernetes.stream.ws_client import ERROR_CHANNEL

from tests.cluster.errors import CommandError

Object = dict[str, Any]

_CORE: Final = "/api/v1"
_DRA: Final = "/apis/resource.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    prefix: str
    namespaced: bool = True


_KINDS: Final = {
    "node": _Kind("Node", _CORE, namespaced=False),
    "pod": _Kind("Pod", _CORE),
    "event": _Kind("Event", _CORE),
    "resourceclaim": _Kind("ResourceClaim", _DRA),
    "resourceslice": _Kind("ResourceSlice", _DRA, namespaced=False),
}

_CLUSTER_WIDE: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "Namespace",
        "Node",
        "ResourceSlice",
        "DeviceClass",
        "DeviceTaintRule",
        "PriorityClass",
        "RuntimeClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
_APPLY: Final = "application/apply-patch+yaml"
_EXEC_SECONDS: Final = 120.0


class Calls:
    """`kubectl get … -o json` for the kinds that are polled, `kubectl apply`, and single calls, as
    the kubeconfig's user."""

    def __init__(self, kubeconfig: Path) -> None:
        configuration = client.Configuration()
        config.load_kube_config(str(kubeconfig), client_configuration=configuration)
        self._server = configuration.host
        self._configuration = configuration
        self._pool: urllib3.PoolManager = client.ApiClient(configuration).rest_client.pool_manager

    @staticmethod
    def knows(kind: str) -> bool:
        """Whether the kind, in singular or plural, is one of those that are polled."""
        return kind.removesuffix("s") in _KINDS

    def get(self, *arguments: str) -> Object:
        """An object, or a list of them, with kubectl's arguments: a kind, perhaps a name, and
        `--namespace`, `--selector`, `--field-selector`, `--all-namespaces`.

        Raises CommandError, as kubectl's, where there is no answer or a refusal.
        """
        options = _parser().parse_args(arguments)
        kind = _KINDS[options.kind.removesuffix("s")]
        in_one = kind.namespaced and not options.all_namespaces
        scope = f"/namespaces/{options.namespace}" if in_one else ""
        name = f"/{options.name}" if options.name else ""
        fields = {
            key: value
            for key, value in (
                ("labelSelector", options.selector),
                ("fieldSelector", options.field_selector),
            )
            if value
        }
        url = f"{self._server}{kind.prefix}{scope}/{kind.name.lower()}s{name}"
        found = self._send("GET", url, ("get", *arguments), fields=fields)
        for item in found.get("items", ()):
            item.update(apiVersion=found["apiVersion"], kind=kind.name)
        return found

    def call(self, method: str, path: str, body: Object | None = None) -> Object:
        """One request; gives the answer. A PATCH is a merge patch. Raises CommandError, with the
        words of kubectl, where there is no answer or a refusal."""
        return self._send(method, self._server + path, (method, path), body=body)

    def apply(self, wanted: Mapping[str, Any]) -> None:
        """Server-side apply of one object, in the namespace that it names. Raises CommandError."""
        path = object_path(wanted)
        fields = {"fieldManager": "tests", "force": "true"}
        self._send(
            "PATCH", self._server + path, ("apply", path), fields=fields, body=wanted, kind=_APPLY
        )

    def execute(self, namespace: str, pod: str, container: str, *command: str) -> str:
        """`kubectl exec`; gives the output. Without a name it is the pod's first container. Raises
        CommandError, as kubectl's, where the command fails or cannot be started."""
        # Of its own: the call makes its client one that speaks WebSocket alone.
        api = client.CoreV1Api(client.ApiClient(self._configuration))
        wanted = {"container": container} if container else {}
        try:
            told = stream(
                api.connect_get_namespaced_pod_exec,
                pod,
                namespace,
                command=list(command),
                stdout=True,
                stderr=True,
                _preload_content=False,
                **wanted,
            )
        except client.ApiException as error:
            raise CommandError(("exec", pod, *command), 1, str(error.reason)) from error
        try:
            told.run_forever(timeout=_EXEC_SECONDS)
            verdict: Object = json.loads(told.read_channel(ERROR_CHANNEL) or "{}")
            if verdict.get("status") != "Success":
                why = verdict.get("message", "the stream ended")
                raise CommandError(("exec", pod, *command), 1, f"{told.read_all()}{why}")
            return str(told.read_stdout() or "")
        finally:
            # Not `close`: that leaves the socket of a stream which the other side has broken.
            told.sock.shutdown()

    def _send(
        self,
        method: str,
        url: str,
        command: Sequence[str],
        *,
        fields: Mapping[str, str] = MappingProxyType({}),
        body: Mapping[str, Any] | None = None,
        kind: str = "",
    ) -> Object:
        kind = kind or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        data = None if body is None else json.dumps(body).encode()
        target = f"{url}?{urlencode(fields)}" if fields else url
        try:
            answer = self._pool.request(
                method, target, body=data, headers={"Content-Type": kind}, timeout=30.0
            )
        except urllib3.exceptions.HTTPError as error:
            raise CommandError(command, 1, str(error)) from error
        found: Object = json.loads(answer.data)
        if answer.status >= 300:
            message = f"Error from server ({found.get('reason')}): {found.get('message')}"
            raise CommandError(command, 1, message)
        return found


def object_path(wanted: Mapping[str, Any]) -> str:
    """The path of an object on the API server, by its kind, namespace and name."""
    kind, metadata = str(wanted["kind"]), wanted["metadata"]
    version = str(wanted["apiVersion"])
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = "" if kind in _CLUSTER_WIDE else f"/namespaces/{metadata.get('namespace', 'default')}"
    plural = re.sub("ys$", "ies", f"{kind.lower()}{'es' if kind.endswith('s') else 's'}")
    return f"{prefix}{scope}/{plural}/{metadata['name']}"


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="get", allow_abbrev=False)
    parser.add_argument("kind")
    parser.add_argument("name", nargs="?")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--all-namespaces", action="store_true")
    parser.add_argument("--selector")
    parser.add_argument("--field-selector")
    return parser
