"""PDFs of a built site's pictures, published next to them."""

from __future__ import annotations

from pathlib import Path

from pypdf import PdfReader

from figgen.__main__ import main
from figgen.paper import site as paper_site
from figgen.paper.site import add_pdfs
from figgen.renderers import svg
from tests.renderers.samples import SAMPLES

LINK = '<p><a href="../assets/figures/page/fig-{0}.svg" download>SVG</a> · <a href="x">CSV</a></p>'


def built(folder: Path) -> Path:
    """A site with one page and two pictures."""
    pictures = folder / "assets" / "figures" / "page"
    pictures.mkdir(parents=True)
    page = folder / "page" / "index.html"
    page.parent.mkdir()
    for name in ("curves", "timeline"):
        shown = svg.standalone(svg.render(SAMPLES[name], f"fig-{name}"))
        (pictures / f"fig-{name}.svg").write_text(shown, "utf-8")
    page.write_text("".join(map(LINK.format, ("curves", "timeline"))), "utf-8")
    return page


def embedded(pdf: Path) -> bool:
    """Return whether a PDF contains all of its fonts."""
    (sheet,) = PdfReader(pdf).pages
    fonts = [font.get_object() for font in sheet["/Resources"]["/Font"].values()]
    inner = [font.get("/DescendantFonts", [font])[0].get_object() for font in fonts]
    return bool(fonts) and all("/FontFile2" in f["/FontDescriptor"].get_object() for f in inner)


def test_every_picture_gets_a_pdf_with_its_fonts_and_a_link_once(tmp_path: Path) -> None:
    page = built(tmp_path / "site")
    for _ in range(2):
        assert add_pdfs(tmp_path / "site", tmp_path / "kept", workers=1) == 2
    html = page.read_text("utf-8")
    for name in ("curves", "timeline"):
        link = f'../assets/figures/page/fig-{name}.pdf" download>PDF</a> · <a href="x">CSV'
        assert html.count(link) == 1
        assert embedded(page.parent / ".." / f"assets/figures/page/fig-{name}.pdf")
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_changed_picture_or_program_is_set_anew(tmp_path: Path, monkeypatch) -> None:
    page, kept = built(tmp_path / "site"), tmp_path / "kept"
    picture = page.parent.parent / "assets/figures/page/fig-curves.svg"
    before = paper_site._pdf(picture, tmp_path)
    picture.write_text(picture.read_text("utf-8").replace("</text>", "!</text>"), "utf-8")
    assert paper_site._pdf(picture, tmp_path) != before
    kept.mkdir()
    paper_site._pdf(picture, kept)
    monkeypatch.setattr(paper_site, "_source", lambda: "changed")
    paper_site._pdf(picture, kept)
    assert len(list(kept.iterdir())) == 2


def test_a_folder_that_is_no_site_is_refused(tmp_path: Path, capsys) -> None:
    assert main(["paper-figures", str(tmp_path)]) == 2
    assert "a built site" in capsys.readouterr().err
