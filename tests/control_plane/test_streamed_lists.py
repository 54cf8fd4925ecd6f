"""Lists as streams (WatchList) on a real API server that has them."""

from __future__ import annotations

import pytest

from dra_driver.kube.client import Client
from tests.control_plane.followed_lists import follow

pytestmark = pytest.mark.control_plane


def test_a_server_with_watch_list_streams(api: Client, namespace: str) -> None:
    assert follow(api, namespace) == []
