"""Executes commands against the API server, in the threads of the dispatcher's pool."""

from __future__ import annotations

import logging
from typing import Final

from controller.cache.keys import Key
from controller.write.claim_writer import ClaimWriter
from controller.write.commands import (
    Answer,
    Command,
    CreateTemplate,
    DeleteTemplate,
    LiftGate,
    ReadClaim,
    ReadVolumes,
    ReleaseAllocation,
    SettleUncertain,
    TakeoverCommand,
    WriteAllocation,
    WriteTerm,
)
from controller.write.volume_reader import node_selectors
from dra_driver.kube.api import Api
from dra_driver.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claim import ClaimRef, Object

logger = logging.getLogger(__name__)

# Of this very write (HTTP): validation, or admission, whose webhooks choose among all four. A
# conflict with another version is no refusal: `ClaimWriter.fence` goes on from there. A claim that
# is too large with the term (413) is so with an allocation, which takes more.
_REFUSALS: Final = frozenset({400, 403, 409, 413, 422})


class CommandExecutor:
    """Safe for several threads."""

    def __init__(self, api: Api, claims: ClaimWriter) -> None:
        self._api = api
        self._claims = claims

    def execute(self, command: Command | TakeoverCommand) -> Answer:
        """Never raises: an answer can have any error. What the writer of claims does not answer
        itself leaves unknown what was written before it: the claims are uncertain."""
        try:
            return self._execute(command)
        except Exception as error:  # noqa: BLE001 - the deciding thread sets the object aside
            match command:
                case WriteAllocation():
                    return Answer(error=error, uncertain=command.claims)
                case SettleUncertain():
                    return Answer(error=error, uncertain=(command.claim,))
            return Answer(error=error)

    def _execute(self, command: Command | TakeoverCommand) -> Answer:
        match command:
            case ReadVolumes():
                return Answer(tuple(node_selectors(self._api, command.pod)))
            case CreateTemplate():
                return Answer((self._create(command.template),))
            case DeleteTemplate():
                return self._delete(command.template)
            case ReadClaim():
                return self._read_claim(command.key)
            case WriteTerm():
                return self._write_term(command)
            case _:
                return self._write(command)

    def _write(
        self, command: WriteAllocation | ReleaseAllocation | LiftGate | SettleUncertain
    ) -> Answer:
        match command:
            case WriteAllocation(pod=pod, claims=claims):
                gated, unchanged = command.gated, command.read_pod
                return self._claims.allocate(
                    claims, pod if gated else None, only_for=pod if unchanged else None
                )
            case ReleaseAllocation():
                return self._claims.release(command.claims, command.why)
            case LiftGate():
                return self._claims.lift_gate(command.pod)
            case SettleUncertain():
                return self._claims.settle(command.claim)

    def _read_claim(self, key: Key) -> Answer:
        try:
            found = self._api.get(RESOURCE_CLAIMS, key.name, namespace=key.namespace)
        except NotFound:
            return Answer()
        return Answer((found,))

    def _write_term(self, command: WriteTerm) -> Answer:
        try:
            return Answer((self._claims.fence(command.claim, command.term),))
        except NotFound:
            return Answer()
        except KubeError as error:
            # Its annotations are full, perhaps, or a policy of its namespace forbids every change
            # of it. Nobody's claim may keep all others waiting.
            if error.status not in _REFUSALS:
                raise
            logger.warning("claim %s carries no term: %s", ClaimRef.of(command.claim), error)
            return Answer()

    def _create(self, template: Object) -> Object:
        """Gives the template of that name as it is stored, whoever created it."""
        namespace, name = template["metadata"]["namespace"], template["metadata"]["name"]
        try:
            created = self._api.create(RESOURCE_CLAIM_TEMPLATES, template)
        except AlreadyExists:
            return self._api.get(RESOURCE_CLAIM_TEMPLATES, name, namespace=namespace)
        logger.info("made claim template %s/%s", namespace, name)
        return created

    def _delete(self, template: Object) -> Answer:
        metadata = template["metadata"]
        try:
            self._api.delete(
                RESOURCE_CLAIM_TEMPLATES,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                # Somebody who takes our label off makes it his own.
                resource_version=metadata["resourceVersion"],
            )
        except (NotFound, Conflict) as error:
            logger.info("claim template is another one by now: %s", error)
        else:
            logger.info("deleted claim template %s/%s", metadata["namespace"], metadata["name"])
        return Answer()
