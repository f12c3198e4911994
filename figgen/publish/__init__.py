"""One build from pages to files: finished HTML, scripts, Markdown twins and link cards."""
