"""The fence that the lease opens: no write passes it without the lease."""

from __future__ import annotations

from typing import cast

import pytest

from controller.leaderelection.fence import Fence, NotLeader, fenced
from dra_driver.kube.api import Api
from dra_driver.kube.errors import KubeError
from dra_driver.kube.resources import LEASES, PODS


def test_a_write_of_an_earlier_term_does_not_pass() -> None:
    fence = Fence(lambda: 100.0)
    fence.open_until(101.0, "1")
    assert fence.accept() == "1"
    fence.check()
    fence.open_until(101.0, "3")
    with pytest.raises(NotLeader):
        fence.check()


class Refusing:
    """Whatever is called was let through the fence."""

    def __getattr__(self, name: str) -> object:
        def called(*args: object, **kwargs: object) -> object:
            raise KubeError(f"{name} reached the server")

        return called


WRITES = {
    "create": lambda api: api.create(PODS, {}),
    "add_metadata": lambda api: api.add_metadata(PODS, {}),
    "replace": lambda api: api.replace(PODS, {}),
    "patch": lambda api: api.patch(PODS, "p", {}),
    "delete": lambda api: api.delete(PODS, "p"),
}


@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
def test_no_write_passes_a_closed_fence(call: object) -> None:
    fence = Fence(lambda: 100.0)
    api = fenced(cast("Api", Refusing()), fence)
    assert callable(call)
    with pytest.raises(NotLeader):
        call(api)
    fence.open_until(101.0, "1")
    with pytest.raises(NotLeader):
        call(api)
    fence.accept()
    with pytest.raises(KubeError, match="reached the server"):
        call(api)


def test_reads_need_no_lease() -> None:
    api = fenced(cast("Api", Refusing()), Fence(lambda: 100.0))
    with pytest.raises(KubeError, match="reached the server"):
        api.get(LEASES, "l")
