"""What reached an API server, by its own audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.cluster.waiting import PATIENCE, wait_until

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
_HAS_BEGUN = "ResponseStarted"  # a watch; all others have one entry, of the stage ResponseComplete


@dataclass(frozen=True, slots=True)
class Request:
    """One request: when it came (seconds since 1970), whose it was, and what."""

    at: float
    user_agent: str
    what: str  # <verb> <resource>


class AuditLog:
    """The log of an API server that was started with `flags`."""

    def __init__(self, folder: Path) -> None:
        self._policy = folder / "audit-policy.json"
        self._log = folder / "audit.log"
        self._policy.write_text(json.dumps(_POLICY))

    @property
    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """For the settings of a cluster."""
        flags = (f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}")
        return {"kube-apiserver": flags}

    def requests(self, user_agent: str, since: float, until: float) -> list[Request]:
        """Those of user agents that begin so, in the order in which they came."""
        with self._log.open() as lines:
            found = [_request(json.loads(line)) for line in lines if user_agent in line]
        return sorted(
            (
                each
                for each in found
                if each is not None
                and each.user_agent.startswith(user_agent)
                and since <= each.at < until
            ),
            key=lambda each: each.at,
        )

    def watches(self, user_agent: str) -> Counter[str]:
        """How many are open of each user agent that begins so."""
        opened: dict[str, str] = {}
        with self._log.open() as lines:
            for line in lines:
                if user_agent not in line:
                    continue
                entry = json.loads(line)
                if entry["verb"] != "watch":
                    continue
                if entry["stage"] == _HAS_BEGUN:
                    opened[entry["auditID"]] = entry["userAgent"]
                else:
                    opened.pop(entry["auditID"], None)
        return Counter(opened.values())

    def wait(self, user_agent: str, what: str, least: int, since: float) -> None:
        """Return when so many requests of that kind came from each of the user agents."""

        def has_come() -> bool:
            found = self.requests(user_agent, since, float("inf"))
            return sum(each.what == what for each in found) >= least

        wait_until(has_come, PATIENCE, f"{least} × {what}", interval=0.5)


def _request(entry: Mapping[str, object]) -> Request | None:
    is_watch = entry["verb"] == "watch"
    if is_watch != (entry["stage"] == _HAS_BEGUN):
        return None
    reference = entry.get("objectRef")
    resource = reference["resource"] if isinstance(reference, dict) else entry["requestURI"]
    at = datetime.fromisoformat(str(entry["requestReceivedTimestamp"]))
    return Request(at.timestamp(), str(entry["userAgent"]), f"{entry['verb']} {resource}")
