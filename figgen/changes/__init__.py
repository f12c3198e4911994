"""Compares two builds, to show how a change of the repository affects what readers see.

`sources` records the inputs of a build, `builds` reads or makes builds, `compare` finds the
differences, `causes` attributes them to inputs, and `report` writes the report. A build may come
from an untrusted fork, so every field is validated.
"""
