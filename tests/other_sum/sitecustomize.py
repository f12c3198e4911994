"""Makes `sum` add floats as other Python versions do: corrected since 3.12, plain before.

A build with it (`PYTHONPATH`) shows on one Python version which digits depend on how floats are
added.
"""

import builtins
import sys
from math import isfinite

_sum = builtins.sum


def corrected(items, /, start=0):
    """Return the sum by Neumaier's algorithm, which `sum` uses for floats from Python 3.12 on."""
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
    """Return the sum as in Python 3.11."""
    for item in items:
        start = start + item
    return start


builtins.sum = plain if sys.version_info >= (3, 12) else corrected
