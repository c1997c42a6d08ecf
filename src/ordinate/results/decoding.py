"""Decoding: decoded levels beside argmax, what they gain on a metric, and what they cost."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.postprocess.decoder import Decoder
from ordinate.render import Document, Grid
from ordinate.render.charts import Chart
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.render.estimates import (
    format_count,
    format_headline,
    format_interval_head,
    format_percent,
    join_names,
)
from ordinate.results.base import (
    BETTER_VALUES,
    SCHEMA,
    Record,
    Result,
    Serializable,
    to_json_label,
    to_plain,
)
from ordinate.results.comparison import Comparison
from ordinate.results.leaderboard import Leaderboard
from ordinate.scale import Scale

__all__ = ["Decoding"]

Levels = NDArray[Any]
ARGMAX, DECODED = "argmax", "decoded"
MIRRORED_VERDICTS = {"better": "worse", "worse": "better"}
VERDICT_WORDS = {
    "better": "significantly better",
    "worse": "significantly worse",
    "inconclusive": "not significantly different",
    "identical": "the same predictions for this metric",
}
METHOD_TEXTS = {
    "linear": "Each row has the level with the best expected value, which is exact",
    "ratio": "Each row has the level that makes the ratio of expectations best, which is exact",
    "search": "The levels come from a search, which is not exact",
}

TRADE_OFF_NOTE = (
    "Decoding trades one metric for another: the first line is what it was for. The intervals are "
    "of the difference on the same rows, for each metric alone."
)


NEAR_ZERO_NOTE = (
    "Where the best value is 0, the difference is that of the distances from 0: of {names}, "
    "decoded is better where it is below 0."
)


@dataclass(frozen=True)
class DecodingDifference(Serializable):
    """Both values of a metric, decoded minus argmax with its interval, and the verdict on decoded.

    Where 0 is best, the difference is that of the distances from 0.
    """

    argmax: float
    decoded: float
    difference: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    verdict: str | None = None


def compare_with_argmax(board: Leaderboard) -> DecodingDifference:
    """Return decoded minus argmax of a board of the two."""
    values = [board.get_standing(name).estimate.value for name in (ARGMAX, DECODED)]
    argmax, decoded = values
    if not board.pairs:
        first, second = map(float, board.metric.size(np.array(values)))
        return DecodingDifference(argmax, decoded, second - first)
    (pair,) = board.pairs
    if pair.first == DECODED:
        difference, verdict = (pair.difference, pair.low, pair.high), pair.verdict
    else:
        difference = (-pair.difference, -pair.high, -pair.low)
        verdict = MIRRORED_VERDICTS.get(pair.verdict, pair.verdict)
    return DecodingDifference(argmax, decoded, *difference, pair.p, verdict)


@dataclass(frozen=True, repr=False, eq=False)
class Decoding(Result):
    """Rows of probabilities with their levels by argmax and decoded, as positions on the scale.

    `comparison` holds both on the rows that have gold, None where no row has.
    """

    metric: str
    decoder: Decoder
    argmax: Levels
    decoded: Levels
    comparison: Comparison | None
    source: str
    fitted_on: str
    scored_on: str
    notes: tuple[str, ...] = ()

    @property
    def scale(self) -> Scale:
        """The scale of the levels."""
        return self.decoder.scale_

    @property
    def changed(self) -> int:
        """How many rows get another level than argmax."""
        return int((self.argmax != self.decoded).sum())

    @property
    def differences(self) -> dict[str, DecodingDifference]:
        """Decoded minus argmax, by metric."""
        boards = {} if self.comparison is None else self.comparison.leaderboards
        return {name: compare_with_argmax(board) for name, board in boards.items()}

    def make_charts(self) -> Iterable[Chart]:
        """Return both decision rules on each metric, and how often they give each level."""
        from ordinate.results.decoding_charts import chart_decoding  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_decoding(self)

    def rows(self) -> list[Record]:
        """Return one flat record for each metric; without gold, one that says what was decoded."""
        head = {"decoded_for": self.metric, "rows": len(self.decoded), "changed": self.changed}
        differences = self.differences.items()
        records = [head | {"metric": name} | gap.to_dict() for name, gap in differences]
        return records or [head]

    def to_dict(self) -> Record:
        """Return plain values, nan as None: what `--format json` writes."""
        decoder, compared = self.decoder, self.comparison
        return {
            "schema": SCHEMA,
            "task": "decode",
            "metric": self.metric,
            "method": decoder.method_,
            "exact": decoder.exact_,
            "ratio": decoder.ratio_,
            "scale": [to_json_label(label) for label in self.scale.labels],
            "n": len(self.decoded),
            "changed": self.changed,
            "levels": {name: counts.tolist() for name, counts in self._counts().items()},
            "scored": 0 if compared is None else compared.panel.n,
            "level": None if compared is None else compared.settings.level,
            "metrics": to_plain(self.differences),
            "source": {
                "file": self.source,
                "fitted_on": self.fitted_on,
                "scored_on": self.scored_on,
                "notes": list(self.notes),
            },
        }

    def _explain_differences(self) -> list[str]:
        """Say what the differences mean, those of distances from 0 as well."""
        if self.comparison is None:
            return []
        boards = self.comparison.leaderboards.items()
        near = [name for name, board in boards if board.metric.direction == "zero"]
        return [TRADE_OFF_NOTE] + ([NEAR_ZERO_NOTE.format(names=join_names(near))] if near else [])

    def document(self) -> Document:
        """Return the report for people."""
        return Document(
            f"{format_count(len(self.decoded), 'row')} decoded for {self.metric} on {self.scale}",
            (*self._make_comparison_grids(), self._levels()),
            verdict=f"{self._state_gain()} {self._state_changes()}",
            notes=(*self._explain_differences(), self._describe_method(), *self.notes),
        )

    def _state_gain(self) -> str:
        """Say what decoding gains on the first metric, which it was for."""
        if self.comparison is None:
            return "No row has a gold level: nothing can be said of what decoding gains or costs."
        name, gap = next(iter(self.differences.items()))
        interval, level = format_interval(gap.low, gap.high), self.comparison.settings.level
        apart = f"difference {format_headline(format_cell(gap.difference), interval, level)}"
        return (
            f"Decoding gives {name} {format_cell(gap.decoded)}, argmax {format_cell(gap.argmax)}: "
            f"{VERDICT_WORDS.get(gap.verdict or '', 'not tested')}, {apart}."
        )

    def _state_changes(self) -> str:
        share = self.changed / max(1, len(self.decoded))
        return (
            f"{self.changed:,} of {len(self.decoded):,} rows ({format_percent(share)}) get "
            "another level than argmax, the most probable one."
        )

    def _describe_method(self) -> str:
        ratio = self.decoder.ratio_
        fitted = f" Fitted on {self.fitted_on}." if self.fitted_on else ""
        expected = "" if ratio is None else f": {1.0 - ratio:.3f} is expected on the rows of fit"
        return f"Read from {self.source}.{fitted} {METHOD_TEXTS[self.decoder.method_]}{expected}."

    def _make_comparison_grids(self) -> list[Grid]:
        if self.comparison is None:
            return []
        level = self.comparison.settings.level
        header = ("metric", "better", ARGMAX, DECODED, "difference", format_interval_head(level))
        rows: list[tuple[Cell, ...]] = []
        for name, gap in self.differences.items():
            better = BETTER_VALUES[self.comparison.leaderboards[name].metric.direction]
            values = (gap.argmax, gap.decoded, gap.difference, format_interval(gap.low, gap.high))
            rows.append((name, better, *values, gap.verdict))
        title = f"Argmax and decoded on {self.comparison.panel.n:,} rows with gold"
        title += f" of {self.scored_on}"
        return [Grid(title, (*header, "decoded is"), tuple(rows), left=2, optional=("better",))]

    def _counts(self) -> dict[str, Levels]:
        size = len(self.scale)
        columns = ((ARGMAX, self.argmax), (DECODED, self.decoded))
        counts: dict[str, Levels] = {
            name: np.bincount(column, minlength=size) for name, column in columns
        }
        if self.decoder.shares_ is not None:
            counts["gold_share_in_fit"] = self.decoder.shares_
        return counts

    def compute_level_shares(self) -> dict[str, Levels]:
        """Return how often each level is given: by argmax, decoded, and in gold of the fit."""
        counts, n = self._counts(), max(1, len(self.decoded))
        shares: dict[str, Levels] = {name: counts[name] / n for name in (ARGMAX, DECODED)}
        gold = counts.get("gold_share_in_fit")
        return shares if gold is None else shares | {"gold in fit": gold}

    def _levels(self) -> Grid:
        shares = self.compute_level_shares()
        rows = tuple(
            (name, *(format_percent(column[k]) for column in shares.values()))
            for k, name in enumerate(self.scale.names)
        )
        title = f"How often each level is given, in {self.source}"
        return Grid(title, ("level", *shares), rows)
