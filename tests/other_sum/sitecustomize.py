"""`sum` as the other Pythons add floats: with a correction before 3.12, one after the other since.

A build under it (`PYTHONPATH`) tells on one Python what a digit owes to the way floats are added.
"""

import builtins
import sys
from math import isfinite

_sum = builtins.sum


def corrected(items, /, start=0):
    """The sum by Neumaier's algorithm, which `sum` takes for floats from Python 3.12 on."""
    items = list(items)
    plain = _sum(items, start)
    if type(plain) is not float or not isfinite(plain):
        return plain
    found, lost = float(start), 0.0
    for item in map(float, items):
        total = found + item
        lost += (found - total) + item if abs(found) >= abs(item) else (item - total) + found
        found = total
    return found + lost


def plain(items, /, start=0):
    """The sum as Python 3.11 has it."""
    for item in items:
        start = start + item
    return start


builtins.sum = plain if sys.version_info >= (3, 12) else corrected
