"""Splits: every row once, the same for the same seed, whole groups, and regions held out."""

import numpy as np
import pytest

from ordinate.errors import BadInput, BadOption, NoItems
from ordinate.surrogate.data import make_table
from ordinate.surrogate.splits import Split, grouped, k_fold, random, shifted, usual


def table(n=100, groups=None, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.arange(n, dtype=float), rng.normal(size=n)])
    return make_table(x, np.arange(n) * 2.0, names=["a", "b"], target_name="y", groups=groups)


def uneven(n=100):
    return [f"g{k}" for k in np.random.default_rng(1).geometric(0.15, n)]


def complete(split, n):
    return sorted(np.concatenate(list(split.parts.values())).tolist()) == list(range(n))


# --- single rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 20, 99, 100, 5625])
def test_every_row_is_in_one_part(n):
    split = random(table(n), seed=3)
    assert complete(split, n)
    assert min(split.sizes.values()) >= 1
    assert abs(split.sizes["test"] - n / 10) <= 0.5


def test_the_same_seed_gives_the_same_split_and_another_one_another():
    one, same, other = (random(table(), seed) for seed in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(one.parts.values(), same.parts.values(), strict=True))
    assert set(one.test) != set(other.test)
    assert one.name == "random (seed 0)"


def test_rows_are_shuffled_for_files_are_often_sorted():
    split = random(table(1000), seed=0)
    assert abs(np.corrcoef(split.train, np.arange(len(split.train)))[0, 1]) < 0.1
    assert abs(split.test.mean() - 499.5) < 100


def test_other_shares_may_leave_out_the_test():
    split = random(table(), seed=0, shares=(3, 1, 0))
    assert split.sizes == {"training": 75, "validation": 25, "test": 0}
    assert len(split.known) == 100


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0, 0.5, 0.5), (1, -1, 1), (1, np.nan, 0)], ids=str)
def test_shares_that_make_no_sense_are_refused(shares):
    with pytest.raises(BadOption, match="Shares are three numbers"):
        random(table(), 0, shares)


def test_shares_that_leave_nothing_for_training_are_refused():
    with pytest.raises(NoItems, match="none is left for training"):
        random(table(10), 0, (0.01, 0.5, 0.5))


# --- groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_in_one_part_as_a_whole(seed):
    data = table(200, uneven(200))
    split = grouped(data, seed)
    assert complete(split, 200)
    members = [set(data.groups[rows]) for rows in split.parts.values()]
    assert all(members)
    assert sum(map(len, members)) == len(set(data.groups))
    assert split.sizes["training"] > 100


def test_which_groups_are_for_the_test_depends_on_the_seed_and_not_on_their_size():
    groups = [f"g{size}" for size in range(5, 25) for _ in range(size)]  # each of another size
    data = table(len(groups), groups)
    tests = {group for seed in range(10) for group in data.groups[grouped(data, seed).test]}
    assert len(tests) > 8
    assert tests & {"g22", "g23", "g24"}
    assert tests & {"g5", "g6", "g7"}


def test_groups_are_kept_together_where_there_are_any():
    data = table(60, [str(k // 3) for k in range(60)])
    assert usual(data, 0).name == "grouped (seed 0)"
    assert usual(table(60), 0).name == "random (seed 0)"
    assert "both sides" in random(data, 0).notes[0]


def test_unequal_groups_are_told():
    split = grouped(table(100, ["big"] * 80 + ["mid"] * 15 + ["small"] * 5), 0)
    assert min(split.sizes.values()) >= 5
    uneven_one = grouped(table(100, ["big"] * 50 + ["mid"] * 40 + ["small"] * 10), 0)
    assert "Groups are of unequal size" in uneven_one.notes[0]


def test_two_groups_are_too_few_for_three_parts():
    with pytest.raises(NoItems, match="There are 2 groups, and 3 parts"):
        grouped(table(20, ["a", "b"] * 10), 0)


def test_groups_that_the_table_does_not_have_are_refused():
    with pytest.raises(BadOption, match="has no groups"):
        grouped(table(), 0)


# --- folds ---------------------------------------------------------------------------------------


def test_each_row_is_once_for_validation():
    folds = k_fold(table(53), 5, seed=0)
    assert sorted(np.concatenate([fold.validation for fold in folds])) == list(range(53))
    assert {len(fold.validation) for fold in folds} == {10, 11}
    assert all(complete(fold, 53) for fold in folds)
    assert folds[1].name == "fold 2 of 5 (seed 0)"


def test_folds_of_a_split_leave_its_test_rows_alone():
    data = table(100)
    split = random(data, 0)
    folds = k_fold(data, 4, seed=0, of=split)
    for fold in folds:
        assert (fold.test == split.test).all()
        assert not set(fold.known) & set(split.test)
    assert set(np.concatenate([fold.validation for fold in folds])) == set(split.known)


def test_folds_keep_groups_whole():
    data = table(100, uneven())
    folds = k_fold(data, 4, seed=1)
    for fold in folds:
        assert not set(data.groups[fold.train]) & set(data.groups[fold.validation])
    assert max(len(fold.validation) for fold in folds) < 40


def test_folds_are_the_same_for_the_same_seed():
    one, same, other = (k_fold(table(), 3, seed=seed) for seed in (0, 0, 1))
    assert (one[2].validation == same[2].validation).all()
    assert set(one[2].validation) != set(other[2].validation)


@pytest.mark.parametrize("k", [0, 1, 21])
def test_a_number_of_folds_that_cannot_be_is_refused(k):
    with pytest.raises(BadOption, match=f"from 2 to 20, as many as there are rows: not {k}"):
        k_fold(table(20), k, seed=0)


# --- shifted -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "end"), [("a", "high"), ("y", "low"), ("b", "high")])
def test_the_extreme_region_of_a_column_is_the_test(by, end):
    data = table(100)
    split = shifted(data, by, end=end)
    inside, outside = data.column(by)[split.known], data.column(by)[split.test]
    assert len(outside) == 10
    assert inside.max() < outside.min() if end == "high" else outside.max() < inside.min()
    assert complete(split, 100)
    assert split.sizes["validation"] == 10


def test_a_shift_says_where_it_lies():
    assert shifted(table(), "a").name == "shifted (a ≥ 90, seed 0)"
    assert shifted(table(), "a", end="low", share=0.2).name == "shifted (a ≤ 19, seed 0)"


def test_equal_values_are_on_one_side_of_the_border():
    x = np.repeat(np.arange(10.0), 7)[:, None]
    data = make_table(x, np.arange(70.0), names=["a"])
    split = shifted(data, "a", share=0.15)
    assert len(split.test) == 14
    assert set(x[split.test, 0]) == {8.0, 9.0}


def test_a_column_with_one_extreme_value_in_most_rows_is_refused():
    x = np.array([0.0] * 10 + [1.0] * 50)[:, None]
    with pytest.raises(BadInput, match=r"83% of the rows have the same extreme value of 'a'"):
        shifted(make_table(x, np.arange(60.0), names=["a"]), "a")


def test_groups_on_both_sides_of_a_shift_are_told():
    data = table(100, [str(k % 10) for k in range(100)])
    split = shifted(data, "a")
    assert "10 groups stand on both sides of the shift." in split.notes
    assert not set(data.groups[split.train]) & set(data.groups[split.validation])


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"share": 0.0}, BadOption, "between 0 and 1"),
        ({"end": "left"}, BadOption, "'high' or the 'low' end"),
        ({"by": "c"}, BadInput, "no column 'c' among a, b, y"),
    ],
    ids=str,
)
def test_a_shift_that_cannot_be_is_refused(options, error, told):
    with pytest.raises(error, match=told):
        shifted(table(), **({"by": "a"} | options))


def test_a_split_names_its_parts():
    split = Split(np.arange(3), np.arange(3, 4), np.arange(4, 5), "by hand")
    assert list(split.parts) == ["training", "validation", "test"]
