"""Where in the followed sources an error arose, and what is wrong there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from traceback import extract_tb

from figgen.errors import InputError, PlacedError, closest
from figgen.serving.code import PACKAGE, own_sources
from figgen.subject import modules


def last_place(error: BaseException) -> tuple[str, int] | None:
    """Return file and line of the innermost followed source in an error's traceback, or None.

    The site's own modules come before this package, which they may have called in a wrong way.
    """
    own = list(own_sources(modules()).values())
    return _innermost(error, own) or _innermost(error, [PACKAGE])


def own_place(error: BaseException) -> str:
    """Return `heat.py:12: ` for the innermost line of the site's own modules, else nothing."""
    found = _innermost(error, list(own_sources(modules()).values()))
    return f"{found[0]}:{found[1]}: " if found else ""


def own_fault(error: BaseException) -> str:
    """Return what is wrong in the site's own modules, with file and line; "" if it isn't there.

    A circle of imports is named wherever it is.
    """
    if circle := import_circle(error):
        return circle
    place = own_place(error)
    if not place and isinstance(error, ModuleNotFoundError) and error.name in modules():
        return _missing(error.name)
    if isinstance(error, SyntaxError) and error.filename:
        path = Path(error.filename)
        own = own_sources(modules()).values()
        if any(root == path or root in path.parents for root in own):
            code = f": {error.text.strip()}" if error.text else ""
            return f"{path.name}:{error.lineno}: {error.msg}{code}"
    return f"{place}{type(error).__name__}: {error}" if place else ""


def _missing(module: str) -> str:
    """Return what to say of a module that the configuration names and that isn't there."""
    from figgen.project import site_of

    site = site_of(Path.cwd())
    where = f"{site.line_of(module)}: " if site else ""
    own = [path.stem for path in site.folder.glob("*.py")] if site else []
    near = [f" (did you mean {' or '.join(found)}?)" for found in [closest(module, own)] if found]
    what = f"there is no {module}.py in this folder, and no such package installed"
    return f"{where}modules: {what}{''.join(near)}"


def import_circle(error: BaseException) -> str:
    """Return the modules that import each other in a circle, each with its line; "" for none."""
    if not isinstance(error, ImportError) or "partially initialized" not in str(error):
        return ""
    frames = [frame for frame in extract_tb(error.__traceback__) if frame.name == "<module>"]
    begin = next((at for at, frame in enumerate(frames) if frame.filename == error.path), None)
    if begin is None:
        return ""
    roots = [PACKAGE, *own_sources(modules()).values()]
    steps = [f"{_relative(frame.filename, roots)}:{frame.lineno}" for frame in frames[begin:]]
    back = _relative(frames[begin].filename, roots)
    return (
        f"circle of imports: {' → '.join([*steps, back])}; "
        "move what both sides need into a module that imports neither"
    )


def in_place(error: InputError) -> list[InputError]:
    """Return each of an error's mistakes, with the line of the site's modules where it arose."""
    place = own_place(error)
    return [
        one if isinstance(one, PlacedError) else PlacedError(f"{place}{one}") for one in error.all
    ]


def _relative(filename: str, roots: Sequence[Path]) -> str:
    path = Path(filename)
    root = next((one for one in roots if one == path or one in path.parents), path)
    return path.relative_to(root.parent).as_posix()


def _innermost(error: BaseException, roots: Sequence[Path]) -> tuple[str, int] | None:
    for frame in reversed(extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        for root in roots:
            if path == root or root in path.parents:
                return path.relative_to(root.parent).as_posix(), frame.lineno or 1
    return None
