"""Compares two builds, to show how a change of the repository affects what readers see.

`sources` records the inputs of a build, `builds` reads or makes builds, `compare` finds the
differences, `causes` finds which input moved what, and `report` writes the report. A build may come
from an untrusted fork, so every field is validated.
"""
