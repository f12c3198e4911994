"""Files next to pages are written once, completely, and by another process if that is alive."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from mkdocs.structure.files import File, Files, InclusionLevel

from figgen.serving.files import copy_beside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="builds fork on Linux only")


class ByWhom(File):
    """A file that contains the number of the process that copied it."""

    def copy_file(self, dirty: bool = False) -> None:
        self._content = str(os.getpid())
        super().copy_file(dirty)


def beside(folder: Path, path: str, level: InclusionLevel = InclusionLevel.INCLUDED) -> ByWhom:
    """Return a file that a build in `folder` should publish."""
    return ByWhom(path, None, str(folder / "site"), use_directory_urls=True, inclusion=level)


def test_what_is_no_page_is_copied_by_another_process_before_the_build_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begin = os.pipe()
    copy = ByWhom.copy_file

    def told(file: ByWhom, dirty: bool = False) -> None:
        os.write(begin, b"b")
        copy(file, dirty)

    monkeypatch.setattr(ByWhom, "copy_file", told)
    files = Files([beside(tmp_path, path) for path in ("a/b.csv", "page.md")])
    files.append(beside(tmp_path, "draft.csv", InclusionLevel.EXCLUDED))

    copied = copy_beside(files)
    os.read(begun, 1)  # from here on the fork has them
    files.copy_static_files()  # the host's, which has nothing to do
    copied()

    written = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert written == [tmp_path / "site" / "a" / "b.csv"]
    assert int(written[0].read_text()) != os.getpid()
    os.close(begun)
    os.close(begin)


def test_what_another_process_could_not_copy_the_first_does_or_tells_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, copy = os.getpid(), ByWhom.copy_file

    def here(file: ByWhom, dirty: bool = False) -> None:
        if os.getpid() != first:
            raise OSError("no room")
        copy(file, dirty)

    monkeypatch.setattr(ByWhom, "copy_file", here)
    copy_beside([beside(tmp_path, "a.csv")])()
    assert (tmp_path / "site" / "a.csv").read_text() == str(first)

    (tmp_path / "site" / "b.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        copy_beside([beside(tmp_path, "b.csv")])()
