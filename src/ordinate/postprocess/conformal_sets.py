"""Ordinal conformal prediction: sets of neighbouring levels with guaranteed coverage."""

import math
from collections.abc import Hashable, Iterable
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, NoItems
from ordinate.postprocess.input_columns import (
    Floats,
    Positions,
    encode_gold_levels,
    encode_groups,
    format_names,
    list_columns,
    read_probability_rows,
)
from ordinate.postprocess.prediction_sets import PredictionSets
from ordinate.postprocess.sklearn_estimator import BaseEstimator
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.encoding import Groups
from ordinate.summaries.probabilities import check_same_rows

ROUNDING_TOLERANCE = 1e-12  # of a number that should be an integer


class OrdinalConformalSets(BaseEstimator):
    """Conformal prediction sets: neighbouring levels that hold gold for a share 1 - alpha of items.

    A set starts with the most probable level (the lowest of equals) and adds the more probable of
    its two neighbours (the lower of equals) for as long as it holds no more than a threshold. So
    the score of a level is what the set holds before that level joins: 0 for the most probable.
    The threshold is the ⌈(n + 1)(1 - alpha)⌉-th smallest score of the gold levels in `fit`, and
    every level joins where that exceeds n.

    The promise holds on average, if new items come from where the items of `fit` came from, and
    whether or not the probabilities are right. With `per_level` it holds for the items of each gold
    level, with `groups` for the items of each group: each has its own threshold, and the set is
    the smallest run of levels with all that their own thresholds admit. `columns` names the
    columns of an array, such as `model.classes_`: without them they are taken in the order of the
    scale, with a warning if that is not the order of the sorted labels. `renormalize` accepts rows
    that sum to 0.99 to 1.01.

    >>> sets = OrdinalConformalSets(alpha=0.2, scale="A,B,C")
    >>> sets = sets.fit([[0.6, 0.3, 0.1]] * 9, ["A"] * 6 + ["B"] * 3)
    >>> predicted = sets.predict([[0.1, 0.7, 0.2], [0.2, 0.5, 0.3]])
    >>> predicted.low.tolist(), predicted.high.tolist()
    (['B', 'B'], ['B', 'C'])
    """

    scale_: Scale
    columns_: tuple[Any, ...] | None
    thresholds_: Floats  # [G, K]: by group, one group where there are none, and by level
    groups_: tuple[Any, ...] | None
    notes_: tuple[str, ...]

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        scale: Scale | str | Iterable[Hashable] | None = None,
        per_level: bool = False,
        columns: Iterable[Any] | None = None,
        renormalize: bool = False,
    ) -> None:
        self.alpha = alpha
        self.scale = scale
        self.per_level = per_level
        self.columns = columns
        self.renormalize = renormalize

    def fit(self, probabilities: Any, gold: Any, groups: Any = None) -> Self:
        """Learn thresholds from items that the model was not fitted on."""
        check_alpha(self.alpha)
        scale, columns = resolve_scale(self.scale, gold), list_columns(self.columns)
        rows = read_probability_rows(scale, probabilities, columns, renormalize=self.renormalize)
        levels = encode_gold_levels(scale, gold)
        check_same_rows(levels, rows)
        if not len(levels):
            raise NoItems("There are no items to learn sets from: there are no rows.")
        encoded = encode_groups(groups, len(levels), "rows of probabilities")
        scores = compute_nonconformity_scores(rows)[np.arange(len(levels)), levels]
        thresholds, counts = self._learn_thresholds(scores, levels, encoded, len(scale))
        self.scale_, self.columns_, self.thresholds_ = scale, columns, thresholds
        self.groups_ = None if groups is None else tuple(encoded.values)
        self.notes_ = tuple(self._collect_notes(counts))
        return self

    def predict(self, probabilities: Any, groups: Any = None) -> PredictionSets:
        """Return the set of each row."""
        self._check_fitted()
        rows = read_probability_rows(
            self.scale_, probabilities, self.columns_, renormalize=self.renormalize
        )
        thresholds, notes = self._look_up_thresholds(groups, len(rows))
        members = compute_nonconformity_scores(rows) <= thresholds
        low = members.argmax(axis=1)
        high = len(self.scale_) - 1 - members[:, ::-1].argmax(axis=1)
        return PredictionSets(self.scale_, low, high, (*self.notes_, *notes))

    def _learn_thresholds(
        self, scores: Floats, levels: Positions, groups: Groups, size: int
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return the thresholds of each group and level, and how many items each comes from."""
        shape = len(groups.values), size if self.per_level else 1
        cells = groups.codes * shape[1] + (levels if self.per_level else 0)
        counts = np.bincount(cells, minlength=shape[0] * shape[1])
        ordered = np.split(scores[np.lexsort((scores, cells))], counts.cumsum()[:-1])
        thresholds = np.array([conformal_quantile(part, self.alpha) for part in ordered]).reshape(
            shape
        )
        return np.broadcast_to(thresholds, (shape[0], size)), counts.reshape(shape)

    def _look_up_thresholds(self, groups: Any, n: int) -> tuple[Floats, list[str]]:
        """Return the thresholds of each row; nothing is known of a group that fit did not see."""
        if (groups is None) != (self.groups_ is None):
            mismatch = (
                "fit, so predict needs them, too" if groups is None else "predict, but not to fit"
            )
            raise BadInput(f"Groups were given to {mismatch}.")
        if groups is None or self.groups_ is None:
            return self.thresholds_, []
        encoded = encode_groups(groups, n, "rows of probabilities")
        known = {value: row for row, value in enumerate(self.groups_)}
        thresholds = np.vstack([self.thresholds_, np.full(len(self.scale_), np.inf)])
        unseen = [value for value in encoded.values if value not in known]
        notes = (
            [f"Not seen in fit, so all levels are in their sets: {format_names(unseen)}."]
            if unseen
            else []
        )
        rows = np.array([known.get(value, len(known)) for value in encoded.values], np.intp)
        return thresholds[rows[encoded.codes]], notes

    def _collect_notes(self, counts: NDArray[np.int64]) -> list[str]:
        """Say where there are too few items for a threshold, and so none."""
        few = _quantile_rank(counts, self.alpha) > counts
        if not few.any():
            return []
        alpha = float(self.alpha)
        needed = math.ceil(1.0 / alpha - 1.0 - ROUNDING_TOLERANCE)
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


def compute_nonconformity_scores(rows: Floats) -> Floats:
    """Return what the growing set of each row holds before each level joins it.

    >>> compute_nonconformity_scores(np.array([[0.1, 0.2, 0.4, 0.3]])).round(1).tolist()
    [[0.9, 0.7, 0.0, 0.4]]
    """
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


def conformal_quantile(ordered: Floats, alpha: float) -> float:
    """Return the ⌈(n + 1)(1 - alpha)⌉-th of n scores in order, and inf where that exceeds n.

    >>> scores = np.arange(1.0, 10.0)
    >>> conformal_quantile(scores, 0.2), conformal_quantile(scores, 0.05)
    (8.0, inf)
    """
    rank = int(_quantile_rank(np.array(len(ordered)), alpha))
    return float(ordered[rank - 1]) if rank <= len(ordered) else math.inf


def _quantile_rank(n: NDArray[Any], alpha: float) -> NDArray[np.int64]:
    rank = (n + 1) * (1.0 - float(alpha))
    return np.ceil(rank * (1.0 - ROUNDING_TOLERANCE)).astype(np.int64)  # 20 * 0.95 is 19
