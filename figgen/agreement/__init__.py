"""One quantity, one value: the same thing with the same inputs is the same number everywhere.

`numbers` are all that a site shows, each with what it was computed from.  The subject's table of
quantities says which of them are the same thing in other words (a closed form, a simulation, a row
of a figure); `ways` reads it, `check` compares.
"""

from figgen.agreement.check import Disagreement, Outcome, compared
from figgen.agreement.numbers import Number, numbers_of_folder

__all__ = ["Disagreement", "Number", "Outcome", "compared", "numbers_of_folder"]
