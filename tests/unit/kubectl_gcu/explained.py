"""What `kubectl gcu explain` says about a pod of the namespace ``default``."""

from __future__ import annotations

from typing import Any

from kubectl_gcu.scheduling.explain import explain_pod
from kubectl_gcu.scheduling.explanation import Explanation, lines
from tests.unit.kubectl_gcu.server import NOW


def explained(server: Any, name: str = "p") -> Explanation:
    return explain_pod(server, "default", name, now=NOW)


def explained_lines(server: Any, name: str = "p") -> list[str]:
    return list(lines(explained(server, name)))
