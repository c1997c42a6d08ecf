"""The properties, their cases, and what is on file about every metric."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from property_cases import NAMES, naive_value

from ordinate.meta.properties import (
    PROPERTIES,
    CompositionIndex,
    list_compositions,
)
from ordinate.meta.properties_search import check_properties
from ordinate.meta.property_verdicts import collect_facts
from ordinate.metrics import find_metric, list_metrics
from ordinate.metrics.known_properties import (
    find_properties,
    find_verification,
)

CHECKABLE = [name for name in NAMES if not find_metric(name).required]


EXAMPLES = [
    (name, law, key)
    for name in CHECKABLE
    for law, cell in find_properties(find_metric(name)).items()
    for key in ("counterexample", "counterexample_with_empty_levels")
    if cell[key]
]


# --- the cases --------------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "total"), [(1, 3), (2, 0), (3, 4), (4, 3)])
def test_compositions_are_all_sums_in_order(parts, total):
    every = [row for row in itertools.product(range(total + 1), repeat=parts) if sum(row) == total]
    found = list_compositions(parts, total)
    assert found.tolist() == [list(row) for row in every]
    assert CompositionIndex(parts, total).of(found).tolist() == list(range(len(every)))


def _outputs(levels, items):
    """Every gold and every output of it, as items."""
    for gold in itertools.combinations_with_replacement(range(1, levels + 1), items):
        for output in itertools.product(range(1, levels + 1), repeat=items):
            yield gold, output


def _key(gold, output):
    return tuple(sorted(zip(gold, output, strict=True)))


def _found(law, levels, items):
    """The cases of a law, as pairs of multisets of items with their labels."""

    def listed(table):
        labels = [1 + int(at) for at in table.scale.at]
        cells = [
            (labels[g], labels[p])
            for g, p in np.argwhere(table.counts)
            for _ in range(int(table.counts[g, p]))
        ]
        return tuple(sorted(cells))

    pairs = Counter()
    for cases in PROPERTIES[law].cases(levels, items):
        for i, j in zip(cases.first, cases.second, strict=True):
            pairs[listed(cases.before[i]), listed(cases.after[j])] += 1
    return pairs


def test_monotonicity_tries_every_move_of_one_item_toward_gold():
    wanted = set()
    for gold, output in _outputs(3, 3):
        for place, new in itertools.product(range(3), range(1, 4)):
            old, truth = output[place], gold[place]
            if old > new >= truth or old < new <= truth:
                moved = (*output[:place], new, *output[place + 1 :])
                wanted.add((_key(gold, output), _key(gold, moved)))
    found = _found("monotonicity", 3, 3)
    assert set(found) == wanted
    assert set(found.values()) == {1}


def test_imbalance_tries_every_pair_of_single_errors_into_the_class_between():
    wanted = set()
    for gold in itertools.combinations_with_replacement(range(1, 5), 5):
        sizes = Counter(gold)
        for small, large in itertools.permutations(range(1, 5), 2):
            if abs(small - large) == 2 and 0 < sizes[small] < sizes[large]:
                middle = (small + large) // 2
                one, other = list(gold), list(gold)
                one[gold.index(small)] = other[gold.index(large)] = middle
                wanted.add((_key(gold, one), _key(gold, other)))
    assert set(_found("imbalance", 4, 5)) == wanted


def test_the_further_laws_try_every_table():
    tables = {_key(gold, output) for gold, output in _outputs(3, 2)}
    swapped = {(key, tuple(sorted((p, g) for g, p in key))) for key in tables}
    turned = {(key, tuple(sorted((4 - g, 4 - p) for g, p in key))) for key in tables}
    assert set(_found("symmetry", 3, 2)) == swapped
    assert set(_found("reversal", 3, 2)) == turned
    assert set(_found("replication", 3, 2)) == {(key, tuple(sorted(key * 2))) for key in tables}


def test_an_unused_level_is_put_at_every_place():
    tables = {_key(gold, output) for gold, output in _outputs(3, 2)}

    def shifted(key, place):
        return tuple((g + (g >= place), p + (p >= place)) for g, p in key)

    wanted = {(key, shifted(key, place)) for key in tables for place in range(1, 5)}
    assert set(_found("unused_level", 3, 2)) == wanted


def test_labels_are_stretched_by_any_gap_and_as_in_the_paper():
    found = {after for _, after in _found("invariance", 3, 1)}
    assert {label for key in found for pair in key for label in pair} == {1, 2, 4, 5, 11, 18, 37}


def test_outputs_without_regard_to_gold_have_independent_tables():
    for law in ("constant_outputs", "random_outputs"):
        for cases in PROPERTIES[law].cases(3, 6):
            for table in (cases.before[cases.first], cases.after[cases.second]):
                assert np.allclose(table.share, table.by_chance)
                constant = (table.predicted > 0).sum(axis=-1) == 1
                assert constant.all() if law == "constant_outputs" else not constant.any()
            assert (cases.before[cases.first].gold == cases.after[cases.second].gold).all()


# --- what is on file --------------------------------------------------------------------------


def test_the_file_covers_every_metric_and_every_property():
    for name in NAMES:
        found = find_verification(find_metric(name))
        assert list(found["properties"]) == list(PROPERTIES), name
        for cell in found["properties"].values():
            assert {"verdict", "verdict_with_empty_levels", "paper", "counterexample"} <= set(cell)
            if find_metric(name).required:
                assert cell["sizes"] == {}
                continue
            assert cell["max_levels"] >= 4
            assert cell["max_items"] == max(cell["sizes"].values()) >= 10
    assert all(find_verification(find_metric(name))["tables"] >= 1_000_000 for name in CHECKABLE)


def test_what_cannot_be_checked_says_why():
    for cell in find_properties(find_metric("expected_cost")).values():
        assert cell["verdict"] == cell["verdict_with_empty_levels"] == "undefined"
        assert "matrix" in cell["reason"]


def _is_move(e):
    changed = [t for t in zip(e["gold"], e["before"], e["after"], strict=True) if t[1] != t[2]]
    ((gold, old, new),) = changed
    return old > new >= gold or old < new <= gold


def _is_pair_of_errors(e):
    def error(output):
        ((gold, answer),) = [p for p in zip(e["gold"], output, strict=True) if p[0] != p[1]]
        return gold, answer

    (small, middle), (large, same) = error(e["before"]), error(e["after"])
    sizes = Counter(e["gold"])
    steps = {abs(small - middle), abs(large - middle), abs(small - large) / 2}
    return middle == same and steps == {1} and 0 < sizes[small] < sizes[large]


def _is_relabelled(e):
    new = dict(zip(e["scale"], e["scale_after"], strict=True))
    same = all(
        e[after] == [new[label] for label in e[before]]
        for before, after in (("gold", "gold_after"), ("before", "after"))
    )
    return same and e["scale_after"] == sorted(set(e["scale_after"]))


def _has_an_unused_level(e):
    levels = len(e["scale"])
    shifts = [
        ([x + (x >= place) for x in e["gold"]], [x + (x >= place) for x in e["before"]])
        for place in range(1, levels + 2)
    ]
    return e["scale_after"] == [*e["scale"], levels + 1] and (e["gold_after"], e["after"]) in shifts


def _pairs(e, side):
    gold = e["gold"] if side == "before" or e["gold_after"] is None else e["gold_after"]
    return sorted(zip(gold, e[side], strict=True))


def _is_swapped(e):
    return _pairs(e, "after") == sorted((p, g) for g, p in _pairs(e, "before"))


def _is_reversed(e):
    top = 1 + len(e["scale"])
    return _pairs(e, "after") == sorted((top - g, top - p) for g, p in _pairs(e, "before"))


def _is_doubled(e):
    return _pairs(e, "after") == sorted(2 * _pairs(e, "before"))


def _are_constant(e):
    return len(set(e["before"])) == len(set(e["after"])) == 1


def _are_independent(e):
    def independent(output):
        n, cells = len(output), Counter(zip(e["gold"], output, strict=True))
        gold, answers = Counter(e["gold"]), Counter(output)
        return all(cells[g, p] * n == gold[g] * answers[p] for g in gold for p in answers)

    return independent(e["before"]) and independent(e["after"])


IS_CASE = {
    "invariance": _is_relabelled,
    "unused_level": _has_an_unused_level,
    "monotonicity": _is_move,
    "imbalance": _is_pair_of_errors,
    "symmetry": _is_swapped,
    "reversal": _is_reversed,
    "replication": _is_doubled,
    "constant_outputs": _are_constant,
    "random_outputs": _are_independent,
}


@pytest.mark.parametrize(("name", "law", "key"), EXAMPLES)
def test_each_counterexample_holds_item_by_item(name, law, key):
    cell = find_properties(find_metric(name))[law]
    example = cell[key]
    assert IS_CASE[law](example)
    assert len(example["gold"]) <= cell["sizes"][str(len(example["scale"]))]
    if key == "counterexample":
        assert set(example["gold"]) == set(example["scale"])
        if law != "unused_level" and example["gold_after"]:
            assert set(example["gold_after"]) == set(example["scale_after"])
    scale, gold = (example[f"{x}_after"] or example[x] for x in ("scale", "gold"))
    before = naive_value(name, example["scale"], example["gold"], example["before"])
    after = naive_value(name, scale, gold, example["after"])
    assert (before, after) == pytest.approx(tuple(example["values"]), rel=1e-12, abs=1e-12)
    verdict = cell["verdict" if key == "counterexample" else "verdict_with_empty_levels"]
    better = find_metric(name).merit(after) - find_metric(name).merit(before)
    if PROPERTIES[law].relation == "equal":
        assert verdict == "violated"
        assert not math.isclose(before, after, abs_tol=1e-6)
    elif verdict == "tie_only":
        assert math.isclose(better, 0, abs_tol=1e-9)
    else:
        assert verdict == "violated"
        assert better < -1e-6


@pytest.mark.slow
def test_a_search_at_a_small_bound_finds_what_is_on_file():
    order = ["undefined", "not_violated", "tie_only", "violated"]
    small = 4
    for checked in check_properties(list_metrics(), most_items=small):
        again = json.loads(json.dumps(collect_facts(checked)))
        for law, cell in find_properties(checked.metric).items():
            name = f"{checked.metric.name} {law}"
            for key in ("verdict", "verdict_with_empty_levels"):
                assert order.index(again[law][key]) <= order.index(cell[key]), name
            example = cell["counterexample"]
            if example and len(example["gold"]) <= small:
                assert again[law]["verdict"] == cell["verdict"], name
                assert again[law]["counterexample"] == example, name


ENDS = {  # METRICS: what an unused level changes at an end
    "ordinal_distance_linear",
    "ordinal_distance_quadratic",
    "oci",
    "gwet_ac2",
    "brennan_prediger",
    "nmd",
    "rnod",
}


BETWEEN = {  # and between two levels
    *ENDS,
    *("accuracy_within", "mae", "mse", "rmse", "macro_mae", "macro_mse", "max_mae", "bias", "uoc"),
    *("linear_kappa", "quadratic_kappa", "weighted_kappa", "pearson", "ccc", "cosine"),
    *("rennie_srebro", "cem_int", "scott_pi"),
}


def test_unused_levels_change_the_metrics_that_are_known_to():
    def changed(kind):
        found = {
            name: find_properties(find_metric(name))["unused_level"]["kinds"] for name in CHECKABLE
        }
        return {name for name, kinds in found.items() if kinds[kind] == "violated"}

    assert changed("at the top") == ENDS
    assert changed("at the bottom") == {*ENDS, "cosine"}
    assert changed("between") == BETWEEN


def test_chance_corrected_metrics_are_0_for_outputs_that_ignore_gold():
    for name in ("cohen_kappa", "linear_kappa", "quadratic_kappa", "cem_ord_chance_corrected"):
        for law in ("constant_outputs", "random_outputs"):
            cell = find_properties(find_metric(name))[law]
            assert (cell["lowest"], cell["highest"]) == pytest.approx((0, 0), abs=1e-12), name
