"""Regression trees as plain arrays, walked by NumPy, which checks every step it takes."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

BLOCK_ROWS = 4096  # rows that walk at once
LEAF = -1
NODE_FIELDS = ("feature", "threshold", "left", "right", "value")


@dataclass(frozen=True)
class BoostedTrees:
    """f(x) = offset + the sum of one leaf of each tree; the nodes of all trees stand in a row.

    A row goes to `left` where its `feature` is at most `threshold`, to `right` otherwise; leaves
    have `left` -1.
    """

    width: int  # features
    offset: float
    roots: Places  # [T]
    feature: Places  # [M]
    threshold: Floats  # [M]
    left: Places  # [M]
    right: Places  # [M]
    value: Floats  # [M]

    @classmethod
    def from_histogram_boosting(cls, fitted: Any) -> Self:
        """Return the trees of scikit-learn's histogram gradient boosting for one target."""
        trees = [stage[0].nodes for stage in fitted._predictors]  # noqa: SLF001 - no public way
        offset = float(np.ravel(fitted._baseline_prediction)[0])  # noqa: SLF001 - the same
        starts = np.cumsum([0, *(len(nodes) for nodes in trees)])[:-1].astype(np.int64)
        parts = [_flatten_nodes(nodes, start) for nodes, start in zip(trees, starts, strict=True)]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return cls(int(fitted.n_features_in_), offset, starts, *columns)

    def first(self, count: int) -> "BoostedTrees":
        """Return the first trees only."""
        end = len(self.left) if count >= len(self.roots) else int(self.roots[count])
        return replace(
            self, roots=self.roots[:count], **{x: getattr(self, x)[:end] for x in NODE_FIELDS}
        )

    def predict(self, x: Floats) -> Floats:
        """Return f of each row, a block at a time."""
        found = np.empty(len(x))
        for start in range(0, len(x), BLOCK_ROWS):
            part = x[start : start + BLOCK_ROWS]
            found[start : start + BLOCK_ROWS] = self.offset + self._find_leaves(part).sum(axis=1)
        return found

    def _find_leaves(self, x: Floats) -> Floats:
        """Return the value of each row's leaf in each tree [N, T]."""
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        rows, trees = np.nonzero(self.left[at] != LEAF)
        while len(rows):
            here = at[rows, trees]
            low = x[rows, self.feature[here]] <= self.threshold[here]
            here = np.where(low, self.left[here], self.right[here])
            at[rows, trees] = here
            going = self.left[here] != LEAF
            rows, trees = rows[going], trees[going]
        return self.value[at]

    def is_valid(self, width: int | None) -> bool:
        """Tell whether what was read from a file are trees over this many features."""
        count, inner = len(self.left), self.left != LEAF
        whole = (self.roots, self.feature, self.left, self.right)
        parts = (self.threshold, self.value)
        sound = self.width == width and all(part.dtype == np.int64 for part in whole)
        sound = sound and all(part.ndim == 1 for part in whole)
        sound = sound and all(part.dtype == np.float64 and part.ndim == 1 for part in parts)
        sound = sound and {len(part) for part in (*whole[1:], *parts)} == {count}
        sound = (
            sound and _are_within(self.roots, 0, count) and _are_within(self.feature, 0, self.width)
        )
        if sound:  # nodes lead on to later ones, so that every walk ends
            after = np.flatnonzero(inner) + 1
            sound = _are_within(self.left[inner], after, count)
            sound = sound and _are_within(self.right[inner], after, count)
        return bool(sound and all(np.isfinite(part).all() for part in (*parts, self.offset)))


def _are_within(places: Places, low: Any, high: int) -> bool:
    return bool(((places >= low) & (places < high)).all())


def _flatten_nodes(nodes: Any, start: int) -> tuple[Any, ...]:
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (
        np.where(leaf, LEAF, nodes[side].astype(np.int64) + start) for side in ("left", "right")
    )
    feature = np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64)
    threshold = np.where(leaf, 0.0, nodes["num_threshold"])
    value = np.where(leaf, nodes["value"], 0.0)
    return feature, threshold, left, right, value
