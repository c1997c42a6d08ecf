"""The synthetic experiment for several seeds and readings, compared with the published figures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference.estimates import to_json_number
from ordinate.inference.resampling import ProgressCallback
from ordinate.meta.replication.published_figures import EXCHANGED_ROWS, TABLE_3, TABLE_3_COLUMNS
from ordinate.meta.replication.synthetic_experiment import (
    FITTED,
    LITERAL,
    METRICS,
    Reading,
    SyntheticRun,
)
from ordinate.render import Block, Document, Grid
from ordinate.render.charts import Chart
from ordinate.render.document import Cell
from ordinate.results.base import SCHEMA, Result

Array = NDArray[Any]
CLAIMED_METRIC, FLAT_METRIC = "cem_ord", "cem_ord_flat"
READINGS = {"literal": LITERAL, "fitted": FITTED}
SEEDS = tuple(range(5))
MOST_SEEDS = 1_000
SHOWN_SEEDS = 10  # seeds that a title names


MetricPair = tuple[str, str]


def get_published_coverages(exchanged: MetricPair | None = None) -> Array:
    """Return the published coverages [METRICS, TABLE_3_COLUMNS], or with two rows exchanged."""
    rows = dict(TABLE_3)
    if exchanged is not None:
        first, second = exchanged
        rows[first], rows[second] = rows[second], rows[first]
    return np.array([rows[name] for name in METRICS])


def _compute_lead(values: Array, others: Iterable[str]) -> tuple[Array, Array]:
    """Return by how much the claimed metric is ahead of the best other in each column, and it."""
    names = [METRICS.index(name) for name in others]
    rest = values[..., names, :]
    best = np.array(names)[rest.argmax(axis=-2)]
    return values[..., METRICS.index(CLAIMED_METRIC), :] - rest.max(axis=-2), best


@dataclass(frozen=True)
class CoverageLead:
    """The lead of the claimed metric in one column; `seeds_*` count those in which it is ahead."""

    best_other: str
    value: float
    margin: float
    margin_published: float
    seeds_first: int
    margin_over_flat: float
    seeds_ahead_of_flat: int


@dataclass(frozen=True, eq=False)
class ReadingOutcome:
    """The outcome of one reading: coverages [SEEDS, METRICS, TABLE_3_COLUMNS]."""

    reading: Reading
    values: Array

    @cached_property
    def mean(self) -> Array:
        """The mean over seeds."""
        return self.values.mean(axis=0)

    @cached_property
    def spread(self) -> Array:
        """The standard deviation over seeds, nan for a single one."""
        if len(self.values) < 2:
            return np.full(self.mean.shape, np.nan)
        return self.values.std(axis=0, ddof=1)

    def compute_deviations(self, exchanged: MetricPair | None = None) -> Array:
        """Return the absolute deviation of each mean from the published number."""
        return np.abs(self.mean - get_published_coverages(exchanged))

    def rank_exchanges(self) -> dict[MetricPair, float]:
        """Return the mean deviation after each exchange of two published rows, smallest first."""
        means = {
            pair: float(self.compute_deviations(pair).mean()) for pair in combinations(METRICS, 2)
        }
        return dict(sorted(means.items(), key=lambda item: item[1]))

    def compute_leads(self) -> dict[str, CoverageLead]:
        """Return the lead of the claimed metric in each column."""
        others = [name for name in METRICS if name != CLAIMED_METRIC]
        margin, best = _compute_lead(self.mean, others)
        printed, _ = _compute_lead(get_published_coverages(), others)
        over_flat, _ = _compute_lead(self.mean, [FLAT_METRIC])
        first = (_compute_lead(self.values, others)[0] > 0).sum(axis=0)
        ahead = (_compute_lead(self.values, [FLAT_METRIC])[0] > 0).sum(axis=0)
        return {
            column: CoverageLead(
                METRICS[best[k]],
                float(self.mean[METRICS.index(CLAIMED_METRIC), k]),
                float(margin[k]),
                round(float(printed[k]), 2),
                int(first[k]),
                float(over_flat[k]),
                int(ahead[k]),
            )
            for k, column in enumerate(TABLE_3_COLUMNS)
        }

    def count_columns_won(self) -> tuple[int, int]:
        """Return in how many columns the claimed metric is first, and ahead of its flat version."""
        leads = self.compute_leads().values()
        return sum(x.margin > 0 for x in leads), sum(x.margin_over_flat > 0 for x in leads)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        first, ahead = self.count_columns_won()
        return {
            "options": self.reading.options,
            "coverage": {
                name: {column: self._cell(m, c) for c, column in enumerate(TABLE_3_COLUMNS)}
                for m, name in enumerate(METRICS)
            },
            "deviation": float(self.compute_deviations().mean()),
            "deviation_rows_exchanged": float(self.compute_deviations(EXCHANGED_ROWS).mean()),
            "deviation_by_column": _map_names(
                TABLE_3_COLUMNS, self.compute_deviations().mean(axis=0)
            ),
            "deviation_by_metric": _map_names(METRICS, self.compute_deviations().mean(axis=1)),
            "headline": {
                "first_in_columns": first,
                "ahead_of_flat_in_columns": ahead,
                "columns": {
                    column: dict(one.__dict__) for column, one in self.compute_leads().items()
                },
            },
        }

    def _cell(self, metric: int, column: int) -> dict[str, Any]:
        return {
            "mean": float(self.mean[metric, column]),
            "sd": to_json_number(float(self.spread[metric, column])),
            "values": self.values[:, metric, column].tolist(),
            "published": TABLE_3[METRICS[metric]][column],
        }


@dataclass(frozen=True, repr=False, eq=False)
class ReplicationStudy(Result):
    """The experiment for some seeds, under each reading."""

    seeds: tuple[int, ...]
    outcomes: Mapping[str, ReadingOutcome]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "study": "synthetic",
            "seeds": list(self.seeds),
            "readings": {name: outcome.to_dict() for name, outcome in self.outcomes.items()},
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return for each reading the coverage of the metrics, beside the published numbers."""
        from ordinate.meta.replication.study_charts import chart_replication  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_replication(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each reading, metric and column."""
        return [
            {
                "reading": name,
                "metric": metric,
                "column": column,
                "mean": float(outcome.mean[m, c]),
                "sd": float(outcome.spread[m, c]),
                "published": TABLE_3[metric][c],
            }
            for name, outcome in self.outcomes.items()
            for m, metric in enumerate(METRICS)
            for c, column in enumerate(TABLE_3_COLUMNS)
        ]

    def document(self) -> Document:
        """Return the report for people."""
        return _describe_study(self)


def run_replication(
    seeds: Iterable[int] = SEEDS,
    readings: Mapping[str, Reading] = READINGS,
    *,
    progress: ProgressCallback | None = None,
) -> ReplicationStudy:
    """Run the experiment for some seeds, under each reading.

    >>> run_replication(seeds=[0]).outcomes["literal"].compute_leads()["tdisp"].best_other
    'macro_mae'
    """
    checked_seeds, values = check_seeds(seeds), []
    for done, seed in enumerate(checked_seeds, 1):
        run = SyntheticRun(seed)
        values.append([run.compute_coverages(reading) for reading in readings.values()])
        if progress is not None:
            progress(done / len(checked_seeds))
    by_reading: Array = np.array(values).swapaxes(0, 1)
    outcomes = {
        name: ReadingOutcome(reading, coverages)
        for (name, reading), coverages in zip(readings.items(), by_reading, strict=True)
    }
    return ReplicationStudy(checked_seeds, outcomes)


def check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    """Return seeds that an experiment takes."""
    checked = tuple(seeds)
    if not 1 <= len(checked) <= MOST_SEEDS:
        raise BadOption(f"The number of seeds is 1 to {MOST_SEEDS:,}, not {len(checked)}.")
    for seed in checked:
        if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
            raise BadOption(f"A seed is an integer of at least 0, not {seed!r}.")
    return checked


# --- in words ------------------------------------------------------------------------------------

STUDY_DESCRIPTION = (
    "Coverage of 15 metrics over 50 synthetic systems (five types of mistakes in ten ratios) and "
    "100 test cases, as in Amigó et al. (2020), Section 5.3. The columns are all systems, and all "
    "but those of one type. Each has the mean over seeds, the standard deviation over seeds (sd) "
    "and the published number (paper)."
)
POST_HOC_NOTE = (
    "The fitted reading was chosen after the fact, because it comes closest to the published "
    "numbers. That it fits is no evidence that the authors read their text in this way."
)


def _map_names(names: Iterable[str], values: Array) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def format_options(options: Mapping[str, str]) -> str:
    """Return options as people read them."""
    return ", ".join(f"{name}={value}" for name, value in options.items())


def format_seeds(seeds: tuple[int, ...]) -> str:
    """Return seeds as a title names them."""
    numbers = ", ".join(map(str, seeds[:SHOWN_SEEDS])) + (", …" if len(seeds) > SHOWN_SEEDS else "")
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {numbers}"


def _format_header(column: str) -> str:
    return column if column == "all" else f"no {column}"


def _describe_study(result: ReplicationStudy) -> Document:
    blocks: list[Block] = []
    for name, outcome in result.outcomes.items():
        changes = format_options(outcome.reading.changes(LITERAL))
        difference = (
            f"differs from the literal one in {changes}" if changes else "what the text says"
        )
        blocks.append(f"Reading '{name}': {difference}.")
        blocks += [
            _build_coverage_grid(name, outcome, half)
            for half in (range(3), range(3, len(TABLE_3_COLUMNS)))
        ]
        blocks.append(_build_lead_grid(name, outcome, len(result.seeds)))
    *grids, exchange = _build_fit_blocks(result)
    return Document(
        f"The synthetic experiment, {format_seeds(result.seeds)}",
        (*blocks, *grids),
        verdict=_state_claim(result),
        notes=(str(exchange), *[POST_HOC_NOTE] * ("fitted" in result.outcomes), STUDY_DESCRIPTION),
    )


def _build_coverage_grid(name: str, outcome: ReadingOutcome, columns: range) -> Grid:
    header = [part for c in columns for part in (_format_header(TABLE_3_COLUMNS[c]), "sd", "paper")]
    rows = []
    for m, metric in enumerate(METRICS):
        row: list[Any] = [metric]
        for c in columns:
            spread = to_json_number(float(outcome.spread[m, c]))
            row += [float(outcome.mean[m, c]), spread, f"{TABLE_3[metric][c]:.2f}"]
        rows.append(tuple(row))
    return Grid(f"Coverage, {name} reading", ("metric", *header), tuple(rows))


def _build_lead_grid(name: str, outcome: ReadingOutcome, seeds: int) -> Grid:
    header = ("systems", "best other", CLAIMED_METRIC, "ahead by", "in paper", "first in")
    rows = tuple(
        (
            _format_header(column),
            one.best_other,
            one.value,
            one.margin,
            f"{one.margin_published:.2f}",
            f"{one.seeds_first} of {seeds}",
            one.margin_over_flat,
            f"{one.seeds_ahead_of_flat} of {seeds}",
        )
        for column, one in outcome.compute_leads().items()
    )
    title = f"How far {CLAIMED_METRIC} is ahead of the best other metric, {name} reading"
    return Grid(title, (*header, "of flat by", "in"), rows, left=2)


def _state_claim(result: ReplicationStudy) -> str:
    claimed = f"{CLAIMED_METRIC} first in every column and ahead of {FLAT_METRIC} in every column"
    parts = [f"The paper has {claimed}."]
    for name, outcome in result.outcomes.items():
        first, ahead = outcome.count_columns_won()
        parts.append(
            f"Under the {name} reading it is first in {first} of {len(TABLE_3_COLUMNS)} "
            f"columns, and ahead of {FLAT_METRIC} in {ahead}."
        )
    return " ".join(parts)


def _build_fit_blocks(result: ReplicationStudy) -> list[str | Grid]:
    header = [part for name in result.outcomes for part in (name, f"{name}, exchanged")]
    both = [
        outcome.compute_deviations(exchanged)
        for outcome in result.outcomes.values()
        for exchanged in (None, EXCHANGED_ROWS)
    ]
    by_column = _build_mean_rows(
        [*map(_format_header, TABLE_3_COLUMNS)], [one.mean(axis=0) for one in both]
    )
    by_metric = _build_mean_rows(METRICS, [one.mean(axis=1) for one in both])
    overall = _build_mean_rows(["mean"], [one.mean(keepdims=True)[0] for one in both])
    note = (
        f"'Exchanged' takes the published rows of {' and '.join(EXCHANGED_ROWS)} for each other, "
        "which look exchanged in print. "
    )
    note += " ".join(_describe_exchange(name, outcome) for name, outcome in result.outcomes.items())
    title = "Mean absolute deviation from the paper"
    return [
        Grid(f"{title}, by systems", ("systems", *header), (*by_column, *overall)),
        Grid(f"{title}, by metric", ("metric", *header), by_metric),
        note,
    ]


def _describe_exchange(name: str, outcome: ReadingOutcome) -> str:
    (best, value), (after, next_value), *rest = outcome.rank_exchanges().items()
    return (
        f"Of all {len(rest) + 2} exchanges of two rows, that of {' and '.join(best)} lowers the "
        f"mean most under the {name} reading: from {outcome.compute_deviations().mean():.4f} to "
        f"{value:.4f} (next: {' and '.join(after)}, {next_value:.4f})."
    )


def _build_mean_rows(names: Iterable[str], columns: list[Array]) -> tuple[tuple[Cell, ...], ...]:
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return tuple(tuple(row) for row in rows)
