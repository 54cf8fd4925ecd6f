"""Which pods name a claim or a claim template of ours, and which are replicas of one workload:
names, kept as pods change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from controller.cache import pods
from dra_driver.model.claim import Object

Name = tuple[str, str]  # namespace and name
_Term = tuple[str, ...]
_NOBODY: frozenset[Name] = frozenset()


class PodIndex:
    def __init__(self) -> None:
        self._pods: defaultdict[_Term, set[Name]] = defaultdict(set)

    def replace(self, name: Name, old: Object | None, new: Object | None) -> None:
        """The pod of that name is another one than before; None where there was or is none."""
        added = list(_terms(name, new))
        for term in _terms(name, old):
            self._pods[term].discard(name)
            if not self._pods[term]:
                del self._pods[term]
        for term in added:
            self._pods[term].add(name)

    def users(self, claim: Name) -> Collection[Name]:
        """The pods that name the claim."""
        return self._pods.get(_claim(*claim), _NOBODY)

    def users_of_template(self, template: Name) -> Collection[Name]:
        """The pods that name the claim template."""
        return self._pods.get(_template(*template), _NOBODY)

    def replicas(self, workload: str) -> Collection[Name]:
        """The pods that the workload of that UID has made."""
        return self._pods.get(_workload(workload), _NOBODY)


def _terms(name: Name, pod: Object | None) -> Iterator[_Term]:
    if pod is None:
        return
    for claim in filter(None, pods.claim_names(pod).values()):
        yield _claim(name[0], claim)
    for template in pods.template_names(pod):
        yield _template(name[0], template)
    workload = pods.workload(pod)
    if workload is not None:
        yield _workload(workload)


def _claim(namespace: str, name: str) -> _Term:
    return "claim", namespace, name


def _template(namespace: str, name: str) -> _Term:
    return "template", namespace, name


def _workload(uid: str) -> _Term:
    return "workload", uid
