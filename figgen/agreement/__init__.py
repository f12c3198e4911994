"""One quantity, one value: a quantity with the same inputs must have the same value everywhere.

`numbers` collects all numbers of a site with their inputs. The subject's table of quantities says
which of them are the same quantity computed in different ways (by a closed form, a simulation, a
figure); `ways` reads the table, `check` compares the numbers.
"""

from figgen.agreement.check import Disagreement, Outcome, compared
from figgen.agreement.numbers import Number, Uncomputed, numbers_of_folder

__all__ = ["Disagreement", "Number", "Outcome", "Uncomputed", "compared", "numbers_of_folder"]
