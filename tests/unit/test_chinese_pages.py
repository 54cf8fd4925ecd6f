"""The Chinese pages name their English pages and have the same commands. A page that is behind is
no failure: ``make docs-behind`` lists it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.chinese_pages import CHECKOUT, Followed, behind, chinese_pages, digest, followed

_BLOCK: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_PAGES: Final = pytest.mark.parametrize("chinese", chinese_pages(), ids=lambda page: page.name)


def blocks(page: Path) -> list[str]:
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def test_there_are_pages() -> None:
    assert {page.name for page in chinese_pages()} > {"README.zh.md", "quick-start.md"}


@_PAGES
def test_a_page_names_the_english_page_of_its_name(chinese: Path) -> None:
    english = CHECKOUT / followed(chinese).page
    assert english.is_file()
    assert english.name == chinese.name.replace(".zh.", ".")


@_PAGES
def test_a_page_has_the_commands_of_the_english_one(chinese: Path) -> None:
    english = blocks(CHECKOUT / followed(chinese).page)
    assert blocks(chinese) == english


@_PAGES
def test_both_pages_lead_to_each_other(chinese: Path) -> None:
    english = CHECKOUT / followed(chinese).page
    for page, other in ((chinese, english), (english, chinese)):
        links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
        assert other in {(page.parent / link).resolve() for link in links}


def test_what_is_behind_is_found(tmp_path: Path) -> None:
    english, chinese = tmp_path / "docs/user/a.md", tmp_path / "docs/zh/a.md"
    for page in (english, chinese):
        page.parent.mkdir(parents=True)
    english.write_text("# A\n")
    source = Followed("docs/user/a.md", 12 * "0", digest(english))
    chinese.write_text(f"{source}\n# 甲\n")
    assert list(behind(tmp_path)) == []
    english.write_text("# A\n\nMore.\n")
    assert list(behind(tmp_path)) == [(chinese, source)]


def test_a_page_without_its_source(tmp_path: Path) -> None:
    page = tmp_path / "README.zh.md"
    page.write_text("# 甲\n")
    with pytest.raises(ValueError, match=r"^README\.zh\.md: its first line is not"):
        followed(page)
