"""One trial of the synthetic experiment: every system measured, and the coverage of each metric."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.meta.coverage import compute_coverage
from ordinate.meta.replication.published_figures import TABLE_3, TABLE_3_COLUMNS
from ordinate.meta.replication.synthetic_systems import (
    MISTAKE_TYPES,
    RATIOS,
    Reading,
    count_tables,
    draw_gold_levels,
    simulate_predictions,
)
from ordinate.meta.unanimity import compute_improvements, compute_unanimous_improvement
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.arithmetic import Value, average_over_levels
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
METRICS = tuple(TABLE_3)
REFERENCES = METRICS[:3]  # what unanimous improvement is made of

KENDALL_METRICS = {
    "tau_a": "kendall_tau_a",
    "tau_b": "kendall_tau_b",
    "gamma": "goodman_kruskal_gamma",
}
F_LEVELS = {"either": "f1_macro", "gold": "f1 over gold levels", "all": "f1 over all levels"}


def _make_merit(metric: Metric) -> Callable[[ConfusionMatrix], Value]:
    return lambda table: metric.merit(metric(table))


def _compute_f1_over_gold(table: ConfusionMatrix) -> Value:
    return average_over_levels(table.gold > 0, np.nan_to_num(compute_level_metrics(table).f1))


def _compute_f1_over_all(table: ConfusionMatrix) -> Value:
    return np.nan_to_num(compute_level_metrics(table).f1).mean(axis=-1)


MEASURES: dict[str, Callable[[ConfusionMatrix], Value]] = {
    **{
        name: _make_merit(find_metric(name))
        for name in dict.fromkeys([*METRICS, *KENDALL_METRICS.values()])
    },
    F_LEVELS["gold"]: _compute_f1_over_gold,
    F_LEVELS["all"]: _compute_f1_over_all,
}


def _select_measure(name: str, reading: Reading) -> str:
    """Return what stands for a metric of the table in a reading."""
    if name == KENDALL_METRICS["tau_a"]:
        return KENDALL_METRICS[reading.kendall]
    return F_LEVELS[reading.f_levels] if name == F_LEVELS["either"] else name


Block = dict[tuple[str, str], Array]  # by measure: "case" [S, T] and "pooled" [S]


class SyntheticRun:
    """The experiment of one seed. Systems that readings have in common are measured once."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._blocks: dict[tuple[str, ...], Block] = {}

    def compute_coverages(self, reading: Reading) -> Array:
        """Return the coverage of each metric for each column: [METRICS, TABLE_3_COLUMNS]."""
        by_case = self._collect_values(METRICS, reading, "case")
        ratios = compute_unanimous_improvement(
            compute_improvements(by_case[: len(REFERENCES)], reading.unanimity)
        )
        if reading.values == "pooled":
            merits = self._collect_values(METRICS, reading, "pooled")
        else:
            merits = average_over_levels(np.isfinite(by_case), by_case)
        kinds = np.repeat(list(MISTAKE_TYPES), len(RATIOS))
        columns = []
        for column in TABLE_3_COLUMNS:
            kept = kinds != column
            part = compute_coverage(merits[:, kept], ratios[np.ix_(kept, kept)], reading.pairs)
            columns.append(part)
        return np.stack(columns, axis=-1)

    def _collect_values(self, names: Iterable[str], reading: Reading, part: str) -> Array:
        blocks = [self._measure_block(kind, reading) for kind in MISTAKE_TYPES]
        measures = [_select_measure(name, reading) for name in names]
        values = np.stack([np.concatenate([b[m, part] for b in blocks]) for m in measures])
        return np.nan_to_num(values) if reading.undefined == "zero" else values

    def _measure_block(self, kind: str, reading: Reading) -> Block:
        """Return what all measures say of the ten systems of a kind."""
        own = getattr(reading, MISTAKE_TYPES[kind].option)
        key = (kind, own, reading.deviation, reading.outside, reading.errors)
        if key not in self._blocks:
            gold = draw_gold_levels(self.seed, reading.deviation, reading.outside)
            counted = count_tables(gold, simulate_predictions(self.seed, kind, gold, reading))
            pooled = ConfusionMatrix.from_counts(counted.scale, counted.counts.sum(axis=1))
            self._blocks[key] = {
                (name, part): measure(table)
                for name, measure in MEASURES.items()
                for part, table in (("case", counted), ("pooled", pooled))
            }
        return self._blocks[key]
