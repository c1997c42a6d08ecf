"""Every label metric, written out over the items: the oracle of the tests.

Each function states a definition as literally as it can: it walks over items, over pairs of
items, or over all paths through the table. Nothing here is fast, and nothing is shared with the
package. Positions are exact fractions, so sums and comparisons of distances do not round.

``NAIVE`` maps the name of a metric to ``function(gold, predicted, positions, **options)``.
``gold`` and ``predicted`` hold level indices, ``positions`` places each declared level on a line.
Where the catalogue gives a rule for unanswered items, an entry of ``predicted`` may be ``None``.
Undefined values are ``nan``.
"""

import naive_agreement  # noqa: F401 - both register their definitions
import naive_association  # noqa: F401
from naive_arithmetic import NAIVE

__all__ = ["NAIVE"]
