"""Half of what an edit asks of a server, done by a second process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from figgen.pictures import Drawing
from figgen.publish.kept_pages import Given, KeptPage
from figgen.serving.memory import Known, Memory
from figgen.serving.second import Second, pays

if TYPE_CHECKING:
    from figgen.publish.build import SiteBuild

TOOLS = "tools/"
"""The folder of the pages whose scripts compute with the formulas."""

Done: TypeAlias = tuple[Given | None, Known, set[Drawing]]
"""A page of a second process, what that computed, and the pictures that it drew."""


class Shared:
    """A build whose open pages are converted by two processes, this one and a fork of it.

    The fork begins with what the tools need, which takes longer than most pages.
    """

    def __init__(
        self, building: SiteBuild, memory: Memory, pages: list[str], convert: Callable[[str], None]
    ) -> None:
        self.building, self.memory, self.convert = building, memory, convert
        self._before = memory.known()
        self._second = Second([*pages, TOOLS], self._do)

    def _do(self, piece: str) -> Done:
        """In the fork: a page as it would be kept, with its files, or the scripts of the tools."""
        building = self.building
        if piece == TOOLS:
            building.tool_files()
            for make in building.tool_data.values():
                make()
        else:
            self.convert(piece)
            building.finish()
        page = building.kept_pages.given(piece)
        if isinstance(page, KeptPage):  # made just now: one of an earlier build stays as it is
            page.files = building.files_of(page.page)
        news, self._before = self.memory.news(self._before), self.memory.known()
        return page, news, building.site.pictures.drawn

    def take_over(self, piece: str) -> None:
        """Take what the fork made of a page, or of the tools, if it did."""
        with self.building.site.pictures.spent.on("waiting for the other process"):
            done: Done | None = self._second.made(piece)
        if done:
            page, news, drawn = done
            self.memory.learn(news)
            self.building.site.pictures.drawn |= drawn
            if page:
                self.building.kept_pages.take_over(piece, page, self.memory)

    def end(self) -> None:
        """Nobody asks any more."""
        self._second.end()


def shared(building: SiteBuild, memory: Memory, convert: Callable[[str], None]) -> Shared | None:
    """A build shared with a second process, where that pays."""
    pages = building.kept_pages.open()
    return Shared(building, memory, pages, convert) if len(pages) > 1 and pays() else None
