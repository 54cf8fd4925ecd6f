"""What a target of the Makefile passes on to its program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (
            ["bench-allocator", "ARGS=--fleet openb --nodes 15000"],
            "-m bench.allocator --fleet openb --nodes 15000",
        ),
        (["bench-packing"], "-m bench.packing"),
        (
            ["mutants", "SEED=7", "COUNT=3", "ARGS=--suite 'pytest -x tests/chart'"],
            "-m tests.mutants --seed 7 --count 3 --suite 'pytest -x tests/chart'",
        ),
        (["mutants"], "-m tests.mutants"),
        (["golden"], "-m tests.golden"),
        (
            ["soak-chaos", "MINUTES=10", "SEED=3", "ARGS=--allocator scheduler"],
            " /venv/bin/python ".join(
                [
                    "-m tests.cluster packages",
                    "-m tests.cluster build",
                    "-m tests.chaos --minutes 10 --seed 3 --allocator scheduler",
                ]
            ),
        ),
        (["lint"], "-m tests.tiers lint"),
    ],
)
def test_arguments_are_passed_on(arguments: list[str], command: str) -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "VENV=/venv", *arguments],
        cwd=CHECKOUT,
        env={name: each for name, each in os.environ.items() if name not in {"MAKEFLAGS", "ARGS"}},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert " ".join(printed.partition("/venv/bin/python ")[2].split()) == command
