"""The page's files: nothing is loaded from elsewhere, and as one file they are the same page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from kubectl_gcu.view import page

EVIL = '</script x><script>alert("1")</script><!-- \u202e\u2028 &amp;'


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] in {"script", "style"} and data.strip():
            self.texts.append((self.elements[-1][0], data))


@pytest.mark.parametrize("name", sorted(page.FILES))
def test_no_file_names_another_host_or_has_script_in_markup(name: str) -> None:
    text = page.read(name)
    assert "://" not in text
    forbidden = "innerHTML|outerHTML|insertAdjacentHTML|document.write|eval\\(|new Function"
    assert not re.search(forbidden, text)
    for _, attributes in Elements(text).elements if name == page.INDEX else ():
        assert not [key for key in attributes if key.startswith("on") or key == "style"]


def test_each_module_imports_earlier_ones_alone_and_their_names_differ() -> None:
    """So they are one module when they stand one after another."""
    names: Counter[str] = Counter()
    earlier: list[str] = []
    for module in page.MODULES:
        text = page.read(module)
        imported = re.findall(r'from "\./([^"]*)";', text)
        assert imported == [each for each in imported if each in earlier], module
        assert len(imported) == len(re.findall(r"^import ", text, re.MULTILINE)), module
        earlier.append(module)
        top = r"^(?:export )?(?:async )?(?:const|let|class|function\*?) (?:\{([^}]*)\}|(\w+))"
        names.update(one or other for one, other in re.findall(top, text, re.MULTILINE))
    assert [name for name, count in names.items() if count > 1] == []
    assert {"drawNode", "Cluster", "cluster", "WORDS", "follow"} <= names.keys()


def test_one_file_has_everything_in_it_and_its_policy_allows_that_alone() -> None:
    data = {"nodes": [{"name": EVIL}], "waiting": []}
    found = Elements(page.one_file(data))
    assert not [a for _, a in found.elements if "src" in a or a.get("rel") == "stylesheet"]
    [policy] = [
        str(a["content"])
        for _, a in found.elements
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    by_kind = {kind: text for kind, text in found.texts if not text.startswith("{")}
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(by_kind[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "connect-src 'none'" in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"^(import|export) ", by_kind["script"], re.MULTILINE)
    [saved] = [text for kind, text in found.texts if text.startswith("{")]
    assert "<" not in saved  # browsers end a script also at other forms of its end
    assert json.loads(saved) == data


def test_the_words_are_the_same_in_both_languages() -> None:
    text = page.read("words.js")
    by_language = re.findall(r"(?ms)^const (?:ENGLISH|CHINESE) = \{\n(.*?)^\};", text)
    english, chinese = (re.findall(r"^  (\w+): ", each, re.MULTILINE) for each in by_language)
    assert english == chinese
    used = "".join(map(page.read, page.FILES))
    for name in english:
        is_composed = name.startswith(("largest", "none"))
        assert is_composed or re.search(rf'"{name}"', used), name
