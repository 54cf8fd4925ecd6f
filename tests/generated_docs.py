"""Tables of docs/ and texts of the chart whose source is code: ``make docs`` writes them.

On a page such a table is between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Final, TypeVar

import yaml

from controller import metric_specs as controller_specs
from dra_driver.agent import metric_specs as agent_specs
from dra_driver.hardware import seen_versions
from dra_driver.telemetry.metric_spec import BUILD_INFO, CounterSpec, HistogramSpec, MetricSpec
from kubectl_gcu.checks import (
    cards,
    claims,
    gates,
    holders,
    nodes,
    other_allocator,
    policies,
    programs,
    rights,
    shares,
    unbound,
    versions,
)
from kubectl_gcu.checks.finding import Check
from tests import chart_values, reference_tables

T = TypeVar("T")

CHECKOUT: Final = Path(__file__).parents[1]
_ALERTS: Final = CHECKOUT / "charts/gcu-dra-driver/files/alerts.yaml"
_VALUES: Final = {
    "WAITING_SECONDS": "waitingSeconds",
    "ALLOWED_NAMESPACES": "vendorRuntime.allowedNamespaces",
}
_EXPRESSION: Final = re.compile(r"{{[^}]*}}")


def values_of(kind: type[T], *modules: ModuleType) -> list[T]:
    """All variables of the modules that are of that type, in their order."""
    return [each for module in modules for each in vars(module).values() if isinstance(each, kind)]


CHECKS: Final = values_of(
    Check,
    programs,
    gates,
    versions,
    shares,
    rights,
    policies,
    nodes,
    cards,
    claims,
    unbound,
    holders,
    other_allocator,
)


AGENT_METRICS: Final = values_of(MetricSpec, agent_specs)
CONTROLLER_METRICS: Final = values_of(MetricSpec, controller_specs)


def exported_name(spec: MetricSpec) -> str:
    """With the suffix that Prometheus' text format adds to a counter."""
    return f"{spec.name}_total" if isinstance(spec, CounterSpec) else spec.name


def _metrics(specs: Iterable[MetricSpec]) -> str:
    lines = ["| metric | kind, labels | meaning |", "|---|---|---|"]
    for each in specs:
        kind = {CounterSpec: "counter", HistogramSpec: "histogram"}.get(type(each), "gauge")
        labels = f": {', '.join(f'`{label}`' for label in each.labels)}" if each.labels else ""
        lines.append(f"| `{exported_name(each)}` | {kind}{labels} | {each.help} |")
    return "\n".join(lines) + "\n"


def seen() -> str:
    """The models and versions with which this driver was seen."""
    lines = [
        "| model | vendor's driver and `efsmi` | this driver has | source |",
        "|---|---|---|---|",
    ]
    for each in seen_versions.SEEN:
        oldest, newest = (".".join(map(str, version)) for version in (each.oldest, each.newest))
        did = "run on this card" if each.run else "read what `efsmi` printed there"
        lines.append(f"| {each.model} | {oldest} to {newest} | {did} | {each.source} |")
    return "\n".join(lines) + "\n"


def _findings() -> str:
    rows = [f"| `{each.name}` | {each.reports} |" for each in CHECKS]
    return "\n".join(["| finding | means |", "|---|---|", *rows]) + "\n"


def _alerts() -> str:
    lines = ["| alert | severity | fires when | what to do |", "|---|---|---|---|"]
    for group in yaml.safe_load(_ALERTS.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            expression = rule["expr"].replace("|", "\\|")
            for word, value in _VALUES.items():
                expression = expression.replace(word, value)
            after = f", for {rule['for']}" if "for" in rule else ""
            note = rule["annotations"]
            page = Path(note["page"]).name
            what = _EXPRESSION.sub("…", note["description"])
            lines.append(
                f"| `{rule['alert']}` | {rule['labels']['severity']} | `{expression}`{after} | "
                f"{what} [{page}]({page}) |"
            )
    return "\n".join(lines) + "\n"


TABLES: Final[Mapping[tuple[str, str], Callable[[], str]]] = MappingProxyType(
    {
        ("docs/user/monitoring.md", "agent metrics"): lambda: _metrics(AGENT_METRICS),
        ("docs/user/monitoring.md", "controller metrics"): lambda: _metrics(
            [*CONTROLLER_METRICS, BUILD_INFO]
        ),
        ("docs/user/monitoring.md", "alerts"): _alerts,
        ("docs/user/first-real-gcu.md", "seen versions"): seen,
        ("docs/user/reference.md", "attributes"): reference_tables.attributes,
        ("docs/user/reference.md", "capacities"): reference_tables.capacities,
        ("docs/user/reference.md", "config"): reference_tables.config,
        ("docs/user/reference.md", "taints"): reference_tables.taints,
        ("docs/user/reference.md", "annotations"): reference_tables.labels_and_annotations,
        ("docs/user/reference.md", "exit codes"): reference_tables.exit_codes,
        ("charts/gcu-dra-driver/README.md", "values"): chart_values.table,
        ("docs/user/values.md", "values"): chart_values.linked_table,
        ("docs/user/kubectl-gcu.md", "findings"): _findings,
    }
)
"""By page and name."""

FILES: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "charts/gcu-dra-driver/values.yaml": lambda text: chart_values.with_settings(
            text, chart_values.passed_settings()
        ),
        "charts/gcu-dra-driver/values.schema.json": lambda text: chart_values.with_descriptions(
            text, chart_values.values_of(chart_values.VALUES.read_text(encoding="utf-8"))
        ),
    }
)
"""What a file is to have, from what it has. The first is written before the tables are made."""


def with_table(text: str, name: str, table: str) -> str:
    """The page's text with that table. Raises ValueError where the page has no place for it."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no place for the table {name!r}")
    return f"{before}{begin}{table}{end}{after}"


def write(checkout: Path) -> list[str]:
    """Write the files and the tables that differ from what the code gives; returns the files, by
    their paths in the checkout."""
    changed = []
    pages = [(name, partial(_page, table, make)) for (name, table), make in TABLES.items()]
    texts: list[tuple[str, Callable[[str], str]]] = [*FILES.items(), *pages]
    for name, written_from in texts:
        path = checkout / name
        text = path.read_text(encoding="utf-8")
        written = written_from(text)
        if written != text:
            path.write_text(written, encoding="utf-8")
            changed.append(name)
    return list(dict.fromkeys(changed))


def _page(table: str, make: Callable[[], str], text: str) -> str:
    return with_table(text, table, make())


if __name__ == "__main__":
    write(CHECKOUT)
