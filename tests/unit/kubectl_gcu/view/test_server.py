"""Who is served what on 127.0.0.1."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from kubectl_gcu.view import page
from kubectl_gcu.view.publisher import PagePublisher
from kubectl_gcu.view.server import PageServer, message
from kubectl_gcu.view.snapshot import PageSnapshot


class Site:
    """A running server, and what it shows: `nodes` and `lost`."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {"claims/a": {"name": "a"}}
        self.publisher = PagePublisher(lambda: PageSnapshot(dict(self.nodes), {"lost": ""}))
        self.server = PageServer(0, self.publisher, lambda *name: {"asked": list(name)})
        self.port = self.server.server_port
        self.server.start()

    def get(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        return connection.getresponse()

    def status(self, path: str, method: str = "GET", **headers: str) -> int:
        with closing(self.get(path, method, **headers)) as answer:
            answer.read()
            return answer.status

    @property
    def token(self) -> str:
        return self.server.address.partition("token=")[2]

    def enter(self) -> str:
        """The cookie of whoever opens the address."""
        with closing(self.get(f"/?token={self.token}")) as answer:
            assert answer.status == 200
            return str(answer.headers["Set-Cookie"]).partition(";")[0]


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    yield found
    found.publisher.stop()
    found.server.stop()


def test_the_address_is_good_once_and_then_the_cookie(site: Site) -> None:
    with closing(site.get(f"/?token={site.token}")) as answer:
        assert b'content="0;url=/"' in answer.read()
        cookie, *attributes = str(answer.headers["Set-Cookie"]).split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes)
    assert str(site.port) in cookie
    assert site.token not in cookie
    assert site.status("/", Cookie=cookie) == 200
    assert site.status(f"/?token={site.token}") == 403
    assert site.status(f"/?token={site.token}", Cookie=cookie) == 200
    assert site.status("/?token=wrong") == 403


@pytest.mark.parametrize("path", ["/", "/app.js", "/events", "/explain?namespace=a&name=b", "/x"])
@pytest.mark.parametrize("cookie", ["", "kubectl-gcu-view-0=x", 'a="b', "\x00"])
def test_without_the_cookie_there_is_nothing(site: Site, path: str, cookie: str) -> None:
    assert site.status(path, Cookie=cookie) == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Host": "evil.example:{port}"}, 421, id="DNS rebinding"),
        pytest.param({"Host": "127.0.0.1"}, 421, id="no port"),
        pytest.param({"Host": ""}, 421, id="no host"),
        pytest.param({"Host": "LOCALHOST:{port}"}, 200, id="localhost"),
        pytest.param({"Origin": "http://evil.example"}, 421, id="a page of another site"),
        pytest.param({"Origin": "null"}, 421, id="a file"),
        pytest.param({"Origin": "http://127.0.0.1:{port}"}, 200, id="its own page"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="caused by another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="caused by another port"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, 200, id="caused by itself"),
        pytest.param({"Sec-Fetch-Site": "none"}, 200, id="typed"),
    ],
)
def test_other_sites_get_nothing(site: Site, headers: Mapping[str, str], status: int) -> None:
    cookie = site.enter()
    given = {name: value.format(port=site.port) for name, value in headers.items()}
    with closing(site.get("/", Cookie=cookie, **given)) as answer:
        assert answer.status == status
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_token_from_another_site_is_not_redeemed(site: Site) -> None:
    assert site.status(f"/?token={site.token}", Host=f"evil.example:{site.port}") == 421
    assert site.status(f"/?token={site.token}") == 200


def test_every_answer_has_the_policy(site: Site) -> None:
    cookie = site.enter()
    for path, headers in (("/", {"Cookie": cookie}), ("/nothing", {"Cookie": cookie}), ("/", {})):
        with closing(site.get(path, **headers)) as answer:
            assert answer.headers["Content-Security-Policy"] == page.POLICY
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
        assert part in page.POLICY
    assert "unsafe" not in page.POLICY


def test_files_are_served_and_nothing_beside_them(site: Site) -> None:
    cookie = site.enter()
    for name in page.FILES:
        with closing(site.get(f"/{name}", Cookie=cookie)) as answer:
            assert answer.read().decode() == page.read(name)
            assert answer.headers["Content-Type"] == page.media_type(name)
    for path in ("/../command.py", "/static/app.js", "//etc/passwd", "/%2e%2e/server.py"):
        assert site.status(path, Cookie=cookie) == 404
    assert site.status("/", "POST", Cookie=cookie) == 501


def test_an_event_is_one_line_of_data_and_nothing_is_sent_of_what_is_known() -> None:
    one = PageSnapshot({"claims/a": {"name": "a\nb\u2028"}}, {"lost": ""})
    name, data, *end = message(None, one).decode().split("\n")
    assert (name, end) == ("event: snapshot", ["", ""])
    assert json.loads(data.removeprefix("data: ")) == one.data()
    assert message(one, one) == b""


def _event(answer: http.client.HTTPResponse) -> tuple[str, Any]:
    name, data, end = (answer.readline().decode() for _ in range(3))
    assert (name[:7], data[:6], end) == ("event: ", "data: ", "\n")
    return name[7:-1], json.loads(data[6:])


def test_events_are_everything_once_and_then_what_has_changed(site: Site) -> None:
    with closing(site.get("/events", Cookie=site.enter())) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        site.publisher.publish()
        assert _event(answer) == ("snapshot", {"nodes": [{"name": "a"}], "lost": ""})
        site.nodes["claims/b"] = {"name": "b"}
        site.publisher.publish()
        assert _event(answer) == ("changes", {"nodes": [{"name": "b"}]})
        del site.nodes["claims/a"]
        site.publisher.publish()
        assert _event(answer) == ("changes", {"gone": ["claims/a"]})
        site.publisher.stop()
        assert answer.read() == b""


def test_a_pod_is_explained(site: Site) -> None:
    path = "/explain?namespace=team&name=%3Cscript%3E"
    with closing(site.get(path, Cookie=site.enter())) as answer:
        assert json.load(answer) == {"asked": ["team", "<script>"]}
        assert answer.headers["Content-Type"] == "application/json"
