"""A backup of a test cluster's etcd, and its restore, as a person would do it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandError
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.components import away

_CONTROLLERS = ("kube-controller-manager", "kube-scheduler")


class EtcdBackup:
    """What etcd had on disk at one moment."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        """Back up into `folder`, which must not exist; etcd is away for a moment meanwhile."""
        self._cluster = cluster
        self._folder = folder
        self._data = cluster.directory / "etcd"
        with away(cluster, "etcd"):
            shutil.copytree(self._data, folder)
        self._wait()

    def restore(self, *, away_for: float) -> None:
        """Stop the control plane for so many seconds at least, put the backup in the place of
        etcd's data, and start all again, kube-scheduler and kube-controller-manager, too, as
        Kubernetes advises; returns when the API server answers."""
        controllers, scheduler = (away(self._cluster, name) for name in _CONTROLLERS)
        with controllers, scheduler:
            with away(self._cluster, "kube-apiserver"), away(self._cluster, "etcd"):
                shutil.rmtree(self._data)
                shutil.copytree(self._folder, self._data)
                time.sleep(away_for)  # a person takes longer
            self._wait()

    def _wait(self) -> None:
        wait_until(
            lambda: self._cluster.kubectl("get", "--raw=/readyz") == "ok",
            PATIENCE,
            "the API server ready again",
            retry_on=(CommandError,),
        )
