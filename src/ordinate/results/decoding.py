"""Decoding: decoded levels beside argmax, what they gain on a metric, and what they cost."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, word_advice
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric, find_metric
from ordinate.postprocess.class_priors import ClassWeights
from ordinate.postprocess.decoder import Decoder, make_label_array
from ordinate.readers.columns import Files, PathName
from ordinate.readers.item_query import make_names_distinct
from ordinate.render import Document, Grid, charts
from ordinate.render.charts import Axis, Bar, Chart
from ordinate.render.document import format_cell
from ordinate.render.estimates import (
    format_count,
    format_percent,
    format_value_with_interval,
    join_names,
)
from ordinate.render.tables import BOUNDED, NAME, Column, Table
from ordinate.results.arguments import DEFAULT_METRICS, ScaleDeclaration, select_metrics
from ordinate.results.base import (
    BETTER_VALUES,
    SCHEMA,
    Record,
    Result,
    to_json_label,
)
from ordinate.results.comparison import Comparison
from ordinate.results.comparison_settings import ComparisonSettings, resolve_settings
from ordinate.results.leaderboard import Leaderboard, PanelLeaderboardBuilder
from ordinate.results.metric_strips import MetricStrip, MetricStrips
from ordinate.results.probability_rows import ProbabilityRows, read_probability_rows
from ordinate.scale import Scale
from ordinate.settings import Level, Resamples, Seed, Setting
from ordinate.summaries import Panel
from ordinate.summaries.counting import sum_single_items

__all__ = ["Decoding", "decode"]

Levels = NDArray[Any]
ARGMAX, DECODED = "argmax", "decoded"
MOST_LEVELS = 60  # whose bars can be seen
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
FITTED_HERE_NOTE = (
    "Decoding was fitted on the rows that it is scored on here, an optimistic bias, and the more "
    "so if the model was trained on them. Out-of-fold probabilities belong there; or fit on "
    "another file."
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
    gain = pair if pair.first == DECODED else pair.turn()
    return DecodingDifference(name, better, argmax, decoded, gain.difference, gain.p, gain.verdict)


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
    ids: Sequence[Any] = ()  # of the rows; none where they are numbered
    id_column: str = "row"

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
        """Return what decoding changes by metric, without gold what was decoded; and the levels."""
        common = {"decoded_for": self.metric, "rows": len(self.decoded), "changed": self.changed}
        yield self._tabulate_metrics(common)
        labels = self.scale.labels
        by, *names = make_names_distinct(self.id_column, ARGMAX, DECODED)
        rows = zip(
            self.ids or range(1, len(self.decoded) + 1), self.argmax, self.decoded, strict=True
        )
        columns = [Column(key, get=itemgetter(k)) for k, key in enumerate((by, *names))]
        yield Table("levels", "Levels", columns, [(x, labels[a], labels[b]) for x, a, b in rows])

    def _tabulate_metrics(self, common: Record) -> Table:
        compared = self.comparison
        if compared is None:
            return Table("metrics", "", (), [None], common=common)
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
        return Table("metrics", title, columns, records, compared.settings.level, common=common)

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


def decode(
    data: PathName | Files,
    fit: Annotated[
        PathName | None,
        Setting(
            "file to fit on",
            metavar="FILE",
            path="file",
            default="the rows of FILE with gold",
        ),
    ] = None,
    metric: str | Metric = "cem_ord",
    *,
    probabilities: str | Sequence[str],
    gold: str | None = None,
    id: str | None = None,  # noqa: A002 - as all that names columns calls it
    scale: ScaleDeclaration = None,
    class_weights: ClassWeights = None,
    renormalize: bool = False,
    interval: Level = 0.95,
    resamples: Resamples = 2_000,
    seed: Seed = 0,
    progress: ProgressCallback | None = None,
) -> Decoding:
    r"""Turn the predicted probabilities of a file into levels, as a metric rewards them.

    `probabilities` are the columns of the levels, or the prefix that they share. Decoding is fitted
    on rows with gold levels, best out of fold: those of the file `fit`, or of the data themselves.
    `class_weights` are those that the model was fitted with, to be undone. The levels are the table
    "levels" of the result, under the ids of column `id`; the report shows argmax beside them,
    because what one metric gains another may lose.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "new.csv"
    >>> _ = path.write_text("p_low,p_mid,p_high\n.45,.15,.40\n")
    >>> result = decode(path, metric="mae", probabilities="p_", scale="low,mid,high")
    >>> print(result.to_csv("levels"), end="")
    row,argmax,decoded
    1,low,mid
    """
    settings = ComparisonSettings(level=interval, resamples=resamples, seed=seed)
    _ = settings.intervals  # refuses a level, resamples and a seed that make no sense
    found = find_metric(metric)
    declared = None if scale is None else Scale.of(scale)
    files = Files.find(data)
    if files is None or len(files.names) != 1:
        raise BadOption("Decoding takes one file of probabilities. For arrays there is Decoder.")
    named = (probabilities,) if isinstance(probabilities, str) else tuple(probabilities)
    columns = replace(files, id=id or files.id).name_columns(
        {"gold": gold}, probabilities=named, renormalize=renormalize
    )
    path, fit = files.names[0], None if fit is None else os.fspath(fit)
    read = read_probability_rows(path, fit, columns, declared, watch=files.watch)
    rows, fitted = read.rows, read.fit
    decoder = _fit_decoder(found, class_weights, fitted)
    scored = rows if rows.known.any() else fitted
    return Decoding(
        metric=found.expression,
        decoder=decoder,
        argmax=rows.probabilities.argmax(axis=1),
        decoded=decoder.predict_positions(rows.probabilities),
        comparison=_compare_rules(scored, decoder, found, settings, progress),
        source=rows.name,
        fitted_on=fitted.name if decoder.uses_gold_ else "",
        scored_on=scored.name,
        notes=(*read.notes, *_collect_notes(decoder, rows, fitted, scored)),
        ids=rows.ids,
        id_column=columns.id or "row",
    )


def _fit_decoder(metric: Metric, weights: ClassWeights, rows: ProbabilityRows) -> Decoder:
    in_order = rows.scale.labels  # of the columns, as they were read
    decoder = Decoder(metric, rows.scale, class_weights=weights, columns=in_order)
    known = rows.known
    if known.any():
        gold = make_label_array(rows.scale)[rows.gold[known]]
        return decoder.fit(rows.probabilities[known], gold)
    try:
        return decoder.fit()
    except BadOption as problem:
        advice = "name their column with {gold}, or a file that has them with {fit}."
        way = word_advice(advice, gold=..., fit=...)
        raise BadOption(f"{problem} {rows.name} has no gold levels: {way}") from None


def _collect_notes(
    decoder: Decoder, rows: ProbabilityRows, fitted: ProbabilityRows, scored: ProbabilityRows
) -> list[str]:
    notes = list(decoder.notes_)
    if fitted is not rows and (shift := decoder.describe_shift(rows.probabilities)) is not None:
        notes.append(shift)
    if decoder.uses_gold_ and scored is fitted:
        notes.append(FITTED_HERE_NOTE)
    return notes


def _compare_rules(
    rows: ProbabilityRows,
    decoder: Decoder,
    metric: Metric,
    settings: ComparisonSettings,
    progress: ProgressCallback | None,
) -> Comparison | None:
    """Return both decision rules on the rows with gold, None where no row has."""
    if not rows.known.any():
        return None
    p = rows.probabilities[rows.known]
    columns = [rows.gold[rows.known], p.argmax(axis=1), decoder.predict_positions(p)]
    levels = np.stack(columns, axis=1).astype(np.int16)
    items = sum_single_items(len(levels), None)
    panel = Panel.from_rows(decoder.scale_, (ARGMAX, DECODED), levels, items)
    settings = resolve_settings(panel.systems, settings)
    others = [x for x in select_metrics(DEFAULT_METRICS) if x.expression != metric.expression]
    boards = PanelLeaderboardBuilder(panel, [metric, *others], settings, progress).all()
    return Comparison(panel, boards, (), settings)


def chart_level_shares(
    names: Sequence[str], shares: Mapping[str, Iterable[float]], *, variant: str = ""
) -> list[Chart]:
    """Return the share of each level, in a panel for each way of giving it."""
    if len(names) > MOST_LEVELS:
        return []
    panels = tuple(
        charts.Panel(
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
