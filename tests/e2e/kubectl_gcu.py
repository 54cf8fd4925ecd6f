"""`kubectl gcu` as an administrator runs it."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

from kubectl_gcu.main import run
from tests.cluster.cluster import Cluster


def kubectl_gcu(cluster: Cluster, code: int, *arguments: str) -> str:
    """What `kubectl gcu` prints for an administrator, with that exit code."""
    out, errors = io.StringIO(), io.StringIO()
    found = run([*arguments, f"--kubeconfig={cluster.kubeconfig}"], {}, out, errors)
    assert (found, errors.getvalue()) == (code, "")
    return out.getvalue()


def holders(found: dict[str, Any], namespace: str) -> dict[str, list[str]]:
    """The cards of each pod, by `kubectl gcu inspect`: all of the namespace, with one container."""
    cards: defaultdict[str, list[str]] = defaultdict(list)
    for card in (card for node in found["nodes"] for card in node["cards"]):
        for holder in card["holders"]:
            for pod in holder["pods"]:
                assert (pod["namespace"], len(pod["containers"])) == (namespace, 1)
                cards[pod["name"]].append(card["address"])
    return dict(cards)
