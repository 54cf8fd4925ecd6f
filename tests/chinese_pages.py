"""The Chinese pages, and which of them are behind their English page: ``make docs-behind``.

The first line of a Chinese page names the English page that it follows, the last commit of that
page, and the hash of its text. The hash decides, as a checkout may lack the history; the commit is
for a translator, who sees in ``git diff`` what has changed since.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[1]
_FIRST_LINE: Final = re.compile(
    r"<!-- follows (\S+), commit ([0-9a-f]{12}), sha256 ([0-9a-f]{16}) -->"
)


@dataclass(frozen=True, slots=True)
class Followed:
    """What a Chinese page follows: an English page by its path in the checkout, the page's last
    commit, and the first digits of the SHA-256 of its text."""

    page: str
    commit: str
    digest: str

    def __str__(self) -> str:
        return f"<!-- follows {self.page}, commit {self.commit}, sha256 {self.digest} -->"


def chinese_pages(checkout: Path = CHECKOUT) -> list[Path]:
    return [*checkout.glob("*.zh.md"), *sorted(checkout.glob("docs/zh/*.md"))]


def followed(chinese: Path) -> Followed:
    """Raises ValueError where the page does not begin with the line that names its source."""
    first = chinese.read_text(encoding="utf-8").partition("\n")[0]
    found = _FIRST_LINE.fullmatch(first)
    if found is None:
        raise ValueError(f"{chinese.name}: its first line is not like {Followed('PAGE', '…', '…')}")
    return Followed(*found.groups())


def digest(page: Path) -> str:
    """Of its text, without regard to how the checkout ends lines."""
    text = page.read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def behind(checkout: Path = CHECKOUT) -> Iterator[tuple[Path, Followed]]:
    """Each Chinese page whose English page has changed, and what it follows."""
    for chinese in chinese_pages(checkout):
        source = followed(chinese)
        if digest(checkout / source.page) != source.digest:
            yield chinese, source


def _last_commit(page: str) -> str:
    command = ["git", "log", "-1", "--format=%H", "--", page]
    return subprocess.check_output(command, cwd=CHECKOUT, text=True)[:12]


def main() -> None:
    found = list(behind())
    for chinese, source in found:
        now = Followed(source.page, _last_commit(source.page), digest(CHECKOUT / source.page))
        print(
            f"{chinese.relative_to(CHECKOUT)} is behind {source.page}: see\n"
            f"  git diff {source.commit} -- {source.page}\n"
            f"and when it is translated, let its first line be\n"
            f"  {now}"
        )
    if not found:
        print("No Chinese page is behind.")


if __name__ == "__main__":
    main()
