"""One trial of the synthetic experiment: every system measured, and the coverage of each metric."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.meta.coverage import coverage
from ordinate.meta.replication.published_figures import TABLE_3, TABLE_3_COLUMNS
from ordinate.meta.replication.synthetic_systems import (
    KINDS,
    RATIOS,
    Reading,
    gold_levels,
    predictions,
    tables,
)
from ordinate.meta.unanimity import improvements, unanimous_improvement
from ordinate.metrics import Metric, find
from ordinate.metrics.arithmetic import Value, mean_over
from ordinate.metrics.per_level import per_level
from ordinate.summaries import Confusion

Array = NDArray[Any]
METRICS = tuple(TABLE_3)
REFERENCES = METRICS[:3]  # what unanimous improvement is made of

KENDALL = {
    "tau_a": "kendall_tau_a",
    "tau_b": "kendall_tau_b",
    "gamma": "goodman_kruskal_gamma",
}
F_LEVELS = {"either": "f1_macro", "gold": "f1 over gold levels", "all": "f1 over all levels"}


def _merit(metric: Metric) -> Callable[[Confusion], Value]:
    return lambda table: metric.merit(metric(table))


def _f1_over_gold(table: Confusion) -> Value:
    return mean_over(table.gold > 0, np.nan_to_num(per_level(table).f1))


def _f1_over_all(table: Confusion) -> Value:
    return np.nan_to_num(per_level(table).f1).mean(axis=-1)


MEASURES: dict[str, Callable[[Confusion], Value]] = {
    **{name: _merit(find(name)) for name in dict.fromkeys([*METRICS, *KENDALL.values()])},
    F_LEVELS["gold"]: _f1_over_gold,
    F_LEVELS["all"]: _f1_over_all,
}


def _measure(name: str, reading: Reading) -> str:
    """Return what stands for a metric of the table in a reading."""
    if name == KENDALL["tau_a"]:
        return KENDALL[reading.kendall]
    return F_LEVELS[reading.f_levels] if name == F_LEVELS["either"] else name


Block = dict[tuple[str, str], Array]  # by measure: "case" [S, T] and "pooled" [S]


class Trial:
    """The experiment of one seed. Systems that readings have in common are measured once."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._blocks: dict[tuple[str, ...], Block] = {}

    def coverages(self, reading: Reading) -> Array:
        """Return the coverage of each metric for each column: [METRICS, TABLE_3_COLUMNS]."""
        by_case = self._values(METRICS, reading, "case")
        ratios = unanimous_improvement(improvements(by_case[: len(REFERENCES)], reading.unanimity))
        if reading.values == "pooled":
            merits = self._values(METRICS, reading, "pooled")
        else:
            merits = mean_over(np.isfinite(by_case), by_case)
        kinds = np.repeat(list(KINDS), len(RATIOS))
        columns = []
        for column in TABLE_3_COLUMNS:
            kept = kinds != column
            part = coverage(merits[:, kept], ratios[np.ix_(kept, kept)], reading.pairs)
            columns.append(part)
        return np.stack(columns, axis=-1)

    def _values(self, names: Iterable[str], reading: Reading, part: str) -> Array:
        blocks = [self._block(kind, reading) for kind in KINDS]
        measures = [_measure(name, reading) for name in names]
        values = np.stack([np.concatenate([b[m, part] for b in blocks]) for m in measures])
        return np.nan_to_num(values) if reading.undefined == "zero" else values

    def _block(self, kind: str, reading: Reading) -> Block:
        """Return what all measures say of the ten systems of a kind."""
        own = getattr(reading, KINDS[kind].option)
        key = (kind, own, reading.deviation, reading.outside, reading.errors)
        if key not in self._blocks:
            gold = gold_levels(self.seed, reading.deviation, reading.outside)
            counted = tables(gold, predictions(self.seed, kind, gold, reading))
            pooled = Confusion.from_counts(counted.scale, counted.counts.sum(axis=1))
            self._blocks[key] = {
                (name, part): measure(table)
                for name, measure in MEASURES.items()
                for part, table in (("case", counted), ("pooled", pooled))
            }
        return self._blocks[key]
