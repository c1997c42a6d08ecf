"""The search for the options of the synthetic experiment that fit the published figures best."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ordinate.inference.resampling import ProgressCallback
from ordinate.meta.replication.published_figures import EXCHANGED_ROWS, TABLE_3_COLUMNS
from ordinate.meta.replication.study import (
    CLAIMED_METRIC,
    FLAT_METRIC,
    POST_HOC_NOTE,
    ReadingOutcome,
    check_seeds,
    format_options,
    format_seeds,
)
from ordinate.meta.replication.synthetic_experiment import (
    CHOICES,
    LITERAL,
    SEARCH_SEEDS,
    Reading,
    SyntheticRun,
)
from ordinate.render import Document, Grid
from ordinate.results.base import SCHEMA, Result

NEGLIGIBLE_DEVIATION = 1e-12  # of two deviations that differ in rounding alone
POSSIBLE_READINGS = prod(map(len, CHOICES.values()))


class ReadingFit(NamedTuple):
    """The mean absolute deviation of a reading from the paper, and whether its claim holds.

    `deviation_exchanged` is that with two rows of the paper exchanged; the claimed metric is first
    in `columns_first` columns, and ahead of its flat version in `columns_ahead`.
    """

    deviation: float
    deviation_exchanged: float
    columns_first: int
    columns_ahead: int

    @classmethod
    def of(cls, outcome: ReadingOutcome) -> "ReadingFit":
        """Return the fit of the outcome of a reading."""
        deviation = float(outcome.compute_deviations().mean())
        exchanged = float(outcome.compute_deviations(EXCHANGED_ROWS).mean())
        return cls(deviation, exchanged, *outcome.count_columns_won())


@dataclass(frozen=True, repr=False, eq=False)
class ReadingSearch(Result):
    """Every reading that was tried, from the literal one on, with its fit."""

    seeds: tuple[int, ...]
    best: Reading
    fits: Mapping[Reading, ReadingFit]

    @property
    def ranked(self) -> list[Reading]:
        """The readings, those with the smallest deviation from the printed table first."""
        return sorted(self.fits, key=self.fits.__getitem__)

    @property
    def first_everywhere(self) -> int:
        """The number of readings under which the claimed metric is first in every column."""
        return sum(fit.columns_first == len(TABLE_3_COLUMNS) for fit in self.fits.values())

    @property
    def ahead_everywhere(self) -> int:
        """The number under which it is ahead of its flat version in every column."""
        return sum(fit.columns_ahead == len(TABLE_3_COLUMNS) for fit in self.fits.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "study": "synthetic_search",
            "seeds": list(self.seeds),
            "possible": POSSIBLE_READINGS,
            "tried": len(self.fits),
            "first_in_every_column": self.first_everywhere,
            "ahead_of_flat_in_every_column": self.ahead_everywhere,
            "literal": self._convert_reading_to_dict(LITERAL),
            "best": self._convert_reading_to_dict(self.best),
        }

    def _convert_reading_to_dict(self, reading: Reading) -> dict[str, Any]:
        fit = self.fits[reading]
        return {
            "options": reading.options,
            "deviation": fit.deviation,
            "deviation_rows_exchanged": fit.deviation_exchanged,
            "first_in_columns": fit.columns_first,
            "ahead_of_flat_in_columns": fit.columns_ahead,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each reading, the best first."""
        records = map(self._convert_reading_to_dict, self.ranked)
        return [{**record.pop("options"), **record} for record in records]

    def document(self) -> Document:
        """Return the report for people."""
        return _describe_search(self)


def search_readings(
    seeds: Iterable[int] = SEARCH_SEEDS, *, progress: ProgressCallback | None = None
) -> ReadingSearch:
    """Look for the reading whose coverages deviate least from the printed ones.

    From the best reading so far (at first the literal one) it tries all that differ in one or two
    options, until none is better. `progress` is called with the share of the round.
    """
    checked_seeds = check_seeds(seeds)
    runs = [SyntheticRun(seed) for seed in checked_seeds]

    def fit(reading: Reading) -> ReadingFit:
        values = np.array([run.compute_coverages(reading) for run in runs])
        return ReadingFit.of(ReadingOutcome(reading, values))

    best, fits = descend_readings(LITERAL, fit, progress)
    return ReadingSearch(checked_seeds, best, fits)


def descend_readings(
    start: Reading, fit: Callable[[Reading], ReadingFit], progress: ProgressCallback | None = None
) -> tuple[Reading, dict[Reading, ReadingFit]]:
    """Return the reading of least deviation within reach, and the fits of all that were tried.

    Of equally good readings one with few changes is taken.
    """
    best, fits = start, {start: fit(start)}
    while True:
        near = best.list_neighbours()
        reach = list(
            dict.fromkeys(
                [*near, *(far for neighbour in near for far in neighbour.list_neighbours())]
            )
        )
        for done, reading in enumerate(reach, 1):
            if reading not in fits:
                fits[reading] = fit(reading)
            if progress is not None:
                progress(done / len(reach))
        nearest = min(reach, key=lambda reading: fits[reading].deviation)
        if fits[nearest].deviation >= fits[best].deviation - NEGLIGIBLE_DEVIATION:
            return best, fits
        best = nearest


# --- in words ------------------------------------------------------------------------------------


def _describe_search(search: ReadingSearch) -> Document:
    start, end = search.fits[LITERAL], search.fits[search.best]
    changes = format_options(search.best.changes(LITERAL)) or "nothing"
    answer = (
        f"{len(search.fits):,} of {POSSIBLE_READINGS:,} readings were tried: in rounds, all that "
        "differ from the best one so far in one or two options, beginning with the literal one. "
        f"The mean absolute deviation from the paper fell from {start.deviation:.4f} to "
        f"{end.deviation:.4f}; with two rows of the paper exchanged, from "
        f"{start.deviation_exchanged:.4f} to {end.deviation_exchanged:.4f}. The best reading "
        f"differs from the literal one in {changes}."
    )
    claim = (
        f"{CLAIMED_METRIC} is first in every column under {search.first_everywhere:,} of these "
        f"readings, and ahead of {FLAT_METRIC} in every column under {search.ahead_everywhere:,}."
    )
    rows = tuple(
        (
            name,
            value,
            *_format_deviations(search, LITERAL, name, value),
            *_format_deviations(search, search.best, name, value),
        )
        for name, values in CHOICES.items()
        for value in values
    )
    header = ("option", "choice", "literal", "exchanged", "best", "exchanged")
    grid = Grid("The deviation of both readings with one option set", header, rows, left=2)
    note = "A star marks a reading's own choice."
    title = f"A reading for the synthetic experiment, searched with {format_seeds(search.seeds)}"
    return Document(title, (answer, grid), claim, (note, POST_HOC_NOTE))


def _format_deviations(
    search: ReadingSearch, reading: Reading, name: str, value: str
) -> tuple[str, str]:
    mark = "*" if reading.options[name] == value else " "
    fit = search.fits[reading.with_option(name, value)]
    return f"{fit.deviation:.4f}{mark}", f"{fit.deviation_exchanged:.4f}{mark}"
