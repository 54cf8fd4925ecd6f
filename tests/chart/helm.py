"""What helm makes of the chart, as objects."""

from __future__ import annotations

import json
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

    def run(self, *arguments: str | Path) -> str:
        """Raises CommandError."""
        environment = {
            f"HELM_{kind}_HOME": str(self._home / kind.lower())
            for kind in ("CACHE", "CONFIG", "DATA")
        }
        return run([self.program, *arguments], environment=environment)

    def render(self, values: Values | None = None, *flags: str, release: str = RELEASE) -> Rendered:
        """`helm template`. Raises CommandError."""
        chosen = self._values(values)
        text = self.run("template", release, CHART, f"--namespace={NAMESPACE}", *chosen, *flags)
        return Rendered([each for each in yaml.safe_load_all(text) if each])

    def notes(self, values: Values | None = None) -> str:
        """What `helm install` prints in the end."""
        text = self.run("install", RELEASE, CHART, "--dry-run=client", *self._values(values))
        return text.partition("NOTES:")[2]

    def refusal(self, values: Values | None = None, *flags: str, release: str = RELEASE) -> str:
        """What helm says about values that the chart does not take."""
        try:
            self.render(values, *flags, release=release)
        except CommandError as error:
            return error.output
        raise AssertionError(f"helm takes {values} {flags}")

    def _values(self, values: Values | None) -> list[str]:
        if values is None:
            return []
        file = self._home / "values.json"
        file.write_text(json.dumps(values))
        return [f"--values={file}"]


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
