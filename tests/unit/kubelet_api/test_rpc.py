"""A service is served whole, or its server is not made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from dra_driver.kubelet_api.generated import dra_v1_pb2
from dra_driver.kubelet_api.rpc import RpcService


class WithoutUnprepare:
    def NodePrepareResources(self, request: object, context: object) -> None:  # noqa: N802
        raise AssertionError


def test_a_servicer_that_lacks_a_method() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    with pytest.raises(AttributeError, match="NodeUnprepareResources"):
        RpcService(dra_v1_pb2.DESCRIPTOR, "DRAPlugin").add_to(server, WithoutUnprepare())
