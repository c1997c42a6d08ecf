"""What hypothesis resamples: scales, tables, and columns of labels."""

import math

import numpy as np
from each_case import each_case
from hypothesis import strategies as st

from ordinate.metrics import find_metric, list_metrics
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

# Each metric with every value of its options that is a choice, and a few of its numbers.
EXPRESSIONS = [
    *[m.name for m in list_metrics() if not m.required],
    "accuracy_within(n=0)",
    "accuracy_within(n=2)",
    "weighted_kappa(power=0)",
    "weighted_kappa(power=1)",
    "weighted_kappa(power=1.5)",
    "rennie_srebro(penalty='logistic')",
    "rennie_srebro(penalty='zero_one')",
    "rennie_srebro(kind='immediate')",
    "rennie_srebro(kind='immediate',penalty='logistic')",
    "rennie_srebro(kind='immediate',penalty='zero_one')",
    "somers_d(given='predicted')",
    "cem_nom(ties='half')",
    "gwet_ac2(weights='linear')",
    "gwet_ac2(weights='identity')",
    "scott_pi(weights='linear')",
    "scott_pi(weights='identity')",
    "brennan_prediger(weights='linear')",
    "brennan_prediger(weights='identity')",
    "krippendorff_alpha(level='nominal')",
    "krippendorff_alpha(level='interval')",
    "oci(beta1=0.25)",
    "oci(gamma=2)",
]
METRICS = [find_metric(expression) for expression in EXPRESSIONS]
NAMES = [metric.expression for metric in METRICS]
every_metric = each_case("metric", dict(zip(NAMES, METRICS, strict=True)))


def scale_of(size: int, positions: "list[float] | None" = None) -> Scale:
    return Scale([f"L{k}" for k in range(size)], positions=positions)


@st.composite
def scales(draw, max_levels: int = 5):
    size = draw(st.integers(2, max_levels))
    if draw(st.booleans()):
        return scale_of(size)
    steps = draw(st.lists(st.sampled_from([0.5, 1, 2, 3.25]), min_size=size, max_size=size))
    return scale_of(size, list(np.cumsum(steps) - steps[0]))


@st.composite
def counts(draw, size: int, largest: int = 4):
    cells = draw(st.lists(st.integers(0, largest), min_size=size**2, max_size=size**2))
    if not any(cells):
        cells[draw(st.integers(0, size**2 - 1))] = 1
    return np.array(cells, float).reshape(size, size)


@st.composite
def tables(draw, max_levels: int = 5, largest: int = 4):
    scale = draw(scales(max_levels))
    return ConfusionMatrix.from_counts(draw(counts(len(scale), largest)), scale)


def items_of(table: ConfusionMatrix) -> tuple[list[int], list["int | None"]]:
    """Spell a table of whole counts out as level indices; None stands for no answer."""
    gold: list[int] = []
    predicted: list[int | None] = []
    size = len(table.scale)
    for (row, column), n in np.ndenumerate(table.weights):
        gold += [row] * int(n)
        predicted += [column if column < size else None] * int(n)
    return gold, predicted


def same(first: float, second: float, tolerance: float = 1e-9) -> bool:
    both_undefined = math.isnan(first) and math.isnan(second)
    return both_undefined or math.isclose(first, second, rel_tol=tolerance, abs_tol=tolerance)
