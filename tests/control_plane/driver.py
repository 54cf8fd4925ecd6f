"""The chart, installed by helm on a cluster, and the accounts that it makes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_CONTROLLER, CLASS_WHOLE, TAINT_ALLOCATED_BY
from tests.chart.helm import CHART, RELEASE
from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.cluster.workloads import pod
from tests.control_plane.one_kind_cases import TWO

# Its pods find no node: the tests run the programs themselves, with the pods' rights.
NOWHERE = {"nodeSelector": {"runs": "nowhere"}}
# Limits become claims also while no controller runs; test_limits_decision.py has the default.
# A test where kube-scheduler allocates says so: the chart's own choice differs with the version.
_VALUES = {
    "agent": NOWHERE,
    "controller": NOWHERE,
    "legacyResources": {"enabled": True},
    "allocator": ALLOCATOR_CONTROLLER,
}


class Driver:
    """The installed release on one cluster."""

    def __init__(self, cluster: Cluster, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        """`values` are those that it was installed with."""
        self._cluster = cluster
        self.values = values

    @classmethod
    def install(
        cls,
        cluster: Cluster,
        *,
        release: str = RELEASE,
        values: Mapping[str, Any] = MappingProxyType({}),
    ) -> Driver:
        """`helm install` with these values; returns when the admission policies are heeded, a
        moment later."""
        given = {**_VALUES, **cluster.release.chart_values, **values}
        driver = cls(cluster, given)
        driver._helm("install", release, given, "--create-namespace")
        for unwanted, account in driver._refusable():
            wait_until(
                partial(driver._refused, unwanted, account), PATIENCE, "the policies to be heeded"
            )
        return driver

    def _refusable(self) -> Iterator[tuple[Object, str]]:
        """Objects that the policies refuse to an account, or to an administrator."""
        release = self._cluster.release
        if not release.dra:
            yield TWO, ""
            return
        yield _foreign_slice(), self.user("agent")
        if not release.drops_taints:
            yield _tolerating_claim(), ""

    @contextmanager
    def changed(self, **values: Any) -> Iterator[None]:
        """With other values of the chart, and then again without. No rollout ends here, as no pod
        starts: pods with the other values would stay."""
        self._upgrade({**self.values, **values})
        try:
            yield
        finally:
            self._upgrade(self.values)
            scope = f"--namespace={DRIVER_NAMESPACE}"
            controllers = "--selector=app.kubernetes.io/component=controller"
            self._cluster.kubectl("delete", "replicasets", scope, controllers)

    def _upgrade(self, values: Mapping[str, Any]) -> None:
        # Tests apply policies of other values themselves, and put the release's back.
        self._helm("upgrade", RELEASE, values, "--force-conflicts")

    def _helm(self, command: str, release: str, values: Mapping[str, Any], *flags: str) -> None:
        scope = (f"--namespace={DRIVER_NAMESPACE}", "--values=-", *flags)
        self._cluster.helm(command, release, str(CHART), *scope, stdin=json.dumps(values))

    def uninstall(self) -> None:
        """`helm uninstall`, waiting for what it deletes, without the check, as no pod runs here."""
        scope = f"--namespace={DRIVER_NAMESPACE}"
        self._cluster.helm("uninstall", RELEASE, scope, "--no-hooks", "--wait")

    def user(self, program: str) -> str:
        """The name by which the API server knows the account of `agent` or `controller`."""
        return f"system:serviceaccount:{DRIVER_NAMESPACE}:{account(program)}"

    def kubeconfig(self, program: str, path: Path, *, node: str = "") -> Path:
        """Write a kubeconfig for the account of a program, with a token of its own: that of a pod
        on `node`, if one is given."""
        bound: tuple[str, ...] = ()
        if node:
            pod_of_it = self._pod(program, node)
            bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod_of_it}")
        # Nobody renews it, and a churn lasts for hours.
        scope = ("--namespace", DRIVER_NAMESPACE, "--duration=24h")
        token = self._cluster.kubectl("create", "token", account(program), *scope, *bound)
        admin = json.loads(self._cluster.kubectl("config", "view", "--raw", "--output=json"))
        content: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": admin["clusters"][0]["cluster"]}],
            "users": [{"name": program, "user": {"token": token.strip()}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": program}}],
            "current-context": "tests",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))
        return path

    def _pod(self, program: str, node: str) -> str:
        """The name of a pod of a program on `node`, where nothing runs it."""
        name = f"{program}-{node}"[:60].rstrip(".-")
        made = pod(name, DRIVER_NAMESPACE, nodeName=node)
        made["spec"]["serviceAccountName"] = account(program)
        self._cluster.apply(made)
        return str(made["metadata"]["name"])

    def _refused(self, obj: Object, account: str) -> bool:
        command = ["create", "--dry-run=server", "--filename=-"]
        try:
            self._cluster.kubectl(
                *command, *([f"--as={account}"] if account else ()), stdin=json.dumps(obj)
            )
        except CommandError as error:
            if "ValidatingAdmissionPolicy" in error.output:
                return True
            raise
        return False


def account(program: str) -> str:
    """The name of a program's service account."""
    return f"{RELEASE}-{program}"


def rendered(cluster: Cluster, folder: Path, template: str, values: Object) -> list[Object]:
    """What helm makes of one file of the chart's templates with these values."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    scope = (f"--namespace={DRIVER_NAMESPACE}", f"--show-only=templates/{template}")
    text = cluster.helm("template", RELEASE, str(CHART), *scope, f"--values={file}")
    return [each for each in yaml.safe_load_all(text) if each]


def _tolerating_claim() -> Object:
    tolerations = [{"key": TAINT_ALLOCATED_BY, "operator": "Exists"}]
    exactly = {"deviceClassName": CLASS_WHOLE, "tolerations": tolerations}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "is-the-policy-heeded", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}},
    }


def _foreign_slice() -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "is-the-policy-heeded"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "any",
            "pool": {"name": "any", "generation": 1, "resourceSliceCount": 1},
            "devices": [],
        },
    }
