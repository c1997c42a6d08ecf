"""Trees in model files: looked through before they are walked, for libraries do not check them.

A damaged or forged tree whose nodes point outside it, or back to a node before, makes the library
that walks it read foreign memory or never return. A text that two readers may read in two ways is
refused, too: what was looked at would not be what is walked.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.errors import BadStore

UNKNOWN_FORM = "its tree {number} is of a form that Ordinate does not make"

# --- LightGBM ------------------------------------------------------------------------------------

LIGHTGBM_HEADER = (
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"),
    *("objective", "feature_names", "feature_infos", "tree_sizes"),
)
INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
DECIMAL = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d{1,3})?", re.ASCII)
OF_SPLITS = {"split_feature": INTEGER, "split_gain": DECIMAL, "threshold": DECIMAL}
OF_SPLITS |= {"decision_type": INTEGER, "left_child": INTEGER, "right_child": INTEGER}
OF_LEAVES = {"leaf_value": DECIMAL, "leaf_weight": DECIMAL, "leaf_count": INTEGER}
OF_INNER = {"internal_value": DECIMAL, "internal_weight": DECIMAL, "internal_count": INTEGER}
ARRAYS = OF_SPLITS | OF_LEAVES | OF_INNER
TREE_KEYS = ("Tree", "num_leaves", "num_cat", *ARRAYS, "is_linear", "shrinkage")
NUMERIC_DECISIONS = (
    0,
    2,
    4,
    6,
    8,
    10,
)  # decision types of numbers: where missing ones go; odd: categories
LIGHTGBM_END = re.compile(
    r"end of trees\n\nfeature_importances:\n(Column_\d+=\d+\n)*"
    r"\nparameters:\n(\[[a-z0-9_]+: [^\]\n]*\]\n)*"
    r"\nend of parameters\n\npandas_categorical:(null|\[\])\n",
    re.ASCII,
)


def check_lightgbm(text: str) -> None:
    """Refuse the text of a LightGBM model that is not whole, or whose trees are none.

    Only what LightGBM itself writes passes, line by line: of a key that stands there twice it may
    take another one than was looked at.
    """
    if not text.isascii() or "\r" in text:
        raise BadStore("it has signs that LightGBM does not write")
    header, found, rest = text.partition("\n\n")
    if not header.startswith("tree\n") or not found:
        raise BadStore("it does not begin as a LightGBM model")
    facts = _parse_facts(header.split("\n")[1:], LIGHTGBM_HEADER, "its header")
    sizes = _parse_numbers(facts["tree_sizes"], INTEGER).tolist()
    width = int(_parse_numbers(facts["max_feature_idx"], INTEGER, 1)[0]) + 1
    for number, size in enumerate(sizes):
        block, rest = rest[:size], rest[size:]
        if len(block) != size or not block.startswith(f"Tree={number}\n"):
            raise BadStore(f"its tree {number} of {len(sizes)} is cut off or moved")
        _check_block(block, width=width, number=number)
    settings = re.findall(r"^\[(\w+): ", rest, re.MULTILINE)
    if not LIGHTGBM_END.fullmatch(rest) or len(set(settings)) < len(settings):
        raise BadStore("its end is cut off, or something stands there that does not belong to it")
    _check_outputs(facts, len(sizes), width)


def _parse_facts(lines: Sequence[str], keys: Sequence[str], what: str) -> dict[str, str]:
    """Return the values of lines key=value: exactly these keys, in this order."""
    pairs = [line.partition("=") for line in lines]
    if [key + sign for key, sign, _ in pairs] != [f"{key}=" for key in keys]:
        raise BadStore(f"{what} has other lines than LightGBM writes")
    return {key: value for key, _, value in pairs}


def _parse_numbers(text: str, form: re.Pattern[str], count: int | None = None) -> NDArray[Any]:
    """Return the numbers of a value: so many, in the form in which they are written."""
    cells = text.split(" ") if text else []
    if not all(map(form.fullmatch, cells)) or (count is not None and len(cells) != count):
        raise BadStore("it has no numbers, or too few or too many, where LightGBM writes numbers")
    return np.array(cells, np.int64 if form is INTEGER else np.float64)


def _check_outputs(facts: dict[str, str], trees: int, width: int) -> None:
    """Refuse an objective that would write more probabilities than there is room for."""
    count, step = (int(_parse_numbers(facts[key], INTEGER, 1)[0]) for key in LIGHTGBM_HEADER[1:3])
    single = ("binary sigmoid:1", "regression")
    known = (f"multiclass num_class:{count}",) if count > 1 else single
    if facts["objective"] not in known or step != count or count < 1 or trees % step:
        raise BadStore(f"its objective {facts['objective']!r} does not fit {count} classes")
    names, infos = facts["feature_names"].split(" "), facts["feature_infos"].split(" ")
    if names != [f"Column_{k}" for k in range(width)] or len(infos) != width:
        raise BadStore(f"its columns are not the {width} that it says it has")
    if (facts["version"], facts["label_index"]) != ("v4", "0"):
        raise BadStore(f"its version {facts['version']!r} is not one that Ordinate makes")


def _check_block(block: str, *, width: int, number: int) -> None:
    *lines, a, b, c = block.split("\n")
    facts = _parse_facts(lines, TREE_KEYS, f"its tree {number}")
    leaves = int(_parse_numbers(facts["num_leaves"], INTEGER, 1)[0])
    inner, alone = leaves - 1, leaves == 1
    if a or b or c or leaves < 1 or (facts["num_cat"], facts["is_linear"]) != ("0", "0"):
        raise BadStore(UNKNOWN_FORM.format(number=number))
    _parse_numbers(facts["shrinkage"], DECIMAL, 1)
    found: dict[str, NDArray[Any]] = {}
    for name, form in ARRAYS.items():
        count = leaves if name in OF_LEAVES else inner
        empty = alone and name != "leaf_value" and not facts[name]  # a leaf alone needs its value
        found[name] = _parse_numbers(facts[name], form, 0 if empty else count)
        if not np.isfinite(found[name]).all():
            raise BadStore(f"its tree {number} has numbers that are not finite")
    if not np.isin(found["decision_type"], NUMERIC_DECISIONS).all():
        raise BadStore(UNKNOWN_FORM.format(number=number))
    children = np.concatenate([found["left_child"], found["right_child"]])
    children = np.where(children < 0, inner + ~children, children)  # leaves have negative numbers
    _check_tree(
        children,
        found["split_feature"],
        inner=inner,
        count=2 * inner + 1,
        width=width,
        number=number,
    )


# --- XGBoost -------------------------------------------------------------------------------------

OF_NODES = (
    *("base_weights", "default_left", "left_children", "loss_changes", "parents"),
    *("right_children", "split_conditions", "split_indices", "split_type", "sum_hessian"),
)
NO_PARENT = 2**31 - 1


def check_xgboost(model: Any) -> None:
    """Refuse the JSON of an XGBoost model whose trees are none."""
    learner = model["learner"]
    facts, booster = learner["learner_model_param"], learner["gradient_booster"]
    if booster["name"] != "gbtree" or learner["feature_names"] or learner["feature_types"]:
        raise BadStore("it is of a form that Ordinate does not make")
    forest = booster["model"]
    width, trees = int(facts["num_feature"]), forest["trees"]
    groups, classes = forest["tree_info"], max(1, int(facts["num_class"]))
    if len(groups) != len(trees) or not all(0 <= group < classes for group in groups):
        raise BadStore("its trees are of classes that it does not have")
    _check_rounds(forest, len(trees))
    _check_objective(learner["objective"], facts, classes)
    for number, tree in enumerate(trees):
        _check_nodes(tree, width=width, number=number)


def _check_rounds(forest: Any, trees: int) -> None:
    """Refuse rounds of trees that are not there."""
    ends = forest.get("iteration_indptr", [0, trees])  # older versions count the rounds themselves
    rising = all(first <= second for first, second in pairwise(ends))
    said = forest["gbtree_model_param"]
    if not (rising and ends[:1] == [0] and ends[-1:] == [trees] and set(map(type, ends)) == {int}):
        raise BadStore("its rounds are of trees that it does not have")
    if int(said["num_trees"]) != trees or int(said["num_parallel_tree"]) != 1:
        raise BadStore(f"it says that it has other trees than the {trees} in it")


def _check_objective(objective: Any, facts: Any, classes: int) -> None:
    """Refuse an objective that would write more probabilities than there is room for."""
    name = objective["name"]
    fits = name == "binary:logistic" and classes == 1
    if name == "multi:softprob":
        fits = int(objective["softmax_multiclass_param"]["num_class"]) == classes > 1
    starts = [float(start) for start in str(facts["base_score"]).strip("[]").split(",")]
    fits = fits and len(starts) in {1, classes} and bool(np.isfinite(starts).all())
    if not fits or int(facts.get("num_target", 1)) != 1:
        raise BadStore(f"its objective {name!r} does not fit {classes} classes")


def _check_nodes(tree: Any, *, width: int, number: int) -> None:
    said, found = tree["tree_param"], {name: np.array(tree[name]) for name in OF_NODES}
    count = int(said["num_nodes"])
    left, right, splits = (
        found[name] for name in ("left_children", "right_children", "split_indices")
    )
    plain = count > 0 and all(values.shape == (count,) for values in found.values())
    plain = plain and all(values.dtype.kind == "i" for values in (left, right, splits))
    if not plain or tree["categories"] or found["split_type"].any():
        raise BadStore(UNKNOWN_FORM.format(number=number))
    if int(said["num_feature"]) != width or int(said["size_leaf_vector"]) > 1:
        raise BadStore(UNKNOWN_FORM.format(number=number))
    inner = left != -1
    children = np.concatenate([left[inner], right[inner]])
    _check_tree(
        children, splits[inner], inner=int(inner.sum()), count=count, width=width, number=number
    )
    above, known = found["parents"], np.tile(np.flatnonzero(inner), 2)
    if above[0] != NO_PARENT or not np.array_equal(above[children], known):
        raise BadStore(f"the nodes of its tree {number} do not make a tree")


# --- scikit-learn --------------------------------------------------------------------------------


def check_forest(fitted: Any) -> None:
    """Refuse what skops has built if any tree in it, however deep it lies, is none."""
    from sklearn.tree._tree import Tree  # noqa: PLC0415 - heavy, and optional

    number = 0
    for part in _walk_parts(fitted):
        if isinstance(part, Tree):
            _check_sklearn_tree(part, number)
            number += 1
        elif hasattr(part, "__dict__"):
            _check_estimator(vars(part), Tree)


def _check_sklearn_tree(tree: Any, number: int) -> None:
    if tree.node_count != tree.capacity or tree.node_count < 1:  # first: else all else reads beyond
        raise BadStore(f"its tree {number} has other nodes than it says")
    left, right, splits = tree.children_left, tree.children_right, tree.feature
    inner = left != -1
    _check_tree(
        np.concatenate([left[inner], right[inner]]),
        splits[inner],
        inner=int(inner.sum()),
        count=tree.node_count,
        width=tree.n_features,
        number=number,
    )


def _check_estimator(state: Mapping[str, Any], tree: type[Any]) -> None:
    """Refuse an estimator that would let through rows of other features than its trees ask for."""
    width, grown = state.get("n_features_in_"), state.get("tree_")
    if grown is not None and not (isinstance(grown, tree) and _is_width(width, grown.n_features)):
        raise BadStore("it has a tree of other features than it says")
    members = state.get("estimators_")
    if members is None:
        return
    for member in members:
        if not _is_width(getattr(member, "n_features_in_", None), width) or width is None:
            raise BadStore("it has trees of other features than it says")


def _is_width(given: Any, wanted: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given == wanted


def _walk_parts(whole: Any) -> Iterator[Any]:
    """Yield an object and all that it is made of, each once."""
    left, seen = [whole], set[int]()
    while left:
        part = left.pop()
        if id(part) in seen or isinstance(part, str | int | float | bool | None):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            left.extend((*part.keys(), *part.values()))
        elif isinstance(part, list | tuple):
            left.extend(part)
        elif isinstance(part, np.ndarray):
            left.extend(part.ravel().tolist() if part.dtype.hasobject else ())
        elif hasattr(part, "__dict__"):
            left.append(vars(part))


# --- all -----------------------------------------------------------------------------------------


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
