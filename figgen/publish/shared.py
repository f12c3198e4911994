"""What a build is to convert, shared with other processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from figgen.markdown import math
from figgen.pictures import Drawing
from figgen.publish.kept_pages import Given, KeptPage
from figgen.serving.answers import Answers
from figgen.serving.memory import Memory
from figgen.serving.others import Others

if TYPE_CHECKING:
    from figgen.publish.build import SiteBuild


@dataclass(frozen=True, slots=True)
class Done:
    """A page of another process, and since that told the last time: what it computed, the pictures
    that it drew, the entries of the cache that it used, its seconds by work, the math that it set.
    """

    page: Given | None
    news: Any
    drawn: set[Drawing]
    used: set[str]
    seconds: dict[str, float]
    formulas: dict[str, str]


class Shared:
    """A build whose open pages are converted by this process and by forks of it."""

    def __init__(
        self,
        building: SiteBuild,
        keeper: Memory | Answers,
        convert: Callable[[str], None],
        pages: list[str],
        count: int,
    ) -> None:
        self.building, self.keeper, self.convert = building, keeper, convert
        self._before: Any = keeper.known()
        self._formulas = math.known()
        self._others = Others(pages, self._do, count)

    def _do(self, piece: str) -> Done:
        """In a fork: a page as it would be kept, with its files."""
        building, pictures = self.building, self.building.site.pictures
        pictures.begin_anew()
        self.convert(piece)
        page = building.kept_pages.given(piece)
        if isinstance(page, KeptPage):  # made just now: one of an earlier build stays as it is
            page.files = building.files_of(page.page)
            building.write_page(page)
        news, self._before = self.keeper.news(self._before), self.keeper.known()
        formulas, self._formulas = math.news(self._formulas), math.known()
        return Done(page, news, pictures.drawn, pictures.used, pictures.spent.seconds, formulas)

    def take_over(self, piece: str) -> None:
        """Take what another process made of a page, if one did."""
        pictures = self.building.site.pictures
        with pictures.spent.on("waiting for other processes"):
            done: Done | None = self._others.made(piece)
        if done:
            self.keeper.learn(done.news)
            math.learn(done.formulas)
            pictures.drawn |= done.drawn
            pictures.used |= done.used
            pictures.spent.add(done.seconds)
            if done.page:
                self.building.kept_pages.take_over(piece, done.page)

    def end(self) -> None:
        """Nobody asks any more."""
        self._others.end()
