"""The list of all checks, which docs/user/kubectl-gcu.md shows."""

from __future__ import annotations

import re
from pathlib import Path

from kubectl_gcu.checks.other_allocator import REFUSED_BY_OTHER
from kubectl_gcu.checks.versions import NEWEST
from tests.generated_docs import CHECKS
from tests.unit.kubectl_gcu.checks import (
    test_gates,
    test_nodes_and_pods,
    test_programs_and_cards,
    test_shares,
    test_unbound_pods,
    test_versions_and_policies,
)


def test_each_check_finds_a_fault_in_a_test() -> None:
    modules = (
        test_programs_and_cards,
        test_gates,
        test_shares,
        test_versions_and_policies,
        test_nodes_and_pods,
        test_unbound_pods,
    )
    shown = {line.partition(":")[0] for module in modules for _, line in module.FAULTS.values()}
    shown.add(REFUSED_BY_OTHER.name)  # test_other_allocator.py: with an option alone
    assert shown == {each.name for each in CHECKS}
    assert len(CHECKS) == len(shown)


def test_the_newest_server_is_the_readmes() -> None:
    readme = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
    tested = re.findall(r"^\| 1\.([0-9]+)\.[0-9]+ \|", readme, re.MULTILINE)
    assert max(map(int, tested)) == NEWEST[1]
