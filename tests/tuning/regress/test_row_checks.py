"""Notes on rows: leaks and outliers are found, counted and named."""

import json
import re

import numpy as np
import pytest

from ordinate.tuning.regress.row_checks import compute_robust_z, find_duplicates, find_outliers
from ordinate.tuning.regress.splits import Split, split_randomly
from ordinate.tuning.regress.table import make_table

SPLIT = Split(np.arange(80), np.arange(80, 90), np.arange(90, 100), "by hand")


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(100, 3)), rng.normal(size=100)


def test_a_split_of_different_rows_has_no_leak():
    x, y = arrays()
    found = find_duplicates(make_table(x, y), SPLIT)
    assert not found.leaks
    assert found.notes == ()


def test_a_planted_leak_is_found_and_named():
    x, y = arrays()
    x[[90, 95]], y[[90, 95]] = x[[7, 12]], y[[7, 12]]
    found = find_duplicates(make_table(x, y), SPLIT)
    assert [(leak.row, leak.twin) for leak in found.leaks] == [(91, 8), (96, 13)]
    assert {(leak.kind, leak.same_target) for leak in found.leaks} == {("exact", True)}
    (note,) = found.notes
    assert "2 of 10 test rows also stand in training" in note
    assert "rows 91 (as 8), 96 (as 13)." in note
    assert json.loads(json.dumps(found.to_dict()))["count"] == 2


def test_a_leak_is_found_in_a_shuffled_split_too():
    x, y = arrays()
    split = split_randomly(make_table(x, y), seed=0)
    x[split.test[0]] = x[split.train[5]]
    found = find_duplicates(make_table(x, y), split)
    (leak,) = found.leaks
    assert (leak.row, leak.twin) == (split.test[0] + 1, split.train[5] + 1)
    assert not leak.same_target


@pytest.mark.parametrize(("change", "kind"), [(1e-15, "near"), (5e-13, "near"), (1e-10, None)])
def test_rows_that_were_written_and_read_again_are_near(change, kind):
    x, y = arrays()
    x[91] = x[3] * (1 + change)
    found = find_duplicates(make_table(x, y), SPLIT)
    assert [leak.kind for leak in found.leaks] == ([kind] if kind else [])


def digits(x):
    """Return numbers of six digits."""
    return np.array([float(f"{value:.6g}") for value in x.ravel()]).reshape(x.shape)


@pytest.mark.parametrize("rounded", [lambda x: np.round(x, 6), digits, np.float32])
def test_rows_that_were_rounded_are_near_if_the_target_is_too(rounded):
    x, y = arrays()
    x[90:], y[90:95] = rounded(x[:10]), rounded(y[:5])
    found = find_duplicates(make_table(x, y), SPLIT)
    assert [(leak.row, leak.twin) for leak in found.leaks] == [(91 + k, 1 + k) for k in range(5)]
    assert {(leak.kind, leak.same_target) for leak in found.leaks} == {("near", True)}
    assert "(5 only nearly, 5 with the same target)" in found.notes[0]


def test_the_steps_of_a_fine_grid_are_no_leak():
    x = np.linspace(0.0, 1.0, 100_000)
    table = make_table(x[:, None], np.sin(x))
    assert not find_duplicates(table, split_randomly(table, seed=0)).leaks
    still = make_table(np.column_stack([1e6 + x, x > 0.5]), 1e9 + np.round(x, 3))
    assert not find_duplicates(still, split_randomly(still, seed=0)).leaks


def test_repeats_among_the_rows_that_are_folded_are_told():
    x, y = arrays()
    x[[30, 40, 85]] = x[[3, 4, 5]]
    found = find_duplicates(make_table(x, y), SPLIT)
    assert found.repeats == found.to_dict()["repeats"] == 3
    assert found.notes[-1].startswith("3 rows repeat others by the features")
    assert "stay together in one fold" in found.notes[-1]
    groups = [str(k) for k in range(100)]
    assert find_duplicates(make_table(x, y, groups=groups), SPLIT).repeats == 0


def test_one_equal_feature_is_no_leak():
    x, y = arrays()
    x[90:, :2] = x[:10, :2]
    assert not find_duplicates(make_table(x, y), SPLIT).leaks


def test_validation_is_compared_with_training_and_the_test_with_both():
    x, y = arrays()
    x[85], x[92], x[93] = x[1], x[88], x[94]  # the last one within the test: no leak
    found = find_duplicates(make_table(x, y), SPLIT)
    assert [(leak.part, leak.twin_part) for leak in found.leaks] == [
        ("validation", "training"),
        ("test", "validation"),
    ]
    assert len(found.notes) == 3
    assert found.notes[-1].startswith("1 row repeats another by the features")


def test_of_several_twins_the_one_with_the_same_target_is_named():
    x, y = arrays()
    x[[2, 5]] = x[90]
    y[5] = y[90]
    (leak,) = find_duplicates(make_table(x, y), SPLIT).leaks
    assert (leak.twin, leak.same_target) == (6, True)


def test_an_exact_twin_goes_before_a_near_one_with_the_same_target():
    x, y = arrays()
    x[2], y[2] = x[90] * (1 + 5e-13), y[90]
    x[5] = x[90]
    (leak,) = find_duplicates(make_table(x, y), SPLIT).leaks
    assert (leak.twin, leak.kind, leak.same_target) == (6, "exact", False)


def test_rows_beyond_a_shift_are_compared_with_what_models_learn_from():
    x, y = arrays()
    x[98], x[99] = x[7], x[91]  # the last one stands in the test, which teaches nothing
    split = Split(np.arange(80), np.arange(80, 90), np.arange(90, 95), "by hand")
    found = find_duplicates(make_table(x, y), split, np.arange(95, 100))
    assert [(leak.part, leak.row, leak.twin) for leak in found.leaks] == [("shifted", 99, 8)]
    assert "1 of 5 shifted rows also stand in training" in found.notes[0]


def test_features_of_few_values_take_few_steps():
    """Each row looks up five places at most, however many twins it has."""
    y = np.arange(20_000.0)
    table = make_table((y % 2)[:, None], y)
    assert len(find_duplicates(table, split_randomly(table, seed=0)).leaks) == 4_000


def test_many_leaks_are_counted_and_few_named():
    x, y = arrays()
    x[90:] = x[:10]
    (note,) = find_duplicates(make_table(x, y), SPLIT).notes
    assert "10 of 10 test rows" in note
    assert "and 5 more" in note


# --- outliers ------------------------------------------------------------------------------------


def test_outliers_of_target_and_features_are_reported_and_kept():
    x, y = arrays()
    y[3], x[[8, 9], 1] = 50.0, [-40.0, 60.0]
    table = make_table(x, y, names=["a", "b", "c"])
    target, feature = find_outliers(table)
    assert (target.column, target.count, target.rows) == ("target", 1, (4,))
    assert (feature.column, feature.count, feature.rows) == ("b", 2, (10, 9))
    assert feature.distances[0] > 0 > feature.distances[1]
    assert "row 10 (60, +" in feature.note
    assert len(table) == 100
    assert json.loads(json.dumps(feature.to_dict()))["rows"] == [10, 9]


def test_the_distance_of_a_fill_value_is_a_short_number():
    x, y = arrays()
    x[3, 0] = 1e99
    (found,) = find_outliers(make_table(x, y, names=["a", "b", "c"]))
    assert re.fullmatch(r".*: row 4 \(1e\+99, \+[0-9.]+e\+[0-9]+ σ\)\.", found.note)


def test_normal_values_are_no_outliers():
    assert find_outliers(make_table(*arrays())) == []


def test_robust_distances_are_those_of_a_normal_distribution():
    z = compute_robust_z(np.random.default_rng(0).normal(10, 3, 100_000))
    assert abs(z.std() - 1) < 0.02


def test_a_column_with_mostly_equal_values_has_distances():
    column = np.zeros(100)
    column[:3] = [1.0, 1.0, 90.0]
    assert np.isfinite(compute_robust_z(column)).all()
    assert compute_robust_z(column)[2] > 6
    assert compute_robust_z(np.zeros(5)).tolist() == [0.0] * 5


def test_the_long_tail_of_a_skewed_column_is_no_outlier():
    y = np.exp(np.random.default_rng(0).normal(0.0, 1.0, 2000))
    assert (compute_robust_z(y) > 6).sum() > 10
    x = np.random.default_rng(1).normal(size=(2000, 1))
    assert find_outliers(make_table(x, y)) == []
    assert find_outliers(make_table(x, -y)) == []
    y[7] = 1e6
    (found,) = find_outliers(make_table(x, y))
    assert (found.rows, found.logarithmic) == ((8,), True)
    assert "by logarithms" in found.note


def test_an_outlier_does_not_make_a_column_skewed():
    y = np.linspace(1.0, 29.0, 200)
    y[3] = 900.0
    (found,) = find_outliers(make_table(np.linspace(0.0, 1.0, 200)[:, None], y))
    assert (found.rows, found.logarithmic) == ((4,), False)


def test_what_many_rows_do_is_no_outlier():
    x = (np.arange(500) % 20 == 0).astype(float)[:, None]  # 5 % have the other value
    assert (np.abs(compute_robust_z(x[:, 0])) > 6).sum() == 25
    assert find_outliers(make_table(x, np.linspace(0.0, 1.0, 500))) == []


@pytest.mark.parametrize("sign", [-9999.0, 1e6])
@pytest.mark.parametrize("every", [3, 9, 50])
def test_one_far_value_in_many_rows_is_asked_about(sign, every):
    x, y = arrays()
    x[::every, 1] = sign
    (found,) = find_outliers(make_table(x, y, names=["a", "b", "c"]))
    count = len(x[::every])
    assert (found.column, found.count) == ("b", count)
    assert f"'b' has {sign:.6g} in {count} rows ({count} % of them)" in found.note
    assert found.note.endswith("far from all other values: is it a sign for a missing one?")


@pytest.mark.parametrize("values", [[0, 1], [0, 1, 2, 40], [0, 1, 10, 100], [1, 2, 3, 4, 5, 30]])
def test_values_of_flags_and_counts_are_no_signs(values):
    rng, weights = np.random.default_rng(0), np.array([3.0] * (len(values) - 1) + [0.5])
    x = rng.choice(values, (500, 1), p=weights / weights.sum()).astype(float)
    assert find_outliers(make_table(x, np.linspace(0.0, 1.0, 500))) == []


def test_a_value_that_lies_no_farther_from_the_others_than_they_do_is_no_sign():
    x = np.concatenate([np.linspace(0.0, 1.0, 400), np.linspace(1.0, 20.0, 60), [25.0] * 40])
    assert find_outliers(make_table(x[:, None], np.linspace(0.0, 1.0, 500))) == []
