"""The view of the agent's pod for a process: a service account where pods have it, the server's
address, and the chart's variables for memory."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

# In a mount namespace of its own: the machine's /var/run stays as it is.
_ENTER: Final = (
    "mount -t tmpfs pod /var/run && mkdir -p /var/run/secrets/kubernetes.io && "
    'ln -s "$0" /var/run/secrets/kubernetes.io/serviceaccount && exec "$@"'
)


MEMORY: Final = {
    "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mmap_threshold=131072",
}
"""Variables of the agent's container, by which it takes less memory."""


@dataclass(frozen=True, slots=True)
class Pod:
    """`folder` has what a pod's service account folder has; `server` is a URL."""

    folder: Path
    server: str

    @classmethod
    def of(cls, kubeconfig: Path, folder: Path) -> Pod:
        """With the token of a kubeconfig as `tests.control_plane.driver` writes it."""
        content = json.loads(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        folder.mkdir()
        authority = base64.b64decode(cluster["certificate-authority-data"])
        (folder / "ca.crt").write_bytes(authority)
        (folder / "token").write_text(content["users"][0]["user"]["token"])
        return cls(folder, cluster["server"])

    def command(self, *command: str) -> Sequence[str]:
        """Runs the command in the pod, under the number of the process that is begun."""
        return ["unshare", "--mount", "sh", "-c", _ENTER, str(self.folder), *command]

    def environment(self) -> Mapping[str, str]:
        url = urlsplit(self.server)
        return {
            **os.environ,
            **MEMORY,
            "KUBERNETES_SERVICE_HOST": str(url.hostname),
            "KUBERNETES_SERVICE_PORT": str(url.port or 443),
        }
