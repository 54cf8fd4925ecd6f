"""Chromium without a window, driven by the DevTools protocol over two pipes: what a page is, does,
costs and looks like."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from tests.cluster.waiting import PATIENCE, wait_until

# Nothing is fetched beside the page, and root has no sandbox of Chromium's.
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",
)
_END: Final = b"\0"  # of a message


class PageError(Exception):
    """The page, or Chromium itself, refused what the test asked for."""


class Chromium:
    """One browser with one page. `errors` has what its console says and its policy refuses."""

    def __init__(self, profile: Path, *, language: str = "en-US") -> None:
        """`profile` is a folder that does not exist yet."""
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        of_test = (f"--user-data-dir={profile}", f"--accept-lang={language}")
        pipes = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", "chromium", *_FLAGS, *of_test],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest = b""
        self._number = 0
        self.errors: list[str] = []
        self._session = ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Performance.enable", timeDomain="threadTicks")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """End the browser."""
        os.close(self._commands)
        self._process.terminate()
        self._process.wait()
        os.close(self._answers)

    def open(self, address: str) -> None:
        """Begin to load the page."""
        failed = self._call("Page.navigate", url=address).get("errorText")
        if failed:
            raise PageError(f"{address}: {failed}")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page, awaited if it is a promise."""
        answer = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise PageError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """The text of the first such element as it is shown; empty if there is none."""
        found = self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return str(found)

    def texts(self, selector: str) -> list[str]:
        """Of each such element its label, or its text, also where it is not drawn yet."""
        each = "each => each.ariaLabel ?? each.textContent"
        found: list[str] = self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map({each})"
        )
        return found

    def wait(self, script: str, timeout: float = PATIENCE) -> None:
        """Return once the expression is true."""
        wait_until(
            lambda: bool(self.run(f"Boolean({script})")),
            timeout,
            script,
            seen=lambda: self.text("body")[:2000],
        )

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key, such as ``ArrowRight``; with its text, a character."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text)

    def hover(self, selector: str) -> None:
        """Put the pointer on the middle of the element."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.run(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({box})")
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def view(self, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """The size of the window in CSS pixels, and the colour scheme that the user prefers."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        shot = self._call("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        return base64.b64decode(shot["data"])

    @contextmanager
    def spent(self) -> Iterator[Callable[[], float]]:
        """Gives how many seconds of a processor the page's main thread took within."""
        before = self._busy()
        yield lambda: self._busy() - before

    def _busy(self) -> float:
        metrics = self._call("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + _END)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self._receive()
            if answer.get("id") != self._number:
                self._note(answer)
            elif "error" in answer:
                raise PageError(f"{method}: {answer['error']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result
        raise PageError(f"{method}: no answer")

    def _receive(self) -> dict[str, Any]:
        while _END not in self._rest:
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise PageError("Chromium has ended")
            self._rest += chunk
        text, _, self._rest = self._rest.partition(_END)
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Log.entryAdded" if event["params"]["entry"]["level"] == "error":
                self.errors.append(event["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                self.errors.append(json.dumps(details.get("exception", details)))
            case "Runtime.consoleAPICalled" if event["params"]["type"] == "error":
                self.errors.append(json.dumps(event["params"]["args"]))
