"""Decoding: decoded levels beside argmax, what they gain on a metric, and what they cost."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.postprocess.decoder import Decoder
from ordinate.render import Document, Grid
from ordinate.render.charts import Axis, Bar, Chart, Panel
from ordinate.render.document import format_cell
from ordinate.render.estimates import (
    format_count,
    format_percent,
    format_value_with_interval,
    join_names,
)
from ordinate.render.tables import BOUNDED, NAME, Column, Table
from ordinate.results.base import (
    BETTER_VALUES,
    SCHEMA,
    Record,
    Result,
    to_json_label,
)
from ordinate.results.comparison import Comparison
from ordinate.results.leaderboard import Leaderboard
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.scale import Scale

__all__ = ["Decoding"]

Levels = NDArray[Any]
ARGMAX, DECODED = "argmax", "decoded"
MOST_LEVELS = 60  # whose bars can be seen
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
class DecodingDifference:
    """Both values of a metric, decoded minus argmax with its interval, and the verdict on decoded.

    Where 0 is best, the difference is that of the distances from 0.
    """

    metric: str
    better: str  # which values are
    argmax: float
    decoded: float
    difference: Estimate
    p: float = math.nan
    verdict: str | None = None


def compare_with_argmax(board: Leaderboard) -> DecodingDifference:
    """Return decoded minus argmax of a board of the two."""
    argmax, decoded = (board.get_standing(name).estimate.value for name in (ARGMAX, DECODED))
    name, better = board.metric.expression, BETTER_VALUES[board.metric.direction]
    if not board.pairs:
        first, second = map(float, board.metric.size(np.array([argmax, decoded])))
        return DecodingDifference(
            name, better, argmax, decoded, make_point_estimate(second - first)
        )
    (pair,) = board.pairs
    if pair.first == DECODED:
        gap, verdict = pair.difference, pair.verdict
    else:
        gap = pair.difference
        gap = replace(gap, value=-gap.value, low=-gap.high, high=-gap.low)
        verdict = MIRRORED_VERDICTS.get(pair.verdict, pair.verdict)
    return DecodingDifference(name, better, argmax, decoded, gap, pair.p, verdict)


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
        shares = self.compute_level_shares()
        return [*self._chart_gains(), *chart_level_shares(self.scale.names, shares)]

    def _chart_gains(self) -> list[Chart]:
        """Return each metric of both decision rules, on an axis of its own."""
        if self.comparison is None:
            return []
        strips = [
            MetricStrip(
                board.metric,
                board.get_standing(DECODED).estimate,
                {ARGMAX: board.get_standing(ARGMAX).estimate},
            )
            for board in self.comparison.leaderboards.values()
        ]
        level = self.comparison.settings.level
        return MetricStrips(strips, level, DECODED, in_rows=True).make_charts(
            f"Each metric of the levels decoded for {self.metric} and of the most probable ones, "
            "with confidence intervals, on an axis of its own.",
            "decoding",
            "Decoded levels beside argmax",
        )

    def tables(self) -> Iterable[Table]:
        """Return what decoding changes by metric; without gold, what was decoded."""
        common = {"decoded_for": self.metric, "rows": len(self.decoded), "changed": self.changed}
        compared = self.comparison
        if compared is None:
            yield Table("metrics", "", (), [None], common=common)
            return
        columns = (
            Column("metric", kind=NAME),
            Column("better", kind=NAME, stored=False, optional=True),
            Column(ARGMAX),
            Column(DECODED),
            Column("difference", kind=BOUNDED),
            Column("p", shown=False),
            Column("verdict", "decoded is"),
        )
        title = f"Argmax and decoded on {compared.panel.n:,} rows with gold of {self.scored_on}"
        records = list(self.differences.values())
        yield Table("metrics", title, columns, records, compared.settings.level, common=common)

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
            "metrics": {} if compared is None else self.get_table("metrics").nest("metric"),
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
        grids = [] if self.comparison is None else self.get_table("metrics").grids()
        return Document(
            f"{format_count(len(self.decoded), 'row')} decoded for {self.metric} on {self.scale}",
            (*grids, self._levels()),
            verdict=f"{self._state_gain()} {self._state_changes()}",
            notes=(*self._explain_differences(), self._describe_method(), *self.notes),
        )

    def _state_gain(self) -> str:
        """Say what decoding gains on the first metric, which it was for."""
        if self.comparison is None:
            return "No row has a gold level: nothing can be said of what decoding gains or costs."
        name, gap = next(iter(self.differences.items()))
        level = self.comparison.settings.level
        apart = f"difference {format_value_with_interval(gap.difference, level)}"
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


def chart_level_shares(
    names: Sequence[str], shares: Mapping[str, Iterable[float]], *, variant: str = ""
) -> list[Chart]:
    """Return the share of each level, in a panel for each way of giving it."""
    if len(names) > MOST_LEVELS:
        return []
    panels = tuple(
        Panel(
            tuple(
                Bar(float(share), level, detail=f"{level}, {way}: {format_percent(float(share))}")
                for level, share in zip(names, column, strict=True)
            ),
            way,
            name=way,
        )
        for way, column in shares.items()
    )
    return [
        Chart(
            "level_shares",
            "How often each level is given",
            "The share of the rows that are given each level; levels lowest first.",
            Axis("share", low=0.0),
            Axis("level", "ordered", tuple(names)),
            panels,
            columns=min(len(panels), 3),
            variant=variant,
            varies_by="data set",
        )
    ]
