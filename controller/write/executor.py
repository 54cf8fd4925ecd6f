"""Executes commands against the API server, in the threads of the dispatcher's pool."""

from __future__ import annotations

import logging

from controller.write.claim_writer import ClaimWriter
from controller.write.commands import (
    Answer,
    ClaimCommand,
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
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import AlreadyExists, Conflict, NotFound
from dra_driver.kube.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra_driver.model.claim import Object

logger = logging.getLogger(__name__)


class CommandExecutor:
    """Safe for several threads."""

    def __init__(self, api: ObjectApi, claims: ClaimWriter) -> None:
        self._api = api
        self._claims = claims

    def execute(self, command: Command | TakeoverCommand) -> Answer:
        """Never raises: an answer can have any error. What the writer of claims does not answer
        itself leaves unknown what was written before it: the claims are uncertain."""
        try:
            return self._execute(command)
        except Exception as error:  # noqa: BLE001 - the deciding thread sets the object aside
            match command:
                case WriteAllocation(claims=claims) | SettleUncertain(claims=claims):
                    return Answer(error=error, uncertain=claims)
            return Answer(error=error)

    def _execute(self, command: Command | TakeoverCommand) -> Answer:
        match command:
            case ReadVolumes():
                return Answer(tuple(node_selectors(self._api, command.pod)))
            case CreateTemplate():
                return Answer((self._create(command.template),))
            case DeleteTemplate():
                return self._delete(command.template)
            case ReadClaim(key=key):
                name, namespace = key.name, key.namespace
                return Answer((self._api.get(RESOURCE_CLAIMS, name, namespace=namespace),))
            case WriteTerm():
                return Answer((self._claims.fence(command.claim, command.term),))
            case _:
                return self._write(command)

    def _write(self, command: ClaimCommand | LiftGate) -> Answer:
        match command:
            case WriteAllocation(pod=pod):
                gated = pod if command.gated else None
                only_for = pod if command.read_pod else None
                return self._claims.allocate(command.claims, gated, only_for=only_for)
            case ReleaseAllocation():
                return self._claims.release(command.claims, command.why)
            case SettleUncertain():
                return self._claims.settle(command.claims[0])
            case LiftGate():
                return self._claims.lift_gate(command.pod)

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
