"""What the documentation names is there, and what people meet is in the documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import yaml

from controller.legacy_resources.publisher import TRANSLATED as LIMITS_TRANSLATED
from dra_driver.agent import events
from dra_driver.model import names
from dra_driver.model.claims.packing import Packing
from dra_driver.model.effects import Point
from tests.cluster.versions import REAL
from tests.e2e.page_steps import commands_in

CHECKOUT: Final = Path(__file__).parents[2]
PAGES: Final = sorted(
    [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("charts/**/*.md")]
)
READ_BY_PEOPLE: Final = [
    *PAGES,
    *CHECKOUT.glob("examples/**/*.md"),
    *CHECKOUT.glob("resourceclasses/**/*.md"),
    *CHECKOUT.glob("charts/*/templates/NOTES.txt"),
]
SOURCES: Final = sorted(
    path
    for folder in ("dra_driver", "controller", "kubectl_gcu", "tests", "bench", "scripts")
    for path in (CHECKOUT / folder).rglob("*.py")
)

_LINK: Final = re.compile(r"\]\((?!https?://)([^)\s]+)\)")
_FILE: Final = re.compile(r"`([\w./-]+\.py)(?:::\w+)?`")
# By its name alone, by file and name, or in one case of its table.
_TEST: Final = re.compile(r"`(?:[\w./-]+\.py::)?(test_\w+)(?:\[[^`]*\])?`")
_TARGET: Final = re.compile(r"`(?:sudo )?make ([a-z][a-z-]*)\b")
_SLICES: Final = re.compile(r"kubectl get resourceslices?\b[^`\n]*")
# An event of the type Normal, by the name of its constant.
_NORMAL: Final = re.compile(r"(?:\.normal|\._inform)\(\s*([A-Z_]+),")
_SET: Final = re.compile(r"--set[ =]([\w.-]+)=")
_YAML: Final = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_REASON: Final = re.compile(r"Gcu[A-Z][A-Za-z]+")
# First cell of the table of effects: a name, or several.
_POINTS: Final = re.compile(r"^\| ((?:`[a-z]+\.[a-z-]+`(?:, )?)+) \|", re.MULTILINE)
# Other words of that form: the kind of the opaque configuration, the root of the error classes.
_NOT_REASONS: Final = frozenset({"GcuConfig", "GcuError"})


def relative(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def found_in(pages: Iterable[Path], look: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """What is wrong in each page, by the page's name; pages without anything are left out."""
    return {relative(page): wrong for page in pages if (wrong := sorted(look(page)))}


@cache
def headings(page: Path) -> frozenset[str]:
    """The anchors that GitHub makes of a page's headings."""
    lines = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL).splitlines()
    titles = (line.lstrip("#").strip().lower() for line in lines if line.startswith("#"))
    return frozenset(re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles)


def dead_links(page: Path) -> Iterator[str]:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            yield link


@cache
def event_reasons() -> frozenset[str]:
    """Those that the programs give: constants of modules, as ``NAME = "GcuSomething"``."""
    paths = [each for each in SOURCES if relative(each).startswith(("dra_driver/", "controller/"))]
    return frozenset(
        node.value.value
        for path in paths
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and _REASON.fullmatch(node.value.value)
    )


def test_links_lead_somewhere() -> None:
    assert found_in(PAGES, dead_links) == {}


def test_the_index_lists_every_page_and_each_leads_back() -> None:
    index = CHECKOUT / "docs" / "README.md"
    pages = {page: page.read_text(encoding="utf-8") for page in CHECKOUT.glob("docs/*/*.md")}
    listed = _LINK.findall(index.read_text(encoding="utf-8"))
    assert {index.parent / link for link in listed} >= set(pages)
    assert [relative(page) for page, text in pages.items() if "](../README.md" not in text] == []


def test_files_that_are_named_exist() -> None:
    known = {"/".join(path.parts[-n:]) for path in SOURCES for n in range(1, len(path.parts))}

    def missing(page: Path) -> Iterable[str]:
        return set(_FILE.findall(page.read_text(encoding="utf-8"))) - known

    assert found_in(PAGES, missing) == {}


def test_tests_that_are_named_exist() -> None:
    """They are what a page gives as its proof."""
    texts = (path.read_text(encoding="utf-8") for path in SOURCES)
    known = {
        name for text in texts for name in re.findall(r"^ *def (test_\w+)", text, re.MULTILINE)
    }

    def missing(page: Path) -> Iterable[str]:
        return set(_TEST.findall(page.read_text(encoding="utf-8"))) - known

    assert found_in(PAGES, missing) == {}


def test_make_targets_that_are_named_exist() -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))
    measured = {f"bench-{path.parent.name}" for path in CHECKOUT.glob("bench/*/__main__.py")}
    measured |= {f"bench-{path.stem}" for path in CHECKOUT.glob("bench/*.py")}

    def missing(page: Path) -> Iterable[str]:
        named = set(_TARGET.findall(page.read_text(encoding="utf-8"))) - {"bench-"}
        return named - known - measured

    assert found_in(PAGES, missing) == {}


def test_no_page_takes_the_bare_list_of_slices_for_a_list_of_cards() -> None:
    """kubectl's own columns are NODE, DRIVER, POOL and AGE."""
    texts = [page.read_text(encoding="utf-8").replace("\\\n", " ") for page in READ_BY_PEOPLE]
    commands = [command for text in texts for command in _SLICES.findall(text)]
    assert len(commands) > 3
    named = "`kubectl get resourceslices` itself lists the slices"
    bare = [each for each in commands if " -o " not in each and " -l" not in each]
    assert len(bare) == sum(text.count(named) for text in texts), bare


def alerts() -> set[str]:
    """Of the chart, without those that are called as an event is."""
    text = (CHECKOUT / "charts/gcu-dra-driver/files/alerts.yaml").read_text(encoding="utf-8")
    return set(re.findall(r"alert: (\w+)", text)) - event_reasons()


def test_every_event_has_its_place_in_the_users_pages() -> None:
    pages = "".join(p.read_text(encoding="utf-8") for p in CHECKOUT.glob("docs/user/*.md"))
    given, told = event_reasons(), set(_REASON.findall(pages)) - alerts()
    assert len(given - _NOT_REASONS) > 10
    assert (given ^ told) - _NOT_REASONS == set()


def test_the_page_of_events_lists_each_once() -> None:
    page = (CHECKOUT / "docs/user/events.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`Gcu[^|]*) \|", page, flags=re.MULTILINE)
    listed = sorted(name for cell in cells for name in re.findall("`(.+?)`", cell))
    assert listed == sorted(event_reasons() - _NOT_REASONS)


def test_it_is_said_who_runs_the_commands_of_a_page() -> None:
    text = (CHECKOUT / "docs/dev/promises.md").read_text(encoding="utf-8")
    table = text.partition("\n## Commands of pages\n")[2]
    rows = dict(re.findall(r"^\| \[([\w.-]+)\]\(\S+\) \| (.+) \|$", table, flags=re.MULTILINE))
    pages = {page.name: page for page in CHECKOUT.glob("docs/user/*.md") if commands_in(page)}
    assert rows.keys() == pages.keys()
    unrun = [name for name, by in rows.items() if by.startswith("nothing")]
    assert [name for name in unrun if "*untried*" not in pages[name].read_text("utf-8")] == []
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", table))
    assert [name for name in sorted(named) if not (CHECKOUT / name).exists()] == []


def test_values_that_are_set_exist() -> None:
    path = CHECKOUT / "charts/gcu-dra-driver/values.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))

    def is_value(name: str) -> bool:
        found = values
        for part in name.split("."):
            if not found and isinstance(found, dict):
                break  # names of users, as below simulation.nodes
            if part not in found:
                return False
            found = found[part]
        return True

    def missing(page: Path) -> Iterable[str]:
        named = _SET.findall(page.read_text(encoding="utf-8"))
        return (name for name in named if not is_value(name))

    assert found_in(READ_BY_PEOPLE, missing) == {}


def test_manifests_are_yaml() -> None:
    def empty(page: Path) -> Iterator[str]:
        for indent, block in _YAML.findall(page.read_text(encoding="utf-8")):
            text = "\n".join(line.removeprefix(indent) for line in block.splitlines())
            try:
                is_full = bool(list(yaml.load_all(text, yaml.CSafeLoader)))
            except yaml.YAMLError as error:
                yield f"{error}\n{block}"
            else:
                yield from () if is_full else (block,)

    assert found_in(READ_BY_PEOPLE, empty) == {}


def test_the_page_of_events_names_those_that_are_normal() -> None:
    page = (CHECKOUT / "docs/user/events.md").read_text(encoding="utf-8")
    listed = _REASON.findall(page.partition("The type of ")[2].partition(" is Normal")[0])
    sources = [path.read_text("utf-8") for path in CHECKOUT.glob("dra_driver/agent/**/*.py")]
    called = {name for text in sources for name in _NORMAL.findall(text)}
    of_agent = {getattr(events, name) for name in called}
    assert sorted(listed) == sorted({*of_agent, LIMITS_TRANSLATED})


def test_the_page_on_crash_safety_lists_every_point_once() -> None:
    page = (CHECKOUT / "docs/dev/crash-safety.md").read_text(encoding="utf-8")
    table = page.partition("\n## Where\n")[2].partition("\n## ")[0]
    listed = [name for cell in _POINTS.findall(table) for name in re.findall("`(.+?)`", cell)]
    assert sorted(listed) == sorted(Point)


def test_the_page_on_choices_describes_every_packing_policy() -> None:
    page = (CHECKOUT / "docs/user/how-a-device-is-chosen.md").read_text(encoding="utf-8")
    missing = [policy.value for policy in Packing if f"**{policy}**" not in page]
    assert not missing, f"docs/user/how-a-device-is-chosen.md does not describe {missing}"


def test_the_page_on_sharing_lists_every_variable_of_a_container() -> None:
    page = (CHECKOUT / "docs/user/sharing.md").read_text(encoding="utf-8")
    table = page.partition("| variable | value |")[2].partition("\n\n")[0]
    variables = {value for name, value in vars(names).items() if name.startswith("ENV_")}
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert listed == variables, "the table in docs/user/sharing.md differs from ENV_… in names.py"


def test_the_table_of_versions_is_the_matrix() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## Kubernetes versions")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| (1[.0-9]+) \|", table, flags=re.MULTILINE)) == sorted(REAL)


@pytest.mark.parametrize(
    "page",
    ["README.md", *(f"docs/user/{n}.md" for n in ("sharing", "concepts", "quota", "install"))],
)
def test_pages_about_classes_name_each_of_them(page: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    classes = [each.stem for each in (CHECKOUT / "resourceclasses").glob("*.yaml")]
    assert len(classes) > 3
    assert [each for each in classes if not re.search(rf"(?<![\w-]){re.escape(each)}", text)] == []
