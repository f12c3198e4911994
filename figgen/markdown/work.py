"""A limit on the work for one page, so that no text can make a build take forever.

For each bracket and each level of a list, Python-Markdown scans all text that follows: 50,000
brackets or a thousand nested lists would take hours. The characters that it scans are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from markdown import Markdown
from markdown.inlinepatterns import LinkInlineProcessor

from figgen.errors import InputError

MOST = 5_000_000
"""Characters that may be scanned for a page; the longest page needs an eighth of them."""
BLOCK = 4
"""Cost of a character in block parsing, relative to one in inline parsing."""


COPIED = 50
"""Characters that are copied in the time of scanning one: only links scan for their end."""
MOST_OPEN = 200
"""Unclosed tags; for each of them, the HTML parser scans all text that follows."""
MOST_FENCES = 2_000
"""Code blocks, which together take about two seconds; each has two fence lines."""
_OPEN = re.compile(r"<[A-Za-z/!?][^<>]*(?=<|\Z)")


class TooMuch(InputError):
    """A page needs too much work; `text` is where it was spent."""

    def __init__(self, text: str) -> None:
        self.text = text.strip().partition("\n")[0][:80]
        super().__init__(
            "this page takes too long to convert",
            expected="less markup in a paragraph, and less deeply nested lists",
            got=self.text[:60],
        )


class Work:
    """Counts the characters scanned, and stops at the limit."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, characters: int, text: str) -> None:
        """Add to the count. Raises TooMuch, which names `text`, beyond the limit."""
        self.spent += characters
        if self.spent > MOST:
            raise TooMuch(text)

    def begin(self, md: Markdown, lines: list[str]) -> None:
        """Count what the processors of `md` scan. Raises TooMuch for too many tags or fences."""
        unclosed = _OPEN.findall("\n".join(lines))
        if len(unclosed) > MOST_OPEN:
            raise TooMuch(unclosed[0])
        fences = [line for line in lines if line.lstrip().startswith(("```", "~~~"))]
        if len(fences) > 2 * MOST_FENCES:
            raise TooMuch(fences[0])
        for pattern in md.inlinePatterns:
            if not hasattr(pattern, "uncounted"):
                pattern.uncounted = pattern.handleMatch
            share = 1 if isinstance(pattern, LinkInlineProcessor) else COPIED
            pattern.handleMatch = self._counted(pattern.uncounted, share)
        for processor in md.parser.blockprocessors:
            if not hasattr(processor, "uncounted"):
                processor.uncounted = processor.run
            processor.run = self._running(processor.uncounted)

    def _running(self, run: Callable[[Any, list[str]], Any]) -> Callable[[Any, list[str]], Any]:
        def counted(parent: Any, blocks: list[str]) -> Any:
            self.spend(BLOCK * len(blocks[0]), blocks[0])
            return run(parent, blocks)

        return counted

    def _counted(self, handle: Callable[..., Any], share: int) -> Callable[..., Any]:
        def handle_match(match: Any, *data: str) -> Any:
            found = handle(match, *data)
            seen = len(match.string) - match.start(0)
            if share == 1 and isinstance(found, tuple) and found[-1] is not None:
                seen = found[-1] - match.start(0)  # its end was found
            self.spend(seen // share, match.string)
            return found

        return handle_match
