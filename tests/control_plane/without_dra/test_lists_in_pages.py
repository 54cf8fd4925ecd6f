"""Lists on a real API server that does not stream them (WatchList)."""

from __future__ import annotations

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.errors import Invalid
from tests.control_plane.followed_lists import follow
from tests.control_plane.test_client import CONFIG_MAPS

pytestmark = pytest.mark.control_plane


def test_a_server_without_watch_list_refuses_and_lists_in_pages(
    api: Client, namespace: str
) -> None:
    with pytest.raises(Invalid, match="sendInitialEvents"):
        api.watch(CONFIG_MAPS, resource_version="", initial_events=True)
    assert follow(api, namespace) == [CONFIG_MAPS.plural]
