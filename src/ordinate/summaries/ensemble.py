"""EnsemblePredictions: sums over predictions that are many values each."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadValues
from ordinate.summaries.base import SAME, Sum
from ordinate.summaries.prediction_intervals import (
    ItemSums,
    RowBlock,
    ScoreTally,
    encode_groups,
    require_valid,
    split_rows,
)
from ordinate.summaries.tabulation import check_same_length, convert_to_numbers, convert_weights

Array = NDArray[Any]
Floats = NDArray[np.float64]
CELLS_PER_BLOCK = 1 << 18  # values of members that are looked at together
SCORE_NAMES = ("absolute", "gap", "variance", "square", "bias")


@dataclass(frozen=True, eq=False, kw_only=True)
class EnsemblePredictions(ItemSums):
    """Sums over items whose prediction is a set of M equally likely members x.

    The scores of an item with the target y are `absolute`, the mean of |x - y|; `gap`, the mean of
    |x - x'| over pairs of two members; `variance`, that of the members (M - 1 in the denominator);
    `bias`, their mean less y, and `square`, its square. The CRPS is absolute - gap/2.

    `ranks` says how many targets have 0, 1, …, M members below them. A target that equals members
    counts in equal parts for every rank that it could have.

    >>> summary = EnsemblePredictions.of([1.0, 5.0], [[0.0, 2.0, 3.0], [1.0, 4.0, 2.0]])
    >>> summary.means.round(3).tolist(), summary.ranks.tolist()
    ([2.0, 2.0, 2.333, 3.778, -1.0], [0.0, 1.0, 0.0, 1.0])
    """

    ranks: Sum  # [..., M + 1]: Σw
    rank_squares: Sum  # [..., M + 1]: Σw²
    members: Annotated[int, SAME]
    names = SCORE_NAMES

    def _get_cell_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the axes of the scores and of the ranks."""
        ranks = dict.fromkeys(("ranks", "rank_squares"), (self.members + 1,))
        return super()._get_cell_shapes() | ranks

    @classmethod
    def of(
        cls, target: Any, members: Any, weights: Any = None, groups: Any = None
    ) -> "EnsemblePredictions":
        """Sum up targets [N] and members [N, M]; with groups, a batch with a summary of each."""
        y, values = convert_to_numbers(target, "targets"), _convert_members(members)
        check_same_length(len(y), len(values), "targets", "rows of members")
        size = values.shape[1]
        tally = ScoreTally(len(SCORE_NAMES), encode_groups(groups, len(y)))
        ranks = np.zeros((2, len(tally.items), size + 1))
        for piece in split_rows(
            len(y), convert_weights(weights, len(y)), max(1, CELLS_PER_BLOCK // size)
        ):
            x = _sort_members(values, piece.rows)
            target = y[piece.rows]
            finite = "The target of row {row} is {value}, not a finite number."
            require_valid(np.isfinite(target), piece.rows, target, finite)
            with np.errstate(over="ignore", invalid="ignore"):
                tally.add(_score_items(x, target), piece)
            _add_ranks(ranks, tally.places(piece.rows), x, target, piece)
        once, twice = map(tally.squeeze_groups, ranks)
        return cls(**tally.sums(len(y)), ranks=once, rank_squares=twice, members=size)


def _convert_members(members: Any) -> Array:
    """Return members as an array [N, M] of numbers, not yet checked."""
    try:
        given = np.asarray(members.to_numpy() if hasattr(members, "to_numpy") else members)
        values = given.astype(float) if given.dtype.kind == "O" else given
    except (TypeError, ValueError):
        raise BadValues("The members must be numbers, as many for each item.") from None
    if values.ndim != 2 or not values.shape[1]:
        raise BadInput(
            f"The members must be a table with a row for each item, not of the shape {given.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise BadValues("The members must be numbers, as many for each item.")
    return values


def _sort_members(members: Array, rows: Array) -> Floats:
    """Return the members [n, M] of some rows, lowest to highest, or say which is no number."""
    x = members[rows].astype(float)
    bad = ~np.isfinite(x)
    if bad.any():
        row, member = (int(place) for place in np.argwhere(bad)[0])
        raise BadValues(
            f"Member {member + 1} of row {rows[row] + 1} is {x[row, member]}, not a finite number."
        )
    x.sort(axis=1)
    return x


def _score_items(x: Floats, y: Floats) -> Floats:
    """Return the scores [5, n] of items with sorted members [n, M].

    The gap between neighbours k - 1 and k lies between k (M - k) pairs, so that no differences of
    large sums are taken.
    """
    size = x.shape[1]
    scores = np.zeros((len(SCORE_NAMES), len(y)))
    away = x - y[:, None]
    bias = away.mean(axis=1)
    scores[0] = np.abs(away).mean(axis=1)
    if size > 1:
        k = np.arange(1, size)
        scores[1] = np.diff(x, axis=1) @ (2.0 * k * (size - k) / (size * (size - 1)))
        away -= bias[:, None]
        scores[2] = np.einsum("nm,nm->n", away, away) / (size - 1)
    scores[3], scores[4] = bias * bias, bias
    return scores


def _add_ranks(ranks: Floats, groups: Array, x: Floats, y: Floats, piece: RowBlock) -> None:
    """Add the ranks of targets among sorted members to sums [2, groups, M + 1]."""
    below = (x < y[:, None]).sum(axis=1)
    above = (x <= y[:, None]).sum(axis=1)  # of the first member that is
    weight = np.ones(len(y)) if piece.weight is None else piece.weight
    for times in range(int((above - below).max(initial=0)) + 1):
        there = above - below >= times
        place = groups[there], below[there] + times
        part = weight[there] / (above - below + 1.0)[there]
        np.add.at(ranks[0], place, part)
        np.add.at(ranks[1], place, part * weight[there])
