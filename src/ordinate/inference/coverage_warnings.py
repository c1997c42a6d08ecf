"""Where intervals are known to cover badly: the cases that the study of coverage found.

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
RARE_SHARE = 0.1  # share of the rarest level beside the commonest, below which gold is unbalanced


def describe_undercoverage(metric: Metric, table: ConfusionMatrix) -> str | None:
    """Say how badly the intervals of a metric cover in tables like this, if they do."""
    if metric.options:
        return None
    levels = int(np.clip((table.gold > 0).sum(), *STUDIED_LEVELS))
    items = max((size for size in STUDIED_SIZES if size <= table.total), default=STUDIED_SIZES[0])
    there = table.gold[table.gold > 0]
    gold = "1:100" if there.min() < RARE_SHARE * there.max() else "balanced"
    found = _load_coverage().get((metric.alias_of or metric.name, levels, items, gold))
    return (
        None if found is None else f"95 % intervals cover {100 * found:.0f} % in tables like this"
    )


@cache
def _load_coverage() -> dict[tuple[str, int, int, str], float]:
    text = files(__package__).joinpath("coverage_warnings.csv").read_text(encoding="utf-8")
    return {
        (row["metric"], int(row["levels"]), int(row["items"]), row["gold"]): float(row["coverage"])
        for row in csv.DictReader(text.splitlines())
    }
