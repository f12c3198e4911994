"""The security policy of a page: what its own scripts may do, and that nothing else may."""

from __future__ import annotations

import base64
import hashlib
import re

_INLINE_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.S)


def with_security_policy(html: str) -> str:
    """Allow scripts from this site and the page's own inline ones by hash, and nothing else.

    Styles may be inline: Material and Plotly set them from scripts.  No other host is named, so
    a request to one would be refused by the browser.
    """
    hashes = sorted({_hash(code) for code in _inline_scripts(html)})
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


def _inline_scripts(html: str) -> list[str]:
    found = _INLINE_SCRIPT.finditer(html)
    return [
        m["code"] for m in found if "src=" not in m["attributes"] and "json" not in m["attributes"]
    ]


def _hash(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
