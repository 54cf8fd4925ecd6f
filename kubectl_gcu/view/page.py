"""The page's files, and the page with all it shows as one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

_STATIC: Final = files("kubectl_gcu.view") / "static"
INDEX: Final = "index.html"
_STYLE: Final = "page.css"
MODULES: Final = ("words.js", "model.js", "cards.js", "details.js", "side.js", "app.js")
"""Each imports earlier ones alone."""

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
FILES: Final = frozenset({INDEX, _STYLE, *MODULES})

# Nothing is loaded from elsewhere, no script is in the page itself, and text is never markup.
_POLICY: Final = (
    "default-src 'none'; script-src {script}; style-src {style}; connect-src {connect}; "
    "img-src data:; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
POLICY: Final = (
    _POLICY.format(script="'self'", style="'self'", connect="'self'") + "; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page as it is served."""

_IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def read(name: str) -> str:
    """The text of one of `FILES`."""
    return (_STATIC / name).read_text(encoding="utf-8")


def media_type(name: str) -> str:
    """Of one of `FILES`."""
    return _TYPES[name.rpartition(".")[2]]


def one_file(data: Mapping[str, Any]) -> str:
    """The page of this data, which needs nothing else and asks nobody."""
    script, style = _one_module(), read(_STYLE)
    policy = _POLICY.format(script=_hash(script), style=_hash(style), connect="'none'")
    parts = {
        '<meta name="gcu-policy">': (
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        ),
        f'<link rel="stylesheet" href="{_STYLE}">': f"<style>{style}</style>",
        f'<script type="module" src="{MODULES[-1]}"></script>': (
            f'<script type="application/json" id="saved">{_embedded(data)}</script>\n'
            f'<script type="module">{script}</script>'
        ),
    }
    page = read(INDEX)
    for mark, part in parts.items():
        before, found, after = page.partition(mark)
        assert found, mark
        page = before + part + after
    return page


def _one_module() -> str:
    """The modules one after another. Their top-level names differ."""
    return "".join(_EXPORT.sub("", _IMPORT.sub("", read(name))) for name in MODULES)


def _embedded(data: Mapping[str, Any]) -> str:
    """As JSON that ends no script element, whatever names there are in it."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
