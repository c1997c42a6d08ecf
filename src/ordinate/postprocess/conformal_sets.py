"""Ordinal conformal prediction: sets of neighbouring levels with guaranteed coverage."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NoItems
from ordinate.inference.delta_method import compute_bounded_interval, normal_quantile
from ordinate.inference.estimates import Estimate, make_point_estimate, to_json_number
from ordinate.inference.small_samples import wilson_interval
from ordinate.postprocess.decoder import make_label_array
from ordinate.postprocess.estimator import (
    BaseEstimator,
    Floats,
    Positions,
    encode_gold_levels,
    encode_groups,
    format_names,
    match_groups,
    read_probability_rows,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.encoding import Groups
from ordinate.summaries.probabilities import ColumnLabels, check_same_rows, list_columns
from ordinate.summaries.tabulation import check_same_length

Bools = NDArray[np.bool]
SetRule = Literal["greedy", "shortest"]
RiskControl = Literal["coverage", "distance"]
ROUNDING_TOLERANCE = 1e-12  # of a number that should be an integer
UNKNOWN_COVERAGE_NOTE = "whether sets have the gold level cannot be told"


class OrdinalConformalSets(BaseEstimator):
    """Conformal prediction sets: neighbouring levels that hold gold for a share 1 - alpha of items.

    Each row has sets that grow with a threshold, and each level a score: the threshold above which
    it joins. By the `rule` "shortest" a set is the run of so many levels with the largest sum of
    probabilities, and those of all smaller numbers; by "greedy" it starts with the most probable
    level and adds the more probable of its two neighbours. They are the same where the
    probabilities of a row have one peak. The threshold is the ⌈(n + 1)(1 - alpha)⌉-th smallest
    score of the gold levels in `fit`, and every level joins where that exceeds n.

    With `control="distance"` alpha is not a share of items but a distance: gold is no further from
    its set than that on average, 0 if it is inside, in steps or in the units of the scale
    (conformal risk control).

    The promise holds on average, if new items come from where the items of `fit` came from, and
    whether or not the probabilities are right. With `per_level` it holds for the items of each gold
    level, with `groups` for the items of each group: each has its own threshold, and the set is
    the smallest run of levels with all that their own thresholds admit. `columns` are the
    labels of the columns of an array, such as `model.classes_`, or "scale": without it, an array is
    taken where sorting the labels gives the order of the scale. `renormalize` accepts rows that
    were rounded to two decimals.

    >>> sets = OrdinalConformalSets(alpha=0.2, scale="A,B,C")
    >>> sets = sets.fit([[0.6, 0.3, 0.1]] * 9, ["A"] * 6 + ["B"] * 3)
    >>> predicted = sets.predict([[0.1, 0.7, 0.2], [0.2, 0.5, 0.3]])
    >>> predicted.low.tolist(), predicted.high.tolist()
    (['B', 'B'], ['B', 'C'])
    """

    scale_: Scale
    columns_: ColumnLabels
    thresholds_: Floats  # [G, K]: by group, one group where there are none, and by level
    groups_: tuple[Any, ...] | None
    notes_: tuple[str, ...]

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        scale: Scale | str | Iterable[Hashable] | None = None,
        rule: SetRule = "greedy",
        control: RiskControl = "coverage",
        per_level: bool = False,
        columns: ColumnLabels = None,
        renormalize: bool = False,
    ) -> None:
        self.alpha = alpha
        self.scale = scale
        self.rule = rule
        self.control = control
        self.per_level = per_level
        self.columns = columns
        self.renormalize = renormalize

    def fit(self, probabilities: Any, gold: Any, groups: Any = None) -> Self:
        """Learn thresholds from items that the model was not fitted on."""
        _check_choice("rule", self.rule, get_args(SetRule))
        _check_choice("control", self.control, get_args(RiskControl))
        scale, columns = resolve_scale(self.scale, gold), list_columns(self.columns)
        losses = self._build_losses(scale)
        rows = read_probability_rows(
            scale, probabilities, columns, gold=gold, renormalize=self.renormalize
        )
        levels = encode_gold_levels(scale, gold)
        check_same_rows(levels, rows)
        if not len(levels):
            raise NoItems("There are no items to learn sets from: there are no rows.")
        encoded = encode_groups(groups, len(levels), "rows of probabilities")
        scores = compute_nonconformity_scores(rows, self.rule)
        thresholds, counts = self._learn_thresholds(scores, levels, encoded, losses)
        self.scale_, self.columns_ = scale, columns
        self.thresholds_ = np.broadcast_to(thresholds, (len(thresholds), len(scale)))
        self.groups_ = None if groups is None else tuple(encoded.values)
        self.notes_ = tuple(self._collect_notes(counts, losses.max()))
        return self

    def predict(self, probabilities: Any, groups: Any = None) -> "PredictionSets":
        """Return the set of each row."""
        self._check_fitted()
        rows = read_probability_rows(
            self.scale_, probabilities, self.columns_, renormalize=self.renormalize
        )
        thresholds, notes = self._look_up_thresholds(groups, len(rows))
        members = compute_nonconformity_scores(rows, self.rule) <= thresholds
        low = members.argmax(axis=1)
        high = len(self.scale_) - 1 - members[:, ::-1].argmax(axis=1)
        return PredictionSets(self.scale_, low, high, (*self.notes_, *notes))

    def _build_losses(self, scale: Scale) -> Floats:
        """Return what a set loses that reaches a level [gold, level] and none nearer to gold."""
        if self.control == "coverage":
            check_alpha(self.alpha)
            return 1.0 - np.eye(len(scale))
        if self.per_level:
            raise BadOption(
                "per_level=True is for coverage: with control='distance' there is one threshold "
                "for all levels. Leave one of them out."
            )
        if not (isinstance(self.alpha, Real) and 0.0 < float(self.alpha) < scale.span):
            raise BadOption(
                f"alpha={self.alpha!r} is not a distance between 0 and {scale.span:g}, the largest "
                "on the scale."
            )
        return scale.gaps

    def _learn_thresholds(
        self, scores: Floats, levels: Positions, groups: Groups, losses: Floats
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return the thresholds of each group and level, and how many items each comes from."""
        worst = losses.max()
        steps = list_loss_steps(scores, losses[levels], worst)
        shape = len(groups.values), len(losses) if self.per_level else 1
        cells = groups.codes * shape[1] + (levels if self.per_level else 0)
        counts = np.bincount(cells, minlength=shape[0] * shape[1])
        owner = cells[steps.items]
        order = np.lexsort((steps.at, owner))
        ends = np.bincount(owner, minlength=len(counts)).cumsum()[:-1]
        at, drops = (np.split(part[order], ends) for part in (steps.at, steps.drops))
        thresholds = [
            find_threshold(*part, float(self.alpha), worst)
            for part in zip(at, drops, counts.tolist(), strict=True)
        ]
        return np.reshape(thresholds, shape), counts.reshape(shape)

    def _look_up_thresholds(self, groups: Any, n: int) -> tuple[Floats, list[str]]:
        """Return the thresholds of each row; nothing is known of a group that fit did not see."""
        rows, unseen = match_groups(groups, self.groups_, n, "rows of probabilities")
        thresholds = np.vstack([self.thresholds_, np.full(len(self.scale_), np.inf)])
        note = f"Not seen in fit, so all levels are in their sets: {format_names(unseen)}."
        return thresholds[rows], [note] if unseen else []

    def _collect_notes(self, counts: NDArray[np.int64], worst: float) -> list[str]:
        """Say where there are too few items for a threshold, and so none."""
        alpha = float(self.alpha)
        needed = math.ceil(worst / alpha - 1.0 - ROUNDING_TOLERANCE)
        few = counts < needed
        if not few.any():
            return []
        grouped = self.groups_ is not None
        each = " of each level" * self.per_level + " of each group" * grouped
        short = (
            f" of {format_names([self._format_cell(*cell) for cell in np.argwhere(few)])}"
            if each
            else ""
        )
        levels = "such a level" if self.per_level else "every level"
        needs = f"alpha={alpha:g} needs {needed} items{each}, and there were fewer{short}"
        return [f"{needs}: {levels} is in each set{' of the group' * grouped}."]

    def _format_cell(self, group: int, level: int) -> str:
        parts = [] if self.groups_ is None else [str(self.groups_[group])]
        return ", ".join([*parts, *([self.scale_.names[level]] if self.per_level else [])])


def check_alpha(alpha: Any) -> None:
    """Refuse what is no share of new items that may be missed."""
    if not (isinstance(alpha, Real) and 0.0 < float(alpha) < 1.0):
        raise BadOption(f"alpha={alpha!r} is not a number between 0 and 1.")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadOption(f"{name}={value!r} is not one of {', '.join(choices)}.")


def compute_nonconformity_scores(rows: Floats, rule: SetRule = "greedy") -> Floats:
    """Return the threshold above which each level [N, K] joins the growing set of its row.

    It is the probability of the last set without the level: 0 for the levels of the first.

    >>> compute_nonconformity_scores(np.array([[0.1, 0.2, 0.4, 0.3]])).round(1).tolist()
    [[0.9, 0.7, 0.0, 0.4]]
    >>> two_peaks = np.array([[0.4, 0.0, 0.3, 0.3]])
    >>> compute_nonconformity_scores(two_peaks, "greedy").round(1).tolist()
    [[0.0, 0.4, 0.4, 0.7]]
    >>> compute_nonconformity_scores(two_peaks, "shortest").round(1).tolist()
    [[0.0, 0.4, 0.4, 0.4]]
    """
    return SCORES[rule](rows)


def _score_greedy(rows: Floats) -> Floats:
    """Grow the set from the most probable level by the more probable neighbour, or the lower."""
    n, size = rows.shape
    items = np.arange(n)
    walled = np.full((n, size + 2), -1.0)  # beyond either end there is nothing to add
    walled[:, 1:-1] = rows
    low = rows.argmax(axis=1) if n else np.empty(0, np.intp)
    high = low.copy()
    held = rows[items, low]
    scores = np.zeros((n, size))
    for _ in range(size - 1):
        below, above = walled[items, low], walled[items, high + 2]
        down = below >= above
        low, high = low - down, high + ~down
        scores[items, np.where(down, low, high)] = held
        held = held + np.maximum(below, above)
    return scores


def _score_shortest(rows: Floats) -> Floats:
    """Take the window of l levels with the largest sum, or the lowest, and those of all smaller l.

    Windows of different lengths need not lie in each other; with all levels between them they do.
    """
    n, size = rows.shape
    levels = np.arange(size)
    low, high = np.full((n, 1), size), np.full((n, 1), -1)
    scores, held = np.full((n, size), np.inf), np.zeros((n, 1))
    windows = np.zeros((n, size + 1))  # their sums, by the first level
    for length in range(1, size + 1):
        windows = windows[:, :-1] + rows[:, length - 1 :]
        best = windows.max(axis=1, keepdims=True)
        first = (windows >= best - ROUNDING_TOLERANCE).argmax(axis=1)[:, None]
        low, high = np.minimum(low, first), np.maximum(high, first + length - 1)
        joins = (low <= levels) & (levels <= high) & np.isinf(scores)
        scores = np.where(joins, held, scores)
        held = best
    return scores


SCORES = {"greedy": _score_greedy, "shortest": _score_shortest}


class LossSteps(NamedTuple):
    """Where the losses of items fall as the threshold of their sets rises, and by how much."""

    items: Positions
    at: Floats
    drops: Floats


def list_loss_steps(scores: Floats, losses: Floats, worst: float) -> LossSteps:
    """Return the steps of items whose levels [N, K] join at these scores.

    The loss of a set is the least of the losses of its levels, and `worst` without any.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    least = np.minimum.accumulate(np.take_along_axis(losses, order, axis=1), axis=1)
    drops = -np.diff(least, axis=1, prepend=worst)
    items, places = np.nonzero(drops)
    return LossSteps(items, scores[items, order[items, places]], drops[items, places])


def find_threshold(at: Floats, drops: Floats, n: int, alpha: float, worst: float) -> float:
    """Return the least threshold whose expected loss is at most alpha, inf where none is.

    A new item may lose as much as `worst`: with it, the losses of n + 1 items may sum up to
    alpha (n + 1). The steps are in order. For a loss of 1 outside the set, the threshold is the
    ⌈(n + 1)(1 - alpha)⌉-th smallest score.

    >>> scores = np.arange(1.0, 10.0)
    >>> find_threshold(scores, np.ones(9), 9, 0.2, 1.0), conformal_quantile(scores, 0.2)
    (8.0, 8.0)
    """
    allowed = alpha * (n + 1) - worst
    enough = worst * n - drops.cumsum() <= allowed + ROUNDING_TOLERANCE * worst * (n + 1)
    return float(at[enough.argmax()]) if enough.any() else math.inf


def conformal_quantile(ordered: Floats, alpha: float) -> float:
    """Return the ⌈(n + 1)(1 - alpha)⌉-th of n scores in order, and inf where that exceeds n.

    >>> scores = np.arange(1.0, 10.0)
    >>> conformal_quantile(scores, 0.2), conformal_quantile(scores, 0.05)
    (8.0, inf)
    """
    rank = (len(ordered) + 1) * (1.0 - float(alpha))
    rank = math.ceil(rank * (1.0 - ROUNDING_TOLERANCE))  # 20 * 0.95 is 19
    return float(ordered[rank - 1]) if rank <= len(ordered) else math.inf


# --- prediction sets -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Prediction sets of neighbouring levels, one for each item, from a lowest to a highest level.

    >>> sets = PredictionSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 1]))
    >>> sets.members.tolist(), sets.sizes.tolist(), sets.contains(["mid", "high"]).tolist()
    ([[True, True, False], [False, True, False]], [2, 1], [True, False])
    """

    scale: Scale
    low_positions: Positions
    high_positions: Positions
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.low_positions)

    @property
    def low(self) -> NDArray[Any]:
        """The label of the lowest level of each set."""
        return make_label_array(self.scale)[self.low_positions]

    @property
    def high(self) -> NDArray[Any]:
        """The label of the highest level of each set."""
        return make_label_array(self.scale)[self.high_positions]

    @property
    def members(self) -> Bools:
        """Whether each level [N, K] is in the set."""
        levels = np.arange(len(self.scale))
        return (self.low_positions[:, None] <= levels) & (levels <= self.high_positions[:, None])

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many levels each set has."""
        return self.high_positions - self.low_positions + 1

    def contains(self, gold: Any) -> Bools:
        """Tell whether each set has the gold level of its item."""
        levels = self._encode_gold(gold)
        return (self.low_positions <= levels) & (levels <= self.high_positions)

    def compute_distances(self, gold: Any) -> Floats:
        """Return the distance of each gold level from its set, 0 if it is inside."""
        levels = self._encode_gold(gold)
        nearest = np.clip(levels, self.low_positions, self.high_positions)
        return self.scale.gaps[levels, nearest]

    def _encode_gold(self, gold: Any) -> Positions:
        levels = encode_gold_levels(self.scale, gold, reason=UNKNOWN_COVERAGE_NOTE)
        check_same_length(len(levels), len(self), "gold labels", "sets")
        return levels


@dataclass(frozen=True)
class PredictionSetEvaluation:
    """The coverage of prediction sets, overall and by gold level, and their sizes.

    `mean_distance` is the distance of gold from its set, 0 if it is inside.
    """

    n: int
    coverage: Estimate
    coverage_by_level: dict[Hashable, Estimate]
    mean_distance: Estimate
    mean_size: float
    size_shares: dict[int, float]
    empty_share: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(row["of"]) for row in rows)
        covered, apart, shares = (
            [_format_line(row, width) for row in rows if row["metric"] == name]
            for name in ("coverage", "mean_distance", "share")
        )
        sets = f"{self.n} sets, {self.mean_size:.2f} levels on average"
        notes = ["", *self.notes] if self.notes else []
        lines = [sets, "", "Coverage", *covered, "", "Mean distance of gold from its set", *apart]
        lines += ["", "Sets by their size", *shares]
        return "\n".join([*lines, *notes])

    def rows(self) -> list[dict[str, Any]]:
        """Return flat records: coverage of all sets and by gold level, the sizes of sets."""
        of_levels = self.coverage_by_level.items()
        sizes = {0: self.empty_share} | self.size_shares
        return [
            _make_record("coverage", "all items", self.coverage),
            *(_make_record("coverage", str(label), estimate) for label, estimate in of_levels),
            _make_record("mean_distance", "all items", self.mean_distance),
            _make_record("mean_size", "all items", make_point_estimate(self.mean_size, "")),
            *(
                _make_record("share", str(size), make_point_estimate(share, ""))
                for size, share in sizes.items()
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        levels = {
            str(label): estimate.to_dict() for label, estimate in self.coverage_by_level.items()
        }
        return {
            "n": self.n,
            "coverage": self.coverage.to_dict(),
            "coverage_by_level": levels,
            "mean_distance": self.mean_distance.to_dict(),
            "mean_size": self.mean_size,
            "size_shares": {str(size): share for size, share in self.size_shares.items()},
            "empty_share": self.empty_share,
            "notes": list(self.notes),
        }


def evaluate_prediction_sets(
    sets: PredictionSets, gold: Any, level: float = 0.95
) -> PredictionSetEvaluation:
    """Return coverage and mean distance of gold with their intervals, and the sizes of sets.

    Coverage, overall and by gold level, has Wilson's interval.

    >>> sets = PredictionSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 1]))
    >>> evaluation = evaluate_prediction_sets(sets, ["mid", "high"])
    >>> evaluation.coverage.value, evaluation.mean_size, evaluation.size_shares
    (0.5, 1.5, {1: 0.5, 2: 0.5, 3: 0.0})
    """
    if not (isinstance(level, Real) and not isinstance(level, bool) and 0.5 <= level < 1.0):
        raise BadOption(f"The level of an interval is 0.5 to below 1, not {level!r}.")
    covered, levels = (
        sets.contains(gold),
        encode_gold_levels(sets.scale, gold, reason=UNKNOWN_COVERAGE_NOTE),
    )
    if not len(levels):
        raise NoItems("There are no items to evaluate: there are no sets.")
    of_level = [covered[levels == k] for k in range(len(sets.scale))]
    shares = np.bincount(sets.sizes, minlength=len(sets.scale) + 1) / len(sets)
    return PredictionSetEvaluation(
        n=len(sets),
        coverage=_estimate_coverage(covered, level),
        coverage_by_level={
            label: _estimate_coverage(part, level)
            for label, part in zip(sets.scale.labels, of_level, strict=True)
        },
        mean_distance=_estimate_distance(sets.compute_distances(gold), sets.scale.span, level),
        mean_size=float(sets.sizes.mean()),
        size_shares={size: float(shares[size]) for size in range(1, len(shares))},
        empty_share=float(shares[0]),
        notes=sets.notes,
    )


def _make_record(metric: str, of: str, estimate: Estimate) -> dict[str, Any]:
    return {
        "metric": metric,
        "of": of,
        "value": to_json_number(estimate.value),
        "low": to_json_number(estimate.low),
        "high": to_json_number(estimate.high),
        "method": estimate.method,
        "note": estimate.note or None,
    }


def _format_line(row: dict[str, Any], width: int) -> str:
    if row["value"] is None:
        return f"  {row['of']:<{width}}  undefined: {row['note']}"
    interval = "" if row["low"] is None else f"  [{row['low']:.3f}, {row['high']:.3f}]"
    return f"  {row['of']:<{width}}  {row['value']:.3f}{interval}"


def _estimate_coverage(covered: Bools, level: float) -> Estimate:
    if not len(covered):
        return make_point_estimate(math.nan, "gold has no item of this level")
    low, high = wilson_interval(covered.sum(), len(covered), level)
    return Estimate(float(covered.mean()), float(low), float(high), "wilson")


def _estimate_distance(distances: Floats, span: float, level: float) -> Estimate:
    mean, n = float(distances.mean()), len(distances)
    error = float(distances.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if not error > 0:
        return make_point_estimate(mean, "it is the same for all items")
    low, high = compute_bounded_interval(mean, error, (0.0, span), normal_quantile(level))
    return Estimate(mean, low, high, "delta")
