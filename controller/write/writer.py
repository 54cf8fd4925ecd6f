"""Executes commands about pods and claim templates, in the threads of the dispatcher's pool."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from controller.cache.keys import uid_of
from controller.leaderelection.fence import Fence, fenced
from controller.write.commands import (
    Answer,
    ClearNomination,
    Command,
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    NameNode,
    ReadVolumes,
)
from controller.write.volumes import PodVolumes, read_volumes
from dra_driver.kube.api import NOTHING, ObjectApi, PatchType, ServerVersion
from dra_driver.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from dra_driver.kube.preflight import nominates_before_binding
from dra_driver.kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, Resource
from dra_driver.kube.scheduling_gate import gate_lifted
from dra_driver.model.claims.claim import ClaimRef, Object

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A node was proposed to kube-scheduler. What the hint has for the pod's `spec` is written with
    the gate. The server has `refused` the hint, or the pod is gone."""

    spec: Object = field(default_factory=dict)
    refused: KubeError | None = None
    is_gone: bool = False


class Writer:
    """Safe for several threads. Every write raises NotLeader when `fence` is closed.
    `server_version` asks the API server."""

    def __init__(
        self, api: ObjectApi, fence: Fence, server_version: Callable[[], ServerVersion]
    ) -> None:
        self._api = fenced(api, fence)
        self._server_version = server_version

    def begin(self, command: Command) -> Callable[[], Answer]:
        """Propose the node of a gate that is to be lifted. The result executes the rest. Neither
        raises: the answer has the error."""
        execute: Callable[[], Answer] = partial(self._execute, command)
        if isinstance(command, LiftGate) and command.node:
            try:
                execute = partial(self._lift, command, self._propose(command))
            except Exception as error:  # noqa: BLE001 - the deciding thread sets the object aside
                execute = partial(Answer, error=error)
        return partial(_answer, execute)

    def _execute(self, command: Command) -> Answer:
        answer = Answer()
        match command:
            case LiftGate():
                answer = self._lift(command, _Proposal())
            case NameNode():
                answer = self._name_node(command)
            case ClearNomination():
                answer = Answer(pod=self._clear_nomination(command.pod))
            case ReadVolumes():
                answer = Answer(volumes=self._read_volumes(command.pod))
            case CreateTemplate():
                answer = Answer(found=(self._create_template(command.template),))
            case DeleteTemplate():
                self._delete_template(command.template)
        return answer

    def _read_volumes(self, pod: Object) -> PodVolumes:
        """Volumes count as unbound only where kube-scheduler does not say that it binds them."""
        found = read_volumes(self._api, pod)
        if found.are_unbound and nominates_before_binding(self._server_version()):
            return replace(found, are_unbound=False)
        return found

    def _lift(self, command: LiftGate, proposal: _Proposal) -> Answer:
        if proposal.is_gone:
            return Answer()
        return Answer(pod=self.lift_gate(command.pod, proposal.spec), hint_refused=proposal.refused)

    def _name_node(self, command: NameNode) -> Answer:
        """The pod is None in the answer if it is gone."""
        pod = command.pod
        try:
            return Answer(pod=self._patch_status(pod, {"nominatedNodeName": command.node or None}))
        except NotFound:
            return Answer()
        except (Conflict, Forbidden, Invalid) as error:
            return Answer(pod=pod, hint_refused=error) if self._is_there(pod) else Answer()

    def _propose(self, command: LiftGate) -> _Proposal:
        """A server that refuses the hint keeps no pod waiting: the gate is lifted without it."""
        pod, node, hint = command.pod, command.node, command.hint
        try:
            if status := hint.status(node):
                self._patch_status(pod, status)
                return _Proposal()
            return _Proposal(spec=hint.spec(self._read(pod, PODS), node))
        except NotFound:
            return _Proposal(is_gone=True)
        except (Conflict, Forbidden, Invalid) as error:
            return _Proposal(refused=error, is_gone=not self._is_there(pod))

    def _patch_status(self, pod: Object, status: Object) -> Object:
        """Returns the pod with the name of its node, or without one."""
        metadata = pod["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        namespace, name = metadata["namespace"], metadata["name"]
        found = self._api.patch(PODS, name, body, namespace=namespace, subresource="status")
        node = status["nominatedNodeName"] or "none"
        logger.info("named node %s for pod %s/%s", node, namespace, name)
        return found

    def _clear_nomination(self, pod: Object) -> Object | None:
        """Returns None if the pod has changed: its watch reports how."""
        metadata = pod["metadata"]
        version = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": version, "status": {"nominatedNodeName": None}}
        namespace, name = metadata["namespace"], metadata["name"]
        try:
            cleared = self._api.patch(PODS, name, body, namespace=namespace, subresource="status")
        except (Conflict, NotFound):
            return None
        logger.info("took the node's name back from pod %s/%s", namespace, name)
        return cleared

    def lift_gate(self, pod: Object, spec: Mapping[str, Any] = NOTHING) -> Object | None:
        """Remove the gate, and merge `spec` into the pod's. Returns None if the pod was deleted,
        also if another pod has its name now: the server answers that with Invalid, as a UID is
        immutable. Raises Conflict and Invalid where the server, or an admission webhook, refuses
        although the pod exists."""
        metadata = pod["metadata"]
        try:
            lifted = self._api.patch(
                PODS,
                metadata["name"],
                gate_lifted(pod, spec),
                namespace=metadata["namespace"],
                patch_type=PatchType.STRATEGIC_MERGE,
            )
        except NotFound:
            return None
        except (Conflict, Invalid):
            if self._is_there(pod):
                raise
            return None
        logger.info("lifted the gate of pod %s/%s", metadata["namespace"], metadata["name"])
        return lifted

    def _is_there(self, pod: Object) -> bool:
        """Whether the pod itself has its name still."""
        try:
            return uid_of(self._read(pod, PODS)) == uid_of(pod)
        except NotFound:
            return False

    def _read(self, obj: Object, resource: Resource) -> Object:
        metadata = obj["metadata"]
        return self._api.get(resource, metadata["name"], namespace=metadata["namespace"])

    def _create_template(self, template: Object) -> Object:
        """Returns the stored template, whoever created it."""
        try:
            created = self._api.create(RESOURCE_CLAIM_TEMPLATES, template)
        except AlreadyExists:
            return self._read(template, RESOURCE_CLAIM_TEMPLATES)
        logger.info("created claim template %s", ClaimRef.of(created))
        return created

    def _delete_template(self, template: Object) -> None:
        metadata = template["metadata"]
        try:
            self._api.delete(
                RESOURCE_CLAIM_TEMPLATES,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                # A person who removes our label owns the template.
                resource_version=metadata["resourceVersion"],
            )
        except (NotFound, Conflict) as error:
            logger.info("the claim template has changed: %s", error)
        else:
            logger.info("deleted claim template %s", ClaimRef.of(template))


def _answer(execute: Callable[[], Answer]) -> Answer:
    try:
        return execute()
    except Exception as error:  # noqa: BLE001 - the deciding thread sets the object aside
        return Answer(error=error)
