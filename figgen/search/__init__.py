"""What the reader's search is made of: records of the pages, their words, and an index in pieces.

Pagefind 1.5 was tried first. It cannot answer a first query within 100 kB (its program alone is
72 kB compressed), needs `wasm-unsafe-eval` in the pages' policy, requires every word of a query on
the page, and knows no kinds of result. The corpus is small and its words are few, so the index
is ours: impacts computed here, added up in the browser by `figgen/assets/javascripts/search/`.
"""
