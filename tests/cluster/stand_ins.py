"""What stands in for a module that cannot be had: packages of another one, from which upstream has
moved them. A module file replaces the one by the folder that is written here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StandIn:
    """One such module.

    Its packages are the folders `packages` of the module `source`, which the module file of
    Kubernetes `pinned_by` pins, without tests and the files `without`. `imports` are import paths
    in them that differ, old and new, beside those of the module itself.
    """

    module: str
    source: str
    pinned_by: str
    packages: tuple[str, ...]
    without: tuple[str, ...] = ()
    imports: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> str:
        """Its name beside the module file: the last part of the module's."""
        return self.module.rpartition("/")[2]

    def write(self, source: Path, target: Path) -> None:
        """Copy the packages from the folder of the source's files, beside what `target` has."""
        for package in self.packages:
            for file in sorted((source / package).rglob("*.go")):
                if not file.name.endswith("_test.go") and file.name not in self.without:
                    place = target / file.relative_to(source)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(self._rewritten(file.read_text(encoding="utf-8")))

    def _rewritten(self, text: str) -> str:
        for old, new in ((self.source, self.module), *self.imports):
            text = text.replace(f'"{old}/', f'"{new}/')
        return text


APIEXTENSIONS_API = StandIn(
    "k8s.io/apiextensions-api",
    source="k8s.io/apiextensions-apiserver",
    pinned_by="1.37.2",
    packages=("pkg/apis/apiextensions/v1", "pkg/apis/apiextensions/v1beta1", "pkg/client"),
    without=("conversion.go", "zz_generated.conversion.go"),
    imports=(("sigs.k8s.io/structured-merge-diff/v6", "sigs.k8s.io/structured-merge-diff/v7"),),
)
"""Of 1.38: the types of CustomResourceDefinitions, and their clients."""
