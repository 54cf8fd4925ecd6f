"""A real server and kubectl understand every `kubectl get` that a page of users shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.page_steps import Command, commands_in

pytestmark = pytest.mark.control_plane

ITS_OWN: Final = {"configmap", "secret", "serviceaccount"}
PAGES: Final = sorted((Path(__file__).parents[2] / "docs/user").glob("*.md"))


def shown() -> Iterator[Command]:
    """Each one's arguments, without what a shell does with the output."""
    for page in PAGES:
        for program, *arguments in commands_in(page):
            # The chart is not installed here, so these objects of its are not there.
            if program == "kubectl" and "get" in arguments and not ITS_OWN & {*arguments}:
                ends = [arguments.index(each) for each in (">", "|") if each in arguments]
                yield tuple(arguments[: min(ends, default=None)])


COMMANDS: Final = tuple(shown())


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command(control_plane: Cluster, command: Command) -> None:
    """It fails for an unknown resource, field selector, flag or JSONPath."""
    control_plane.kubectl(*command)


def test_pages_show_commands() -> None:
    assert len(COMMANDS) > 5
