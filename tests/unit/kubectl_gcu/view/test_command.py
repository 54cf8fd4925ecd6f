"""`kubectl gcu view`, from the command line to the end."""

from __future__ import annotations

import http.client
import io
import json
import sys
import threading
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dra_driver.kube.resources import RESOURCE_CLAIMS
from kubectl_gcu import main
from kubectl_gcu.arguments import parser
from kubectl_gcu.main import FAILED
from kubectl_gcu.view.command import Explainer, view
from tests.browser.fleet import fleet
from tests.cluster.waiting import wait_until
from tests.fake_api.api import FakeApi
from tests.unit.kubectl_gcu.command import gcu

_SECONDS = 60.0


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    found = FakeApi(*fleet(2, waiting=3))
    monkeypatch.setattr(main, "connect", lambda *_, **__: found)
    return found


def options(*arguments: str) -> list[str]:
    return ["view", "--namespace=default", *arguments]


def test_one_file_has_the_moment_with_explanations(api: FakeApi, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    code, out, _ = gcu(api, "view", f"--output={path}")
    assert (code, out) == (0, f"written: {path}\n")
    text = path.read_text()
    data = json.loads(text.partition('id="saved">')[2].partition("</script>")[0])
    assert data["totals"]["cards"] == 16
    assert data["explained"].keys() == {each["uid"] for each in data["waiting"]}
    said = data["explained"]["pod-pending-1"]
    assert said == json.loads(json.dumps(Explainer(api)("team-vision", "pending-1")))
    assert ["asks", "1 of shared-gcu.enflame.com"] in said["statements"]


def test_a_file_that_cannot_be_written_is_an_error(api: FakeApi, tmp_path: Path) -> None:
    code, _, errors = gcu(api, "view", f"--output={tmp_path}")
    assert code == FAILED
    assert errors.startswith(f"error: {tmp_path} cannot be written: ")


def test_a_pod_that_is_gone_is_said(api: FakeApi) -> None:
    answer = Explainer(api)("team", "gone")
    assert answer["statements"] == []
    assert "gone" in answer["error"]


class Opened:
    """What the browser was asked to open."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    def __call__(self, address: str) -> bool:
        self.addresses.append(address)
        return True


@pytest.mark.parametrize(
    ("flags", "display"), [((), ":0"), ((), ""), (("--no-open",), ":0")], ids=str
)
def test_it_serves_until_it_is_ended(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], display: str
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name, value in (("DISPLAY", display), ("WAYLAND_DISPLAY", ""), ("BROWSER", "")):
        monkeypatch.setenv(name, value)
    opened, out, stop = Opened(), io.StringIO(), threading.Event()
    monkeypatch.setattr(webbrowser, "open", opened)
    arguments = parser().parse_args(options(*flags))
    program = threading.Thread(target=view, args=(api, arguments, out, stop))
    program.start()
    try:
        wait_until(out.getvalue, _SECONDS, "an address", interval=0.01)
        address = out.getvalue().split()[0]
        assert urlsplit(address).hostname == "127.0.0.1"
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=_SECONDS)
        connection.request("GET", f"/?{urlsplit(address).query}")
        answer = connection.getresponse()
        cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]
        answer.read()
        connection.request("GET", "/events", headers={"Cookie": cookie})
        events = connection.getresponse()
        lines = (events.readline().decode() for _ in iter(int, 1))
        first = next(each for each in lines if '"totals"' in each)
        assert json.loads(first.removeprefix("data: "))["totals"]["cards"] == 16
        held = next(each for each in api.all(RESOURCE_CLAIMS) if each["status"])
        api.remove(RESOURCE_CLAIMS, held["metadata"]["name"], held["metadata"]["namespace"])
        assert next(each for each in lines if each.startswith("event: ")) == "event: changes\n"
    finally:
        stop.set()
        program.join(_SECONDS)
    assert not program.is_alive()
    assert opened.addresses == ([address] if display and not flags else [])
    connection.close()
