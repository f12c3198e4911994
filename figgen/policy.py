"""The security policy of a page: it allows our own scripts and nothing else.

Inline scripts are allowed by hashes of the templates, never of a finished page: a script that was
injected, for instance by a name in a catalog, has no hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

_INLINE_SCRIPT = re.compile(r"<script>(?P<code>.*?)</script>", re.S)


def inline_scripts(templates: Path) -> tuple[str, ...]:
    """Return every inline script of the templates in a folder; it must be the same on all pages.

    Raises ValueError for a script that a template fills in.
    """
    found = []
    for path in sorted(templates.rglob("*.html")):
        for script in _INLINE_SCRIPT.finditer(path.read_text(encoding="utf-8")):
            if "{{" in script["code"] or "{%" in script["code"]:
                raise ValueError(
                    f"{path.name}: an inline script is filled in, no hash can allow it"
                )
            found.append(script["code"])
    return tuple(found)


def with_security_policy(html: str, allowed: Iterable[str] = ()) -> str:
    """Allow scripts from this site, the `allowed` inline ones by hash, and nothing else.

    Styles may be inline: Material and Plotly set them from scripts.  No other host is named, so
    a request to one would be refused by the browser.
    """
    hashes = sorted({_hash(code) for code in allowed})
    policy = "; ".join(
        (
            "default-src 'none'",
            " ".join(["script-src 'self'", *hashes]),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self'",
            "connect-src 'self'",
            "worker-src 'self' blob:",
            "base-uri 'self'",
            "form-action 'self'",
        )
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return html.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{meta}', 1)


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
