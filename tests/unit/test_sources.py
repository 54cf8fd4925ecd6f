"""What no source file of the programs may do: start a shell, or run what it was given as code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

CHECKOUT: Final = Path(__file__).parents[2]
SOURCES: Final = sorted(
    path
    for package in CHECKOUT.iterdir()
    if (package / "__init__.py").exists() and package.name not in {"tests", "bench"}
    for path in package.rglob("*.py")
)
# The only file that starts a program: it gives `efsmi` a list of arguments.
STARTER: Final = "dra_driver/hardware/efsmi/runner.py"

SHELLS: Final = frozenset(
    {
        *("os.system", "os.popen", "pty.spawn"),
        *("subprocess.getoutput", "subprocess.getstatusoutput"),
        *("asyncio.create_subprocess_shell", "asyncio.subprocess.create_subprocess_shell"),
    }
)
CODE: Final = frozenset(
    {
        *("eval", "exec", "compile", "__import__", "code.interact"),
        *("pickle.load", "pickle.loads", "marshal.load", "marshal.loads", "shelve.open"),
        *("yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "yaml.unsafe_load_all"),
    }
)
STARTS: Final = ("os.exec", "os.spawn", "os.posix_spawn", "os.fork", "subprocess.")


def findings(source: str) -> Iterator[str]:
    """What of the forbidden the source has, as `<line>: <what>`; imports by another name are
    followed."""
    tree = ast.parse(source)
    names = dict(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg == "shell" and not off:
                    yield f"{node.lineno}: a shell"
        if isinstance(node, ast.Attribute | ast.Name):
            called = _full_name(node, names)
            if called in SHELLS or called in CODE:
                yield f"{node.lineno}: {called}"
            elif called.startswith(STARTS):
                yield f"{node.lineno}: starts a program"


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(name here, what it is)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name, each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module = node.module
            yield from ((each.asname or each.name, f"{module}.{each.name}") for each in node.names)


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_full_name(node.value, names)}.{node.attr}"
    return ""


def test_no_source_starts_a_shell_or_runs_data() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{each}"
        for path in SOURCES
        for each in findings(path.read_text(encoding="utf-8"))
    ]
    assert found
    assert [
        each
        for each in found
        if not (each.startswith(STARTER) and each.endswith("starts a program"))
    ] == []


def test_the_programs_are_looked_at() -> None:
    names = {path.relative_to(CHECKOUT).parts[0] for path in SOURCES}
    assert {"dra_driver", "controller", "kubectl_gcu"} <= names
    assert CHECKOUT / STARTER in SOURCES


@pytest.mark.parametrize(
    "source",
    [
        'subprocess.run("ls " + name, shell=True)',
        "import subprocess as s\ns.Popen(x, shell=flag)",
        "run(x, shell=1)",
        "import os\nos.system(x)",
        "from os import system\nsystem(x)",
        "from os import popen as p\nmap(p, x)",
        "import subprocess\nsubprocess.run(['ls'])",
        "import os\nos.execvp('sh', x)",
        "import pickle\npickle.loads(x)",
        "eval(x)",
        "import yaml\nyaml.unsafe_load(x)",
    ],
)
def test_what_is_forbidden_is_found(source: str) -> None:
    assert list(findings(source))


@pytest.mark.parametrize("source", ["run(x, shell=False)", "re.compile(x)", "a.evaluate(x)"])
def test_what_is_not_is_not(source: str) -> None:
    assert list(findings(source)) == []
