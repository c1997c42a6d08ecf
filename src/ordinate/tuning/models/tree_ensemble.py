"""Ensembles of decision trees as plain arrays: one form for all libraries, walked by NumPy.

What LightGBM, XGBoost and scikit-learn have fitted becomes a `TreeEnsemble` at once. Predictions,
files and checks are then the same for all, and predictions equal those of the library.
"""

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Link = Literal["identity", "logistic", "softmax", "mean"]

BLOCK_CELLS = 1 << 16  # rows times trees that walk at once
BLOCK_FEATURES = 1 << 23  # features of sparse rows that are filled at once
LEAF = -1
PLAIN_FIELDS = ("width", "link", "absent")
MOST_LOGIT = 88.7  # beyond which exp overflows in single precision


class Nodes(NamedTuple):
    """The nodes of one tree, or of all; children come after their parents."""

    feature: Places  # [M]
    threshold: NDArray[Any]  # [M], in the precision in which features are compared
    left: Places  # [M], -1 for leaves
    right: Places  # [M], -1 for leaves
    missing_left: NDArray[np.bool_]  # [M], where a row goes that does not have the feature
    value: NDArray[Any]  # [M, V], in the precision in which leaves are summed


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """f(x) = link(offset + the sum of one leaf of each tree); the nodes of all trees in a row.

    A row goes to `left` where its `feature` is at most `threshold`, to `right` otherwise. Leaves
    have a value for each of the K outputs, or one value: then the trees take turns, one output
    after another. Nothing is built from arrays that are no trees: `BadStore` says so.
    """

    width: int  # features
    link: Link
    offset: Floats  # [K]
    roots: Places  # [T]
    nodes: Nodes
    absent: float = 0.0  # what a sparse row has where it stores nothing; nan: it is missing

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_trees(self)

    @property
    def outputs(self) -> int:
        """How many columns predictions have."""
        return 2 if self.link == "logistic" else len(self.offset)

    # --- predictions -------------------------------------------------------------------------

    def predict(self, matrix: Any, *, block_cells: int = BLOCK_CELLS) -> Floats:
        """Return predictions [N, outputs] for dense or sparse features [N, width]."""
        many = max(1, min(block_cells // len(self.roots), BLOCK_FEATURES // (len(self._used) + 1)))
        starts = range(0, max(1, matrix.shape[0]), many)
        sums = [self._sum_leaves(self._select(matrix[start : start + many])) for start in starts]
        return LINKS[self.link](np.concatenate(sums), len(self.roots))

    def _select(self, rows: Any) -> NDArray[Any]:
        """Return the features that a split looks at, in the precision of the thresholds."""
        found = rows[:, self._used]
        if not isinstance(found, np.ndarray):
            found = found.toarray()
            found = np.where(found == 0.0, self.absent, found)
        return np.ascontiguousarray(found, self.nodes.threshold.dtype)

    def _sum_leaves(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of leaves [N, K], one tree after another: rounding depends on it."""
        values = self.nodes.value[self._find_leaves(x)]  # [T, N, V]
        outputs = len(self.offset)
        if values.shape[2] != outputs:  # the trees take turns
            values = values.reshape(len(values) // outputs, outputs, len(x)).swapaxes(1, 2)
        start = np.broadcast_to(self.offset.astype(values.dtype), (1, len(x), outputs))
        return np.cumsum(np.concatenate([start, values]), axis=0)[-1]

    def _find_leaves(self, x: NDArray[Any]) -> Places:
        """Return the leaf of each row in each tree [T, N]."""
        cells, begins, missing = x.ravel(), np.arange(len(x)) * x.shape[1], bool(np.isnan(x).any())
        at = np.repeat(self.roots[:, None], len(x), axis=1)
        while len(self._used):
            values = cells.take(self._columns.take(at) + begins)
            right = values > self.nodes.threshold.take(at)
            if missing:
                right = np.where(np.isnan(values), ~self.nodes.missing_left.take(at), right)
            before, at = at, self._children.take(at + right * len(self._columns))
            if np.array_equal(at, before):
                break
        return at

    @cached_property
    def _used(self) -> Places:
        """The features that some split looks at."""
        return np.unique(self.nodes.feature[self.nodes.left != LEAF])

    @cached_property
    def _columns(self) -> Places:
        """The place of each node's feature among those used; 0 for leaves."""
        places = np.searchsorted(self._used, self.nodes.feature)
        return np.where(self.nodes.left == LEAF, 0, places)

    @cached_property
    def _children(self) -> Places:
        """All left children, then all right ones; a leaf leads to itself."""
        here = np.arange(len(self.nodes.left))
        sides = (self.nodes.left, self.nodes.right)
        return np.concatenate([np.where(side == LEAF, here, side) for side in sides])

    # --- files -------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the arrays as an npz file, in which nothing is pickled."""
        names = [each.name for each in fields(self) if each.name != "nodes"]
        arrays = {name: np.asarray(getattr(self, name)) for name in names} | self.nodes._asdict()
        written = io.BytesIO()
        np.savez(written, allow_pickle=False, **arrays)
        return written.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the ensemble of a file; what is no ensemble is refused."""
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise BadStore("it is compressed, and could unfold to any size")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        nodes = Nodes._make(arrays.pop(name) for name in Nodes._fields)
        plain = {name: arrays.pop(name).item() for name in PLAIN_FIELDS}
        return cls(nodes=nodes, **plain, **arrays)

    # --- what libraries have fitted ----------------------------------------------------------

    @classmethod
    def from_lightgbm(cls, booster: Any) -> Self:
        """Return the trees of a `lightgbm.Booster` for one target, two classes or more."""
        model = booster.dump_model()
        links: dict[str, Link] = {"binary": "logistic", "multiclass": "softmax"}
        roots, nodes = _join_trees(map(_read_lightgbm_tree, model["tree_info"]))
        return cls(
            width=model["max_feature_idx"] + 1,
            link=links.get(model["objective"].split()[0], "identity"),
            offset=np.zeros(model["num_tree_per_iteration"]),
            roots=roots,
            nodes=nodes,
        )

    @classmethod
    def from_xgboost(cls, booster: Any) -> Self:
        """Return the trees of a `xgboost.Booster` for two classes or more."""
        learner = json.loads(bytes(booster.save_raw(raw_format="json")))["learner"]
        facts = learner["learner_model_param"]
        count = int(facts["num_class"])
        start = np.float32(json.loads(f"[{facts['base_score'].strip('[]')}]"))
        if not count:  # of two classes, it is a probability
            start = -np.log(np.float64(1 / start - 1)).astype(np.float32)
        trees = learner["gradient_booster"]["model"]["trees"]
        roots, nodes = _join_trees(map(_read_xgboost_tree, trees))
        return cls(
            width=int(facts["num_feature"]),
            link="softmax" if count else "logistic",
            offset=np.broadcast_to(start, max(1, count)).astype(np.float64),
            roots=roots,
            nodes=nodes,
            absent=math.nan,
        )

    @classmethod
    def from_forest(cls, forest: Any) -> Self:
        """Return the trees of scikit-learn's random forest for classes."""
        roots, nodes = _join_trees(_read_forest_tree(each.tree_) for each in forest.estimators_)
        offset = np.zeros(len(forest.classes_))
        return cls(int(forest.n_features_in_), "mean", offset, roots, nodes)

    @classmethod
    def from_histogram_boosting(cls, fitted: Any, rounds: int | None = None) -> Self:
        """Return the first trees of scikit-learn's histogram gradient boosting for one target."""
        trees = [stage[0].nodes for stage in fitted._predictors[:rounds]]  # noqa: SLF001 - no public way
        offset = np.ravel(fitted._baseline_prediction).astype(float)  # noqa: SLF001 - the same
        roots, nodes = _join_trees(map(_read_histogram_tree, trees))
        return cls(int(fitted.n_features_in_), "identity", offset, roots, nodes)


# --- links ---------------------------------------------------------------------------------------


def _exp(x: NDArray[Any]) -> NDArray[Any]:
    """Return exp by the C library, as the libraries have it; np.exp may differ in the last digit.

    NumPy has vectorised code of its own for real numbers, and calls the C library for complex ones.
    """
    return np.exp(x.astype(np.result_type(x, np.complex64))).real


def _apply_logistic(sums: NDArray[Any], _trees: int) -> Floats:
    """Return the probabilities of two classes."""
    odds = 1 + _exp(np.minimum(-sums[:, 0], MOST_LOGIT))
    high = (1 / odds).astype(np.float64)
    return np.column_stack([1.0 - high, high])


def _apply_softmax(sums: NDArray[Any], _trees: int) -> Floats:
    """Return the probabilities of several classes."""
    odds = _exp(sums - sums.max(axis=1, keepdims=True))
    total = np.cumsum(odds, axis=1, dtype=np.float64)[:, -1:]  # in this order, unlike sum
    return (odds / total.astype(sums.dtype)).astype(np.float64)


LINKS: dict[Link, Callable[[NDArray[Any], int], Floats]] = {
    "identity": lambda sums, _trees: sums,
    "logistic": _apply_logistic,
    "softmax": _apply_softmax,
    "mean": lambda sums, trees: sums / trees,
}


# --- checks --------------------------------------------------------------------------------------


def _check_shapes(trees: TreeEnsemble) -> None:
    """Refuse arrays of other types and shapes, more outputs than trees serve, and no numbers."""
    nodes, outputs = trees.nodes, len(trees.offset)
    count = len(nodes.left)
    places = (trees.roots, nodes.feature, nodes.left, nodes.right)
    sound = all(each.dtype == np.int64 for each in places) and nodes.missing_left.dtype == bool
    sound = sound and {nodes.threshold.dtype.name, nodes.value.dtype.name} <= {"float32", "float64"}
    sound = sound and [each.shape for each in nodes[:5]] == [(count,)] * 5
    sound = sound and trees.roots.ndim == trees.offset.ndim == 1 and trees.offset.dtype == float
    plain = [type(getattr(trees, name)) for name in PLAIN_FIELDS]
    if not sound or plain != [int, str, float] or trees.link not in LINKS:
        raise BadStore("its arrays are not those of trees")
    in_turn = nodes.value.shape == (count, 1) and outputs and len(trees.roots) % outputs == 0
    if not in_turn and nodes.value.shape != (count, outputs):
        raise BadStore(f"its leaves are not those of {outputs} outputs")
    if (trees.link == "logistic" and outputs != 1) or (trees.link == "softmax" and outputs < 2):
        raise BadStore(f"its link {trees.link!r} does not fit {outputs} outputs")
    numbers = (trees.offset, nodes.threshold, nodes.value)
    if not all(np.isfinite(each).all() for each in numbers):
        raise BadStore("it has numbers that are not finite")


def _check_trees(trees: TreeEnsemble) -> None:
    """Refuse nodes that do not make trees: every walk ends, inside the tree that it began in."""
    roots, nodes = trees.roots, trees.nodes
    here = np.arange(len(nodes.left))
    inner = here[nodes.left != LEAF]
    children = np.concatenate([nodes.left[inner], nodes.right[inner]])
    begins = len(roots) > 0 and roots[0] == 0 and bool((np.diff(roots) > 0).all())
    if not begins or roots[-1] >= len(here):
        raise BadStore("its trees do not begin where its nodes do")
    if not np.array_equal(np.sort(children), np.setdiff1d(here, roots, assume_unique=True)):
        raise BadStore("its nodes do not make trees: each but the roots has one parent")
    if ((nodes.right == LEAF) != (nodes.left == LEAF)).any():
        raise BadStore("its nodes do not make trees: each has two children or none")
    tree, parents = np.searchsorted(roots, here, side="right"), np.tile(inner, 2)
    if (children <= parents).any() or (tree[children] != tree[parents]).any():
        raise BadStore("its nodes do not make trees: they lead back, or into other trees")
    if ((nodes.feature[inner] < 0) | (nodes.feature[inner] >= trees.width)).any():
        raise BadStore(f"its nodes ask for features beyond the {trees.width:,} that it has")


# --- single trees --------------------------------------------------------------------------------


def _join_trees(trees: Iterable[Nodes]) -> tuple[Places, Nodes]:
    """Return the roots and the nodes of all trees in a row."""
    each = list(trees)
    roots = np.cumsum([0, *(len(tree.left) for tree in each)], dtype=np.int64)[:-1]
    moved = [_move_tree(tree, int(root)) for tree, root in zip(each, roots, strict=True)]
    return roots, Nodes._make(map(np.concatenate, zip(*moved, strict=True)))


def _move_tree(tree: Nodes, by: int) -> Nodes:
    """Return a tree whose first node is another one; leaves look at no feature."""
    leaf = tree.left == LEAF
    left, right = (np.where(leaf, LEAF, side.astype(np.int64) + by) for side in tree[2:4])
    return Nodes(
        np.where(leaf, 0, tree.feature).astype(np.int64),
        np.where(leaf, 0, tree.threshold).astype(tree.threshold.dtype),
        left,
        right,
        tree.missing_left.astype(bool) & ~leaf,
        np.where(leaf[:, None], tree.value, 0).astype(tree.value.dtype),
    )


def _read_lightgbm_tree(tree: dict[str, Any]) -> Nodes:
    queue, rows = [tree["tree_structure"]], []
    for node in queue:  # which grows on the way
        if "left_child" not in node:
            rows.append((0, 0.0, LEAF, LEAF, False, [node["leaf_value"]]))
            continue
        # where training had nothing missing, it stands for 0
        zero = node["missing_type"] == "None"
        missing_left = node["threshold"] >= 0.0 if zero else node["default_left"]
        children = len(queue), len(queue) + 1
        rows.append((node["split_feature"], node["threshold"], *children, missing_left, [0.0]))
        queue += [node["left_child"], node["right_child"]]
    return Nodes._make(map(np.array, zip(*rows, strict=True)))


def _read_xgboost_tree(tree: dict[str, Any]) -> Nodes:
    left, right, feature = (
        np.array(tree[name]) for name in ("left_children", "right_children", "split_indices")
    )
    numbers = np.array(tree["split_conditions"], np.float32)  # the values of leaves, too
    below = np.nextafter(numbers, np.float32(-np.inf))  # it asks for less than, not for at most
    return Nodes(feature, below, left, right, np.array(tree["default_left"]), numbers[:, None])


def _read_forest_tree(tree: Any) -> Nodes:
    # features are of single precision, thresholds are not: the next one below means the same
    near = tree.threshold.astype(np.float32)
    below = np.where(near > tree.threshold, np.nextafter(near, np.float32(-np.inf)), near)
    left, right = tree.children_left, tree.children_right
    return Nodes(tree.feature, below, left, right, tree.missing_go_to_left, tree.value[:, 0])


def _read_histogram_tree(nodes: Any) -> Nodes:
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, LEAF, nodes[side].astype(np.int64)) for side in ("left", "right"))
    feature, threshold = nodes["feature_idx"], nodes["num_threshold"]
    return Nodes(
        feature, threshold, left, right, nodes["missing_go_to_left"], nodes["value"][:, None]
    )
