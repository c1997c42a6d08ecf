"""Trees in model files: looked through before they are walked, for libraries do not check them.

A damaged or forged tree whose nodes point outside it, or back to a node before, makes the library
that walks it read foreign memory or never return.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ordinate.errors import BadStore

END = "end of trees"


def check_lightgbm(text: str) -> None:
    """Refuse the text of a LightGBM model that is not whole, or whose trees are none."""
    header, found, rest = text.partition("\n\n")
    if not header.startswith("tree\n") or not found:
        raise BadStore("it does not begin as a LightGBM model")
    facts = dict(line.split("=", 1) for line in header.split("\n") if "=" in line)
    sizes = [int(size) for size in facts["tree_sizes"].split()]
    rest = rest.lstrip("\n")
    for number, size in enumerate(sizes):
        block, rest = rest[:size], rest[size:]
        if len(block) < size or not block.startswith(f"Tree={number}\n"):
            raise BadStore(f"its tree {number} of {len(sizes)} is cut off or moved")
        _check_block(block, width=int(facts["max_feature_idx"]) + 1, number=number)
    if not rest.startswith(END) or "\nend of parameters" not in rest:
        raise BadStore("its end is cut off")
    _check_outputs(facts, len(sizes))


def _check_outputs(facts: dict[str, str], trees: int) -> None:
    """Refuse an objective that would write more probabilities than there is room for."""
    count, step = int(facts["num_class"]), int(facts["num_tree_per_iteration"])
    single = ("binary sigmoid:1", "regression")
    known = (f"multiclass num_class:{count}",) if count > 1 else single
    if facts["objective"] not in known or step != count or trees % step:
        raise BadStore(f"its objective {facts['objective']!r} does not fit {count} classes")


def _check_block(block: str, *, width: int, number: int) -> None:
    facts = dict(line.split("=", 1) for line in block.split("\n") if "=" in line)
    inner = int(facts["num_leaves"]) - 1
    if inner < 0 or facts["num_cat"] != "0" or facts["is_linear"] != "0":
        raise BadStore(f"its tree {number} is of a form that Ordinate does not make")
    if not inner:
        return
    splits, left, right = (
        np.array(facts[name].split(), np.int64)
        for name in ("split_feature", "left_child", "right_child")
    )
    children = np.concatenate([left, right])
    children = np.where(children < 0, inner + ~children, children)  # leaves have negative numbers
    _check_tree(children, splits, inner=inner, count=2 * inner + 1, width=width, number=number)


def check_boosted(model: Any) -> None:
    """Refuse the JSON of an XGBoost model whose trees are none."""
    learner = model["learner"]
    facts, forest = learner["learner_model_param"], learner["gradient_booster"]["model"]
    width, trees = int(facts["num_feature"]), forest["trees"]
    groups, classes = forest["tree_info"], max(1, int(facts["num_class"]))
    if len(groups) != len(trees) or not all(0 <= group < classes for group in groups):
        raise BadStore("its trees are of classes that it does not have")
    for number, tree in enumerate(trees):
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        splits, inner = np.array(tree["split_indices"]), left != -1
        count = int(tree["tree_param"]["num_nodes"])
        if not len(left) == len(right) == len(splits) == count or any(tree["split_type"]):
            raise BadStore(f"its tree {number} is of a form that Ordinate does not make")
        children = np.concatenate([left[inner], right[inner]])
        _check_tree(
            children, splits[inner], inner=inner.sum(), count=count, width=width, number=number
        )


def check_forest(fitted: Any) -> None:
    """Refuse a pipeline of scikit-learn whose forest has trees that are none."""
    model = getattr(fitted, "steps", [(None, fitted)])[-1][1]
    for number, member in enumerate(_trees(model)):
        tree = member.tree_
        left, right, splits = tree.children_left, tree.children_right, tree.feature
        inner = left != -1
        _check_tree(
            np.concatenate([left[inner], right[inner]]),
            splits[inner],
            inner=inner.sum(),
            count=tree.node_count,
            width=model.n_features_in_,
            number=number,
        )


def _trees(model: Any) -> Iterable[Any]:
    return getattr(model, "estimators_", [])


def _check_tree(
    children: ArrayLike, splits: ArrayLike, *, inner: int, count: int, width: int, number: int
) -> None:
    """Refuse nodes that point outside the tree, or two to one node, or to features not there."""
    below, asked = np.asarray(children), np.asarray(splits)
    whole = len(below) == 2 * inner and len(asked) == inner
    if inner and whole:
        whole = below.min() > 0 and below.max() < count and len(np.unique(below)) == len(below)
        whole = bool(whole and asked.min() >= 0 and asked.max() < width)
    if not whole:
        raise BadStore(f"the nodes of its tree {number} do not make a tree")
