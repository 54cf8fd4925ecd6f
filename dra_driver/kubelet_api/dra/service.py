"""The gRPC service `v1.DRAPlugin`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import grpc

from dra_driver.kubelet_api.dra.claim_service import ClaimService
from dra_driver.kubelet_api.generated import dra_v1_pb2 as api
from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.errors import GcuError

SERVICE: Final = RpcService(api.DESCRIPTOR, "DRAPlugin")
VERSION: Final = "v1.DRAPlugin"
"""The name in the registration's list of supported versions."""


class DraServicer:
    """Translates messages; the names are the API's."""

    def __init__(self, claims: ClaimService) -> None:
        self._claims = claims

    def NodePrepareResources(  # noqa: N802 (the API's name)
        self, request: api.NodePrepareResourcesRequest, context: grpc.ServicerContext
    ) -> api.NodePrepareResourcesResponse:
        results = self._claims.prepare(_refs(request.claims), context)
        return api.NodePrepareResourcesResponse(
            claims={uid: _prepared(result) for uid, result in results.items()}
        )

    def NodeUnprepareResources(  # noqa: N802 (the API's name)
        self, request: api.NodeUnprepareResourcesRequest, context: grpc.ServicerContext
    ) -> api.NodeUnprepareResourcesResponse:
        results = self._claims.unprepare(_refs(request.claims), context)
        return api.NodeUnprepareResourcesResponse(
            claims={
                uid: api.NodeUnprepareResourceResponse(error=str(result or ""))
                for uid, result in results.items()
            }
        )


def _refs(claims: Iterable[api.Claim]) -> list[ClaimRef]:
    return [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in claims]


def _prepared(result: Prepared | GcuError) -> api.NodePrepareResourceResponse:
    if isinstance(result, GcuError):
        return api.NodePrepareResourceResponse(error=str(result))
    return api.NodePrepareResourceResponse(
        devices=[
            api.Device(
                request_names=[device.request],
                pool_name=device.pool,
                device_name=device.device,
                cdi_device_ids=device.cdi_ids,
                share_id=device.share_id,
            )
            for device in result
        ]
    )
