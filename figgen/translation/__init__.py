"""Models printed as ES modules from their own source: a typed subset of Python, read once.

`modules` finds what an entry function needs, `definitions` prints each part of it, `statements`,
`expressions` and `calls` print what stands in them, and `types` says what an annotation or a value
means. What is not understood is refused with file and line. What JavaScript lacks is in
`runtime.js` and `runtime_more.js`, under `docs/assets/javascripts/engine/`.
"""
