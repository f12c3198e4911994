"""Print models as ES modules from their Python source, which uses a typed subset of Python.

`modules` collects the definitions that an entry function needs, `definitions` prints each of them,
`statements`, `expressions` and `calls` print their contents, and `types` gives the type of an
annotation or a value. Unsupported syntax is an error with file and line. Functions that JavaScript
lacks are in `runtime.js` and `runtime_more.js`, under `docs/assets/javascripts/engine/`.
"""
