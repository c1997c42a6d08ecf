"""Values of Gwet's AC1 and AC2 computed once with the package irrCAC, version 0.4.4.

irrCAC pins an old SciPy, so it is not a dependency of the tests. Each table was spelled out as
two columns of ratings, one row per item, with the positions of the levels as the ratings, and
passed to ``irrCAC.raw.CAC(ratings, weights=..., categories=[positions of all declared levels],
digits=12).gwet()["est"]["coefficient_value"]``. The declared levels were always passed, also
where no rating uses them. irrCAC rounds its results, by default to 5 digits and here to 12. On
equal steps ``irrCAC.table.CAC(table, ...)`` gave the same 12 digits. Run with Python 3.11,
NumPy 1.26.4, pandas 2.3.3 and SciPy 1.12.0.
"""

from __future__ import annotations

from typing import NamedTuple


class Frozen(NamedTuple):
    """A table (rows gold, columns predicted), its positions, and AC by kind of weights."""

    table: tuple[tuple[int, ...], ...]
    positions: tuple[int, ...]
    gwet: dict[str, float]


DIGITS = 12
"""How many digits irrCAC was asked to keep."""

SKEWED = ((40, 6, 1, 0), (5, 8, 3, 1), (0, 2, 4, 2), (1, 0, 1, 2))

IRRCAC: dict[str, Frozen] = {
    "three levels": Frozen(
        table=((12, 3, 1), (2, 9, 4), (0, 5, 14)),
        positions=(0, 1, 2),
        gwet={
            "quadratic": 0.732779097387,
            "linear": 0.642324888227,
            "identity": 0.551166965889,
        },
    ),
    "four levels, skewed": Frozen(
        table=SKEWED,
        positions=(0, 1, 2, 3),
        gwet={
            "quadratic": 0.885167464115,
            "linear": 0.797270955166,
            "identity": 0.643724696356,
        },
    ),
    "four levels, skewed, with custom gaps": Frozen(
        table=SKEWED,
        positions=(0, 1, 3, 7),
        gwet={
            "quadratic": 0.901164036278,
            "linear": 0.834947368421,
            "identity": 0.643724696356,
        },
    ),
    "five levels, the top one unused": Frozen(
        table=(
            (7, 2, 0, 1, 0),
            (3, 6, 4, 0, 0),
            (0, 2, 9, 3, 0),
            (1, 0, 4, 5, 0),
            (0, 0, 0, 0, 0),
        ),
        positions=(0, 1, 2, 3, 4),
        gwet={
            "quadratic": 0.843391336542,
            "linear": 0.71283095723,
            "identity": 0.477777777778,
        },
    ),
    "five levels, the middle one unused": Frozen(
        table=(
            (6, 1, 0, 2, 0),
            (2, 8, 0, 1, 1),
            (0, 0, 0, 0, 0),
            (1, 3, 0, 7, 2),
            (0, 1, 0, 3, 5),
        ),
        positions=(0, 1, 2, 3, 4),
        gwet={
            "quadratic": 0.671301168781,
            "linear": 0.594154361394,
            "identity": 0.514729068127,
        },
    ),
}
