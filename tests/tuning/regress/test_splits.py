"""Splits: every row once, the same for the same seed, whole groups, and regions held out."""

import numpy as np
import pytest

from ordinate.errors import BadInput, BadOption, NoItems
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import (
    Split,
    assign_unit_ids,
    split_by_group,
    split_by_shift,
    split_k_fold,
    split_randomly,
    split_table,
)
from ordinate.tuning.regress.table import make_table


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
    split = split_randomly(table(n), seed=3)
    assert complete(split, n)
    assert min(split.sizes.values()) >= 1
    assert abs(split.sizes["test"] - n / 10) <= 0.5


def test_the_same_seed_gives_the_same_split_and_another_one_another():
    one, same, other = (split_randomly(table(), seed) for seed in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(one.parts.values(), same.parts.values(), strict=True))
    assert set(one.test) != set(other.test)
    assert one.name == "random (seed 0)"


def test_rows_are_shuffled_for_files_are_often_sorted():
    split = split_randomly(table(1000), seed=0)
    assert abs(np.corrcoef(split.train, np.arange(len(split.train)))[0, 1]) < 0.1
    assert abs(split.test.mean() - 499.5) < 100


def test_other_shares_may_leave_out_the_test():
    split = split_randomly(table(), seed=0, shares=(3, 1, 0))
    assert split.sizes == {"training": 75, "validation": 25, "test": 0}
    assert len(split.known) == 100


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0, 0.5, 0.5), (1, -1, 1), (1, np.nan, 0)], ids=str)
def test_shares_that_make_no_sense_are_refused(shares):
    with pytest.raises(BadOption, match="Shares are three numbers"):
        split_randomly(table(), 0, shares)


def test_shares_that_leave_nothing_for_training_are_refused():
    with pytest.raises(NoItems, match="none is left for training"):
        split_randomly(table(10), 0, (0.01, 0.5, 0.5))


# --- groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_in_one_part_as_a_whole(seed):
    data = table(200, uneven(200))
    split = split_by_group(data, seed)
    assert complete(split, 200)
    members = [set(data.groups[rows]) for rows in split.parts.values()]
    assert all(members)
    assert sum(map(len, members)) == len(set(data.groups))
    assert split.sizes["training"] > 100


def test_which_groups_are_for_the_test_depends_on_the_seed_and_not_on_their_size():
    groups = [f"g{size}" for size in range(5, 25) for _ in range(size)]  # each of another size
    data = table(len(groups), groups)
    tests = {group for seed in range(10) for group in data.groups[split_by_group(data, seed).test]}
    assert len(tests) > 8
    assert tests & {"g22", "g23", "g24"}
    assert tests & {"g5", "g6", "g7"}


def test_groups_are_kept_together_where_there_are_any():
    data = table(60, [str(k // 3) for k in range(60)])
    assert split_table(data, 0).name == "grouped (seed 0)"
    assert split_table(table(60), 0).name == "random (seed 0)"
    assert "both sides" in split_randomly(data, 0).notes[0]


@pytest.mark.parametrize("sizes", [[420, *[22] * 8], [300, *[60] * 5], [30, 30, 30, 10]], ids=str)
def test_a_group_that_is_most_of_the_rows_is_trained_on(sizes):
    data = table(sum(sizes), [str(k) for k, size in enumerate(sizes) for _ in range(size)])
    for seed in range(30):
        found = split_by_group(data, seed).sizes
        assert min(found.values()) > 0
        assert found["training"] >= 0.6 * len(data)


def test_which_of_few_large_groups_is_trained_on_depends_on_the_seed():
    data = table(100, [str(k) for k, size in enumerate((24, 25, 25, 26)) for _ in range(size)])
    assert (
        len({group for seed in range(20) for group in data.groups[split_by_group(data, seed).test]})
        > 2
    )


def test_unequal_groups_are_told():
    split = split_by_group(table(100, ["big"] * 80 + ["mid"] * 15 + ["small"] * 5), 0)
    assert min(split.sizes.values()) >= 5
    uneven_one = split_by_group(table(100, ["big"] * 50 + ["mid"] * 40 + ["small"] * 10), 0)
    assert "Groups are of unequal size" in uneven_one.notes[0]


def test_two_groups_are_too_few_for_three_parts():
    with pytest.raises(NoItems, match="There are 2 groups, and 3 parts"):
        split_by_group(table(20, ["a", "b"] * 10), 0)


def test_groups_that_the_table_does_not_have_are_refused():
    with pytest.raises(BadOption, match="has no groups"):
        split_by_group(table(), 0)


# --- folds ---------------------------------------------------------------------------------------


def test_each_row_is_once_for_validation():
    folds = split_k_fold(table(53), 5, seed=0)
    assert sorted(np.concatenate([fold.validation for fold in folds])) == list(range(53))
    assert {len(fold.validation) for fold in folds} == {10, 11}
    assert all(complete(fold, 53) for fold in folds)
    assert folds[1].name == "fold 2 of 5 (seed 0)"


def test_folds_of_a_split_leave_its_test_rows_alone():
    data = table(100)
    split = split_randomly(data, 0)
    folds = split_k_fold(data, 4, seed=0, of=split)
    for fold in folds:
        assert (fold.test == split.test).all()
        assert not set(fold.known) & set(split.test)
    assert set(np.concatenate([fold.validation for fold in folds])) == set(split.known)


def test_folds_keep_groups_whole():
    data = table(100, uneven())
    folds = split_k_fold(data, 4, seed=1)
    for fold in folds:
        assert not set(data.groups[fold.train]) & set(data.groups[fold.validation])
    assert max(len(fold.validation) for fold in folds) < 40


def test_folds_are_the_same_for_the_same_seed():
    one, same, other = (split_k_fold(table(), 3, seed=seed) for seed in (0, 0, 1))
    assert (one[2].validation == same[2].validation).all()
    assert set(one[2].validation) != set(other[2].validation)


@pytest.mark.parametrize("k", [0, 1, 21])
def test_a_number_of_folds_that_cannot_be_is_refused(k):
    with pytest.raises(BadOption, match=f"from 2 to 20, as many as there are rows: not {k}"):
        split_k_fold(table(20), k, seed=0)


def repeated(n=60, copies=20, change=0.0):
    """Return a table whose last rows are copies of its first, and whose target is noise."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    x[n - copies :] = x[:copies] * (1 + change)
    return x, y


@pytest.mark.parametrize("change", [0.0, 2e-16])
def test_copies_of_a_row_stay_in_one_fold(change):
    data = make_table(*repeated(change=change))
    folds = split_k_fold(data, 5, seed=0)
    for fold in folds:
        assert {row % 40 for row in fold.train}.isdisjoint(row % 40 for row in fold.validation)
    assert sorted(np.concatenate([fold.validation for fold in folds])) == list(range(60))
    assert {len(fold.validation) for fold in folds} == {12}


@pytest.mark.parametrize("of", [None, "split"])
def test_rows_that_all_differ_are_folded_as_ever(of):
    data = table(53)
    known = np.sort(split_randomly(data, 4).known) if of else np.arange(53)
    rng = np.random.default_rng(7)
    fold, mixed = rng.permutation(np.arange(len(known)) % 5), rng.permutation(len(known))
    found = split_k_fold(data, 5, seed=7, of=split_randomly(data, 4) if of else None)
    for j in range(5):
        assert found[j].validation.tolist() == known[mixed][fold[mixed] == j].tolist()
        assert found[j].train.tolist() == known[mixed][fold[mixed] != j].tolist()


def test_a_dense_column_does_not_make_neighbours_repeats():
    x = np.linspace(0.0, 1.0, 200_000)  # a step is 5e-6 of it, and the bulk denser
    x[1000:9000] = 0.2 + np.linspace(0.0, 1e-4, 8000)
    data = make_table(x[:, None], np.random.default_rng(0).normal(size=200_000))
    assert (assign_unit_ids(data, np.arange(200_000)) == np.arange(200_000)).all()


def test_rows_that_are_close_by_chance_are_no_repeats():
    x = np.random.default_rng(0).uniform(size=20_000)
    assert (np.diff(np.sort(x)) < 5e-7).sum() > 100
    data = make_table(x[:, None], np.sin(x))
    assert (assign_unit_ids(data, np.arange(20_000)) == np.arange(20_000)).all()


def test_values_of_many_sizes_are_no_repeats():
    x = np.geomspace(1e-12, 1e3, 300)
    data = make_table(x[:, None], x / (1 + x))
    assert (assign_unit_ids(data, np.arange(300)) == np.arange(300)).all()


def test_too_few_different_rows_for_the_folds_are_told():
    data = make_table((np.arange(30) % 3)[:, None], np.arange(30.0))
    assert len(split_k_fold(data, 3, seed=0)) == 3
    told = "Only 3 of 30 rows differ in their features, too few for 5 folds.*fewer folds, or 0"
    with pytest.raises(BadOption, match=told):
        split_k_fold(data, 5, seed=0)


# --- shifted -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "end"), [("a", "high"), ("y", "low"), ("b", "high")])
def test_the_extreme_region_of_a_column_is_the_test(by, end):
    data = table(100)
    split = split_by_shift(data, by, end=end)
    inside, outside = data.column(by)[split.known], data.column(by)[split.test]
    assert len(outside) == 10
    assert inside.max() < outside.min() if end == "high" else outside.max() < inside.min()
    assert complete(split, 100)
    assert split.sizes["validation"] == 0


def test_a_shift_says_where_it_lies():
    assert split_by_shift(table(), "a").name == "shifted (a ≥ 90, seed 0)"
    assert split_by_shift(table(), "a", end="low", share=0.2).name == "shifted (a ≤ 19, seed 0)"


def test_equal_values_are_on_one_side_of_the_border():
    x = np.repeat(np.arange(10.0), 7)[:, None]
    data = make_table(x, np.arange(70.0), names=["a"])
    split = split_by_shift(data, "a", share=0.15)
    assert len(split.test) == 14
    assert set(x[split.test, 0]) == {8.0, 9.0}


def test_a_column_with_one_extreme_value_in_most_rows_is_refused():
    x = np.array([0.0] * 10 + [1.0] * 50)[:, None]
    with pytest.raises(BadInput, match=r"83 % of the rows have the same extreme value of 'a'"):
        split_by_shift(make_table(x, np.arange(60.0), names=["a"]), "a")


def test_groups_on_both_sides_of_a_shift_are_told():
    data = table(100, [str(k % 10) for k in range(100)])
    split = split_by_shift(data, "a")
    assert split.notes == ("10 groups stand on both sides of the shift.",)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"share": 0.0}, BadOption, "a finite number of 0 to 0.5, above 0: not 0.0"),
        ({"share": 0.6}, BadOption, "a finite number of 0 to 0.5, above 0: not 0.6"),
        ({"end": "left"}, BadOption, "takes high or low, not 'left'"),
        ({"by": "c"}, BadInput, "no column 'c' among a, b, y"),
    ],
    ids=str,
)
def test_a_shift_that_cannot_be_is_refused(options, error, told):
    with pytest.raises(error, match=told):
        split_by_shift(table(), **({"by": "a"} | options))


@pytest.mark.parametrize("share", [0.0, 0.6, np.nan, np.inf, True, None, "0.2"])
def test_settings_take_the_same_shares(share):
    with pytest.raises(BadOption, match=r"--shift-share takes a .* 0 to 0.5, above 0: not"):
        Settings(models="poly_ridge", shift_share=share)
    assert Settings(models="poly_ridge", shift_share=0.5).shift_share == 0.5


def test_a_split_names_its_parts():
    split = Split(np.arange(3), np.arange(3, 4), np.arange(4, 5), "by hand")
    assert list(split.parts) == ["training", "validation", "test"]
