"""Pages to convert, shared between processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from figgen.markdown import math
from figgen.markdown.conversion import Site
from figgen.pictures import Drawing
from figgen.publish.kept_pages import Given, KeptPage, KeptPages
from figgen.serving.answers import Answers
from figgen.serving.memory import Memory
from figgen.serving.others import Others


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A page from another process, with what that process did since its last report.

    That is what it computed, the pictures that it drew, the cache entries that it used, its seconds
    by kind of work, and the math that it set.
    """

    page: Given | None
    news: Any
    drawn: set[Drawing]
    used: set[str]
    seconds: dict[str, float]
    formulas: dict[str, str]


class Shared:
    """Pages that this process and its forks convert;

    `keep_files` keeps what lies next to a page.
    """

    def __init__(
        self,
        site: Site,
        kept_pages: KeptPages,
        keep_files: Callable[[KeptPage], None],
        keeper: Memory | Answers,
        convert: Callable[[str], None],
        pages: list[str],
        count: int,
    ) -> None:
        self.pictures, self.kept_pages, self.keep_files = site.pictures, kept_pages, keep_files
        self.keeper, self.convert = keeper, convert
        self._before: Any = keeper.known()
        self._formulas = math.known()
        self._others = Others(pages, self._do, count)

    def _do(self, piece: str) -> Done:
        """Convert a page in a fork; return it in kept form, with its files."""
        pictures = self.pictures
        pictures.restart()
        self.convert(piece)
        page = self.kept_pages.given(piece)
        if isinstance(page, KeptPage):  # made just now: one of an earlier build stays as it is
            self.keep_files(page)
        news, self._before = self.keeper.news(self._before), self.keeper.known()
        formulas, self._formulas = math.news(self._formulas), math.known()
        return Done(
            page=page,
            news=news,
            drawn=pictures.drawn,
            used=pictures.used,
            seconds=pictures.spent.seconds,
            formulas=formulas,
        )

    def take_over(self, piece: str) -> None:
        """Take over another process's conversion of a page, if there is one."""
        pictures = self.pictures
        with pictures.spent.on("waiting for other processes"):
            done: Done | None = self._others.made(piece)
        if done:
            self.keeper.learn(done.news)
            math.learn(done.formulas)
            pictures.drawn |= done.drawn
            pictures.used |= done.used
            pictures.spent.add(done.seconds)
            if done.page:
                self.kept_pages.take_over(piece, done.page)

    def end(self) -> None:
        """End the other processes once no more pages are needed."""
        self._others.end()
