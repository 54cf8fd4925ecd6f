"""helm takes the values of every command that a page shows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import pytest

from tests.chart.helm import CHECKOUT, Helm
from tests.e2e.page_steps import Command, commands_in

PAGES: Final = sorted(
    [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/user/*.md"), *CHECKOUT.glob("charts/*/*.md")]
)


def shown() -> Iterator[tuple[str, Command]]:
    """The flags `--set` of each install or upgrade, with the page; of an upgrade that reuses
    values, after those of the page's command before it."""
    for page in PAGES:
        before: Command = ()
        for command in commands_in(page):
            if command[0] == "helm" and {"install", "upgrade"} & set(command):
                pairs = pairwise(command)
                flags = tuple(f"{flag}={value}" for flag, value in pairs if flag == "--set")
                before = (*before, *flags) if "--reuse-values" in command else flags
                yield page.name, before


SHOWN: Final = tuple(shown())


def test_pages_show_commands() -> None:
    assert len(SHOWN) > 8


@pytest.mark.parametrize(("page", "flags"), SHOWN, ids=str)
def test_a_command(helm: Helm, page: str, flags: Command) -> None:
    assert helm.render({}, *flags, "--kube-version=1.37.1").controller, page
