"""Known undercoverage of confidence intervals: the cases that the coverage study found.

`coverage_warnings.csv` is written by `make coverage`: nominal 95 % intervals, metrics with their
defaults, numbers of levels and items, gold balanced or with one level a hundred times as rare as
another.
"""

import csv
from functools import cache
from importlib.resources import files

import numpy as np

from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

STUDIED_LEVELS, STUDIED_SIZES = (3, 7), (20, 50, 200, 1_000, 5_000)  # of the study
RARE_SHARE = (
    0.1  # share of the rarest level relative to the commonest, below which gold is imbalanced
)


def describe_undercoverage(metric: Metric, matrix: ConfusionMatrix) -> str | None:
    """Say how far the intervals of a metric undercover on data like these, if they do."""
    if metric.options:
        return None
    levels = int(np.clip((matrix.gold > 0).sum(), *STUDIED_LEVELS))
    items = max((size for size in STUDIED_SIZES if size <= matrix.total), default=STUDIED_SIZES[0])
    counts = matrix.gold[matrix.gold > 0]
    gold = "1:100" if counts.min() < RARE_SHARE * counts.max() else "balanced"
    coverage = _load_coverage().get((metric.alias_of or metric.name, levels, items, gold))
    if coverage is None:
        return None
    return f"95 % intervals cover {100 * coverage:.0f} % in tables like this"


@cache
def _load_coverage() -> dict[tuple[str, int, int, str], float]:
    text = files(__package__).joinpath("coverage_warnings.csv").read_text(encoding="utf-8")
    return {
        (row["metric"], int(row["levels"]), int(row["items"]), row["gold"]): float(row["coverage"])
        for row in csv.DictReader(text.splitlines())
    }
