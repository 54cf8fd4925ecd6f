"""What the kubelet has on record, read from its two places."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dra_driver.kubelet_api.device_plugin.record import (
    KubeletRecord,
    Recorded,
    known_checkpoint,
    read_checkpoint,
)
from dra_driver.kubelet_api.pod_resources import KubeletError
from dra_driver.kubelet_api.sockets import Folders
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager, Entry

RESOURCE = "enflame.com/gcu"


def entry(pod: str, container: str, *devices: str, init: bool = False) -> Entry:
    return Entry(pod, container, RESOURCE, frozenset(devices), init=init)


def recorded(pod: str, container: str, *devices: str) -> Recorded:
    return Recorded(pod, container, RESOURCE, frozenset(devices))


@pytest.fixture
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceManager]:
    made = DeviceManager(tmp_path_factory.mktemp("k"))
    made.start()
    yield made
    made.stop()


class Reader:
    """A record whose kubelet writes its checkpoint when it is told devices, or does not."""

    def __init__(self, kubelet: DeviceManager) -> None:
        self.kubelet = kubelet
        self.listens = True
        self.writes = True
        self.now = 0.0
        self.record = KubeletRecord(
            kubelet.folders,
            send_list=self.tell,
            clock=lambda: self.now,
            wait=self.wait,
        )

    def tell(self) -> bool:
        if self.listens and self.writes:
            self.kubelet.write_checkpoint()
        return self.listens

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False


@pytest.fixture
def reader(kubelet: DeviceManager) -> Reader:
    return Reader(kubelet)


def test_containers_of_both_sources(reader: Reader) -> None:
    reader.kubelet.active = {"pod"}
    reader.kubelet.entries = [entry("pod", "init", "a", init=True), entry("pod", "main", "a", "b")]
    assert reader.record.read() == {
        recorded("team/pod", "main", "a", "b"),
        recorded("uid-pod", "main", "a", "b"),
        recorded("uid-pod", "init", "a"),
    }


def test_the_look_makes_the_kubelet_drop_what_has_ended(reader: Reader) -> None:
    reader.kubelet.entries = [entry("gone", "main", "a")]
    reader.kubelet.write_checkpoint()
    assert reader.record.read() == set()


def test_without_the_kubelet_nothing_is_known(reader: Reader) -> None:
    reader.kubelet.stop()
    with pytest.raises(KubeletError, match="does not answer on"):
        reader.record.read()


def test_without_a_stream_nothing_is_known(reader: Reader) -> None:
    reader.listens = False
    with pytest.raises(KubeletError, match="does not listen"):
        reader.record.read()


def test_a_checkpoint_of_before_says_nothing(reader: Reader) -> None:
    reader.kubelet.write_checkpoint()
    reader.writes = False
    with pytest.raises(KubeletError, match=r"within 5 s"):
        reader.record.read()
    assert 5.0 <= reader.now < 6.0


def checkpoint(**changes: Any) -> bytes:
    """As a kubelet writes it (1.36.3, ``checkpoint/checkpoint.go``)."""
    made: dict[str, Any] = {
        "PodUID": "uid-pod",
        "ContainerName": "main",
        "ResourceName": RESOURCE,
        "DeviceIDs": {"0": ["a"], "1": ["b"]},
        "AllocResp": "Cg0KA0ZPTw==",
    }
    entries = [made | changes]
    data = {"PodDeviceEntries": entries, "RegisteredDevices": {RESOURCE: ["a"]}}
    return json.dumps({"Data": data, "Checksum": 1}).encode()


def read(folder: Path, content: bytes) -> tuple[Recorded, ...]:
    file = folder / "checkpoint"
    file.write_bytes(content)
    return read_checkpoint(file)


def test_devices_of_several_numa_nodes_are_of_one_container(tmp_path: Path) -> None:
    assert read(tmp_path, checkpoint()) == (recorded("uid-pod", "main", "a", "b"),)


def test_a_kubelet_that_gave_nothing_out(tmp_path: Path) -> None:
    assert read(tmp_path, b'{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}}}') == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"Data":{}}',
        b'{"Data":{"PodDeviceEntries":[{}]}}',
        checkpoint(DeviceIDs=["a"]),
        checkpoint(DeviceIDs={"0": "a"})[:-4],
        b"\xff",
    ],
    ids=["empty", "a list", "no entries", "a bare entry", "before 1.20", "cut", "no text"],
)
def test_another_form_is_not_taken_for_an_empty_one(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(KubeletError, match="unknown format"):
        read(tmp_path, content)


def test_a_checkpoint_that_cannot_be_read(reader: Reader) -> None:
    folder = reader.kubelet.folders.checkpoint

    def tell() -> bool:
        folder.mkdir()
        return True

    record = KubeletRecord(replace(Folders.of(folder), checkpoint=folder), send_list=tell)
    with pytest.raises(KubeletError, match="cannot be read"):
        record.checkpoint()
    assert known_checkpoint(folder) == ()
