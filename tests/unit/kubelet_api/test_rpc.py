"""A service is served whole, or its server is not made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import pytest

from dra_driver.kubelet_api.dra.service import SERVICE


def test_a_servicer_that_lacks_a_method() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    with pytest.raises(AttributeError, match="NodeUnprepareResources"):
        SERVICE.add_to(server, SimpleNamespace(NodePrepareResources=None))
