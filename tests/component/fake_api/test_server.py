"""What no real server does at will: the fake refuses, forgets, and is late on demand."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dra_driver.kube import client as client_module
from dra_driver.kube import errors
from dra_driver.kube.api import PatchType
from dra_driver.kube.client import Client, connect
from dra_driver.kube.decode import Decoder
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects
from tests.fake_api.api import FakeApi
from tests.fake_api.server import FakeServer


@pytest.fixture
def fake() -> FakeApi:
    return FakeApi()


@pytest.fixture
def server(fake: FakeApi, tmp_path: Path) -> Iterator[FakeServer]:
    with closing(FakeServer(fake, tmp_path / "kubeconfig")) as server:
        yield server


@pytest.fixture
def api(server: FakeServer) -> Iterator[Client]:
    with closing(connect(server.kubeconfig, effects=Effects(), user_agent="someone/1")) as api:
        yield api


def pod(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {}}


def test_a_refusal_is_told_once_with_its_words(fake: FakeApi, api: Client) -> None:
    fake.faults.refuse(errors.TooManyRequests("too many", retry_after=7.0), "create")
    fake.put(PODS, pod("one"))
    assert api.get(PODS, "one", namespace="team")
    with pytest.raises(errors.TooManyRequests, match="too many") as refused:
        api.create(PODS, pod("two"))
    assert refused.value.retry_after == 7.0
    assert api.create(PODS, pod("two"))["metadata"]["uid"]


def test_no_answer_and_a_lost_answer(fake: FakeApi, api: Client) -> None:
    fake.faults.refuse(errors.Unavailable("away"), "create", resource=PODS)
    with pytest.raises(errors.Unavailable):
        api.create(PODS, pod("one"))
    assert not fake.all(PODS)
    fake.faults.refuse(errors.Unavailable("away"), done=True)
    with pytest.raises(errors.Unavailable):
        api.create(PODS, pod("one"))
    assert [each["metadata"]["name"] for each in fake.all(PODS)] == ["one"]


def test_an_answer_that_is_late(fake: FakeApi, api: Client) -> None:
    fake.put(PODS, pod("one"))
    answers: list[Object] = []
    reader = threading.Thread(target=lambda: answers.append(api.get(PODS, "one", namespace="team")))
    with fake.faults.late("get", PODS):
        reader.start()
        reader.join(0.2)
        assert not answers
    reader.join(10)
    assert answers


def test_a_list_that_expires_between_two_pages(
    fake: FakeApi, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 1)
    for name in ("one", "two"):
        fake.put(PODS, pod(name))
    decoded: list[object] = []

    class Expiring(Decoder):
        def decode(self, text: object) -> Object:
            decoded.append(text)
            fake.put(PODS, pod("three"))
            fake.store.expire()
            return {}

    with pytest.raises(errors.Gone):
        api.list(PODS, decoder=Expiring())
    assert len(decoded) == 1


def test_a_watch_that_the_server_ends(fake: FakeApi, server: FakeServer, api: Client) -> None:
    version = str(fake.store.version)
    watch = api.watch(PODS, resource_version=version)
    told: list[object] = []
    reader = threading.Thread(target=lambda: told.extend(watch))
    reader.start()
    fake.put(PODS, pod("one"))
    while not told:
        reader.join(0.01)
    server.end_watches()
    reader.join(10)
    assert not reader.is_alive()
    assert len(told) == 1


def test_a_watch_that_is_closed_before_it_is_read_leaves_no_socket(
    fake: FakeApi, api: Client
) -> None:
    watch = api.watch(PODS, resource_version=str(fake.store.version))
    watch.close()
    with warnings.catch_warnings(record=True) as left:
        del watch
        gc.collect()
    assert not left


def test_who_called_what(fake: FakeApi, api: Client) -> None:
    api.create(PODS, pod("one"))
    with pytest.raises(errors.NotFound):
        api.get(PODS, "two", namespace="team")
    seen = [(each.verb, each.name, each.user) for each in fake.faults.calls]
    assert seen == [("create", "one", "someone/1"), ("get", "two", "someone/1")]


def test_what_is_not_played_fails_the_test(fake: FakeApi, tmp_path: Path) -> None:
    server = FakeServer(fake, tmp_path / "kubeconfig")
    with closing(connect(server.kubeconfig, effects=Effects(), user_agent="a/1")) as api:
        fake.put(PODS, pod("one"))
        for call in (
            lambda: api.patch(PODS, "one", [], namespace="team", patch_type=PatchType.JSON),
            lambda: api.patch(PODS, "one", {}, namespace="team", subresource="resize"),
            lambda: api.list(RESOURCE_CLAIMS, field_selector="status.phase=Running"),
            lambda: api.list(RESOURCE_SLICES, label_selector="a in (b)"),
        ):
            with pytest.raises(errors.Unavailable, match="501 NotImplemented"):
                call()
    with pytest.raises(AssertionError, match="a patch of application/json-patch"):
        server.close()
    assert len(server.unplayed) == 4
