"""The reading of the synthetic experiment that fits the published figures best."""

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
from ordinate.meta.replication.synthetic_run import SyntheticRun
from ordinate.meta.replication.synthetic_systems import CHOICES, LITERAL, SEARCH_SEEDS, Reading
from ordinate.render import Document, Grid
from ordinate.results.base import SCHEMA, Result

NEGLIGIBLE_DEVIATION = 1e-12  # of two deviations that differ in rounding alone
POSSIBLE_READINGS = prod(map(len, CHOICES.values()))


class ReadingFit(NamedTuple):
    """The mean absolute deviation of a reading from the paper, and what is left of its claim.

    `exchanged` is the deviation with two rows of the paper exchanged; the claimed metric is first,
    and ahead of its flat version, in so many columns.
    """

    printed: float
    exchanged: float
    first: int
    ahead: int

    @classmethod
    def of(cls, outcome: ReadingOutcome) -> "ReadingFit":
        """Return the fit of what came out under a reading."""
        printed = float(outcome.compute_deviations().mean())
        exchanged = float(outcome.compute_deviations(EXCHANGED_ROWS).mean())
        return cls(printed, exchanged, *outcome.count_columns_won())


@dataclass(frozen=True, repr=False)
class ReadingSearch(Result):
    """Every reading that was tried, from the literal one on, with its fit."""

    seeds: tuple[int, ...]
    best: Reading
    tried: Mapping[Reading, ReadingFit]

    @property
    def ranked(self) -> list[Reading]:
        """The readings, those with the smallest deviation from the printed table first."""
        return sorted(self.tried, key=self.tried.__getitem__)

    @property
    def first_everywhere(self) -> int:
        """The number of readings under which the claimed metric is first in every column."""
        return sum(fit.first == len(TABLE_3_COLUMNS) for fit in self.tried.values())

    @property
    def ahead_everywhere(self) -> int:
        """The number under which it is ahead of its flat version in every column."""
        return sum(fit.ahead == len(TABLE_3_COLUMNS) for fit in self.tried.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "study": "synthetic_search",
            "seeds": list(self.seeds),
            "possible": POSSIBLE_READINGS,
            "tried": len(self.tried),
            "first_in_every_column": self.first_everywhere,
            "ahead_of_flat_in_every_column": self.ahead_everywhere,
            "literal": self._convert_reading_to_dict(LITERAL),
            "best": self._convert_reading_to_dict(self.best),
        }

    def _convert_reading_to_dict(self, reading: Reading) -> dict[str, Any]:
        fit = self.tried[reading]
        return {
            "options": reading.options,
            "deviation": fit.printed,
            "deviation_rows_exchanged": fit.exchanged,
            "first_in_columns": fit.first,
            "ahead_of_flat_in_columns": fit.ahead,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each reading, the best first."""
        records = map(self._convert_reading_to_dict, self.ranked)
        return [{**record.pop("options"), **record} for record in records]

    def document(self) -> Document:
        """Return the report for people."""
        return _describe_search(self)


def search_readings(
    seeds: Iterable[int] = SEARCH_SEEDS, *, tick: ProgressCallback | None = None
) -> ReadingSearch:
    """Look for the reading whose coverages deviate least from the printed ones.

    From the best reading so far (at first the literal one) it tries all that differ in one or two
    options, until none is better. `tick` is told the share of the current round.
    """
    chosen = check_seeds(seeds)
    trials = [SyntheticRun(seed) for seed in chosen]

    def fit(reading: Reading) -> ReadingFit:
        values = np.array([trial.compute_coverages(reading) for trial in trials])
        return ReadingFit.of(ReadingOutcome(reading, values))

    best, tried = descend_readings(LITERAL, fit, tick)
    return ReadingSearch(chosen, best, tried)


def descend_readings(
    start: Reading, fit: Callable[[Reading], ReadingFit], tick: ProgressCallback | None = None
) -> tuple[Reading, dict[Reading, ReadingFit]]:
    """Return the reading of least deviation within reach, and the fits of all that were tried.

    Of equally good readings one with few changes is taken.
    """
    best, tried = start, {start: fit(start)}
    while True:
        near = best.list_neighbours()
        reach = list(
            dict.fromkeys([*near, *(far for one in near for far in one.list_neighbours())])
        )
        for done, reading in enumerate(reach, 1):
            if reading not in tried:
                tried[reading] = fit(reading)
            if tick is not None:
                tick(done / len(reach))
        found = min(reach, key=lambda reading: tried[reading].printed)
        if tried[found].printed >= tried[best].printed - NEGLIGIBLE_DEVIATION:
            return best, tried
        best = found


# --- in words ------------------------------------------------------------------------------------


def _describe_search(found: ReadingSearch) -> Document:
    start, end = found.tried[LITERAL], found.tried[found.best]
    changes = format_options(found.best.changes(LITERAL)) or "nothing"
    answer = (
        f"{len(found.tried):,} of {POSSIBLE_READINGS:,} readings were tried: in rounds, all that "
        "differ from the best one so far in one or two options, beginning with the literal one. "
        f"The mean absolute deviation from the paper fell from {start.printed:.4f} to "
        f"{end.printed:.4f}; with two rows of the paper exchanged, from {start.exchanged:.4f} to "
        f"{end.exchanged:.4f}. The best reading differs from the literal one in {changes}."
    )
    claim = (
        f"{CLAIMED_METRIC} is first in every column under {found.first_everywhere:,} of these "
        f"readings, and ahead of {FLAT_METRIC} in every column under {found.ahead_everywhere:,}."
    )
    rows = tuple(
        (
            name,
            value,
            *_format_deviations(found, LITERAL, name, value),
            *_format_deviations(found, found.best, name, value),
        )
        for name, values in CHOICES.items()
        for value in values
    )
    header = ("option", "choice", "literal", "exchanged", "best", "exchanged")
    grid = Grid("The deviation of both readings with one option set", header, rows, left=2)
    note = "A star marks a reading's own choice."
    title = f"A reading for the synthetic experiment, searched with {format_seeds(found.seeds)}"
    return Document(title, (answer, claim, grid, note, POST_HOC_NOTE))


def _format_deviations(
    found: ReadingSearch, reading: Reading, name: str, value: str
) -> tuple[str, str]:
    mark = "*" if reading.options[name] == value else " "
    fit = found.tried[reading.with_option(name, value)]
    return f"{fit.printed:.4f}{mark}", f"{fit.exchanged:.4f}{mark}"
