"""Facts about a page: its reading time, its last change, how to cite it, and its kind."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

# English non-fiction is read at 238 words a minute (Brysbaert 2019, a meta-analysis).
WORDS_PER_MINUTE = 220

_NOT_READ = re.compile(r"^---\n.*?\n---\n|^(```|~~~).*?^\1|<[^>]*>", re.S | re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Data for a page's footer and head; texts are empty where nothing is known."""

    minutes: int
    changed: str
    citation: str
    bibtex: str
    json_ld: str


@lru_cache(maxsize=512)
def reading_minutes(source: str) -> int:
    """Return the minutes to read a page's prose, at least 1; figures and code don't count."""
    return max(1, round(len(_NOT_READ.sub("", source).split()) / WORDS_PER_MINUTE))


@lru_cache(maxsize=512)
def about(
    site: str, title: str, description: str, address: str, source: str, changed: str, card: str
) -> About:
    """Collect a page's `About`; `address` and `card` are absolute URLs, `changed` an ISO date."""
    year = f"{changed[:4]}." if changed else "n.d."
    key = re.sub(r"[^a-z0-9]+", "-", f"{site} {title}".lower()).strip("-")
    fields = {
        "title": f"{{{title}}}",
        "booktitle": f"{{{site}}}",
        "author": "{{The figgen authors}}",
        "year": f"{{{changed[:4]}}}" if changed else "",
        "url": f"{{{address}}}",
    }
    lines = ",\n".join(f"  {name} = {value}" for name, value in fields.items() if value)
    thing = {
        "@context": "https://schema.org",
        "@type": "TechArticle",
        "headline": title,
        "description": description,
        "url": address,
        "dateModified": changed,
        "image": card,
        "isPartOf": {"@type": "WebSite", "name": site},
        "author": {"@type": "Organization", "name": "The figgen authors"},
        "license": "https://creativecommons.org/licenses/by/4.0/",
    }
    return About(
        minutes=reading_minutes(source),
        changed=changed,
        citation=f"The figgen authors. “{title}.” {site}, {year} {address}",
        bibtex=f"@misc{{{key},\n{lines}\n}}",
        json_ld=_script_safe({name: value for name, value in thing.items() if value}),
    )


def _script_safe(data: object) -> str:
    """Return JSON that can't end the script element that contains it."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
