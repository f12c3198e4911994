"""Site search: records of the pages, their words, and an index in pieces.

Pagefind 1.5 was tried first. It cannot answer a first query within 100 kB (its program alone is
72 kB compressed), needs `wasm-unsafe-eval` in the pages' policy, requires every word of a query on
the page, and has no kinds of results. The corpus and its vocabulary are small, so the index is our
own: impacts are computed here and added in the browser by `figgen/assets/javascripts/search/`.
"""
