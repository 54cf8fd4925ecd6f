"""What helm makes of the chart, as objects."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dra_driver.model.claims.claim import Object
from tests.cluster.errors import CommandError
from tests.cluster.processes import run

CHECKOUT = Path(__file__).parents[2]
CHART = CHECKOUT / "charts" / "gcu-dra-driver"
RELEASE = "gcu-dra-driver"
NAMESPACE = "gcu-system"

Values = dict[str, Any]


class Rendered:
    """The objects of one rendering."""

    def __init__(self, objects: list[Object]) -> None:
        self._objects = objects

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects)

    def of(self, kind: str) -> list[Object]:
        return [each for each in self._objects if each["kind"] == kind]

    def one(self, kind: str, name: str = "") -> Object:
        """The object of that kind, whose name has `name` in it."""
        [found] = [each for each in self.of(kind) if name in each["metadata"]["name"]]
        return found

    @property
    def agent(self) -> Object:
        """The pod of the agents' DaemonSet."""
        return _pod(self.one("DaemonSet", "-agent"))

    @property
    def controller(self) -> Object:
        """The pod of the Deployment."""
        return _pod(self.one("Deployment"))


class Helm:
    """The program, with folders of its own in `home`."""

    def __init__(self, program: Path, home: Path) -> None:
        self.program = program
        self._home = home
        self._rendered: dict[str, bytes] = {}
        self._notes: dict[str, str] = {}

    def run(self, *arguments: str | Path) -> str:
        """Raises CommandError."""
        environment = {
            f"HELM_{kind}_HOME": str(self._home / kind.lower())
            for kind in ("CACHE", "CONFIG", "DATA")
        }
        return run([self.program, *arguments], environment=environment)

    def render(self, values: Values | None = None, *flags: str, release: str = RELEASE) -> Rendered:
        """`helm template`, called once for the same values and flags; the objects are the caller's
        own. Raises CommandError."""
        key = json.dumps([values or {}, flags, release], sort_keys=True)
        if key not in self._rendered:
            self._rendered[key] = pickle.dumps(self._template(values, *flags, release=release))
        return Rendered(pickle.loads(self._rendered[key]))

    def render_anew(self, values: Values | None = None, *flags: str) -> Rendered:
        """Like `render`, with keys and certificates of its own."""
        return Rendered(self._template(values, *flags, release=RELEASE))

    def notes(self, values: Values | None = None) -> str:
        """What `helm install` prints in the end."""
        key = json.dumps(values or {}, sort_keys=True)
        if key not in self._notes:
            chosen = self._values(values)
            text = self.run("install", RELEASE, CHART, "--dry-run=client", *chosen)
            self._notes[key] = text.partition("NOTES:")[2]
        return self._notes[key]

    def refusal(self, values: Values | None = None, *flags: str, release: str = RELEASE) -> str:
        """What helm says about values that the chart does not take."""
        try:
            self.render(values, *flags, release=release)
        except CommandError as error:
            return error.output
        raise AssertionError(f"helm takes {values} {flags}")

    def _template(self, values: Values | None, *flags: str, release: str) -> list[Object]:
        chosen = self._values(values)
        text = self.run("template", release, CHART, f"--namespace={NAMESPACE}", *chosen, *flags)
        return objects_of(text)

    def _values(self, values: Values | None) -> list[str]:
        if values is None:
            return []
        file = self._home / "values.json"
        file.write_text(json.dumps(values))
        return [f"--values={file}"]


def objects_of(text: str) -> list[Object]:
    """The documents of a text of YAML that are not empty. libyaml takes a tenth of the time."""
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def environment(container: Object) -> dict[str, str]:
    """The container's variables that have a value of their own."""
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def fields(container: Object) -> dict[str, str]:
    """The container's variables that are taken from a field of its pod."""
    return {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in container["env"]
        if "valueFrom" in each
    }


def _pod(workload: Object) -> Object:
    pod: Object = workload["spec"]["template"]["spec"]
    return pod
