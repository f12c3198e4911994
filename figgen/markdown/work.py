"""A limit of the work that one page may ask for, so that no text keeps a build waiting for ever.

Python-Markdown looks, for each bracket and each level of a list, at all the text behind it: 50,000
brackets or a thousand lists in each other would take hours.  What it looks at is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from markdown import Markdown
from markdown.inlinepatterns import LinkInlineProcessor

from figgen.errors import InputError

MOST = 5_000_000
"""Characters that may be looked at for a page; the longest page takes an eighth of it."""
BLOCK = 4
"""What a character costs that is divided into blocks, beside one within a line."""


COPIED = 50
"""Characters that are copied while one is looked at: only links look for their end."""
MOST_OPEN = 200
"""Tags that are not closed; for each of them a parser of HTML goes through all that follows."""
MOST_FENCES = 2_000
"""Blocks of code, which take about two seconds; each has a line that opens and one that closes."""
_OPEN = re.compile(r"<[A-Za-z/!?][^<>]*(?=<|\Z)")


class TooMuch(InputError):
    """More work than a page may ask for; `text` is where it was spent."""

    def __init__(self, text: str) -> None:
        self.text = text.strip().partition("\n")[0][:80]
        super().__init__(
            "this page takes too long to convert",
            expected="fewer signs in a paragraph, and fewer lists in each other",
            got=self.text[:60],
        )


class Work:
    """Counts what is looked at, and stops at the limit."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, characters: int, text: str) -> None:
        """Count so many. Raises TooMuch, which names the text."""
        self.spent += characters
        if self.spent > MOST:
            raise TooMuch(text)

    def begin(self, md: Markdown, lines: list[str]) -> None:
        """Count what all processors of `md` look at. Raises TooMuch for tags that do not end."""
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
