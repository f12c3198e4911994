"""Add a PDF for every picture of a built site, with links on the pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path

PICTURES = "assets/figures"
_OFFER = re.compile(
    r'(<a href="(?P<file>[^"]+)\.svg" download>SVG</a>)(?! · <a href="[^"]+" download>PDF</a>)'
)


def add_pdfs(site: Path, kept: Path, workers: int | None = None) -> int:
    """Convert the pictures of a built site to PDF and link them; return their number.

    `kept` is a folder for PDFs of pictures that may be unchanged at the next build.  Raises
    InputError for a picture that cannot be set, and OSError for folders that cannot be written.
    """
    kept.mkdir(parents=True, exist_ok=True)
    pictures = sorted((site / PICTURES).rglob("*.svg"))
    with ProcessPoolExecutor(workers) as pool:
        for picture, made in zip(
            pictures, pool.map(_pdf, pictures, [kept] * len(pictures), chunksize=8), strict=True
        ):
            picture.with_suffix(".pdf").write_bytes(made)
    _offer(site.rglob("*.html"))
    return len(pictures)


def _pdf(picture: Path, kept: Path) -> bytes:
    """Return one picture as PDF, from the cache if it is there."""
    from figgen.paper.printed import printed

    svg = picture.read_text(encoding="utf-8")
    depends = "\0".join((picture.stem, _source(), svg)).encode()
    file = kept / f"{sha256(depends).hexdigest()[:40]}.pdf"
    if not file.is_file():
        file.write_bytes(printed(svg, "pdf", picture.stem))
    return file.read_bytes()


def _source() -> str:
    """Return the code and version on which the PDF of an unchanged picture depends."""
    import matplotlib

    here = Path(__file__).parent
    code = "\0".join(path.read_text(encoding="utf-8") for path in sorted(here.glob("*.py")))
    return f"{matplotlib.__version__}\0{code}"


def _offer(pages: Iterable[Path]) -> None:
    """Add a link to the PDF after the link to each picture."""
    for page in pages:
        html = page.read_text(encoding="utf-8")
        offered = _OFFER.sub(r'\1 · <a href="\g<file>.pdf" download>PDF</a>', html)
        if offered != html:
            page.write_text(offered, encoding="utf-8")
