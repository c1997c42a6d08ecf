"""Blends: weights that are never negative, sum to 1, and are learned where it is allowed."""

from dataclasses import replace

import numpy as np
import pytest
from regression_tables import smooth

from ordinate.errors import BadInput, NoItems
from ordinate.tuning.regress.blend import Blend, blend_out_of_fold
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.task import RegressionTask
from ordinate.tuning.regress.tuning import tune_table


def members(n=400, noise=(1.0, 1.0, 3.0), seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(0.0, 10.0, n)
    return np.column_stack([y + rng.normal(0.0, one, n) for one in noise]), y


def rmse(y, p):
    return float(np.sqrt(np.mean((y - p) ** 2)))


def test_weights_are_those_of_a_search_over_the_simplex():
    table, y = members(noise=(1.0, 1.5, 2.0))
    grid = np.linspace(0.0, 1.0, 101)
    points = [(a, b, 1.0 - a - b) for a in grid for b in grid if a + b <= 1.0 + 1e-12]
    best = min(points, key=lambda w: rmse(y, table @ np.array(w)))
    found = Blend.fit(table, y).weights
    assert np.abs(found - best).max() < 0.03
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()


def test_a_member_that_only_harms_gets_no_weight():
    table, y = members(noise=(1.0, 1.0))
    harmful = y + 2.0 * (table[:, 0] - y) + 2.0 * (table[:, 1] - y)
    assert Blend.fit(np.column_stack([table, harmful]), y).weights[2] == 0.0


def test_members_that_are_alike_share_equally():
    table, y = members(noise=(1.0,))
    assert Blend.fit(np.repeat(table, 3, axis=1), y).weights == pytest.approx([1 / 3] * 3)


def test_a_blend_is_better_than_the_best_member_and_than_the_average():
    table, y = members()
    blended = rmse(y, Blend.fit(table, y).predict(table))
    assert blended < min(rmse(y, table[:, k]) for k in range(3))
    assert blended < rmse(y, table.mean(axis=1))


def test_members_without_errors_share_equally():
    _, y = members()
    assert Blend.fit(np.column_stack([y, y]), y).weights.tolist() == [0.5, 0.5]


def test_crossed_weights_of_a_part_do_not_see_its_targets():
    table, y = members(n=90)
    parts = np.array_split(np.arange(90), 3)
    before = blend_out_of_fold(table, y, parts)
    changed = y.copy()
    changed[parts[1]] += 100.0
    after = blend_out_of_fold(table, changed, parts)
    assert np.array_equal(before[parts[1]], after[parts[1]])
    assert not np.array_equal(before[parts[0]], after[parts[0]])


def test_one_part_is_halved():
    table, y = members(n=40)
    found = blend_out_of_fold(table, y, [np.arange(40)])
    own = Blend.fit(table[1::2], y[1::2]).predict(table[::2])
    assert np.array_equal(found[::2], own)


def test_what_is_no_table_is_refused():
    with pytest.raises(BadInput, match="a column for each model"):
        Blend.fit([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(BadInput, match="2 targets, and 1 rows"):
        Blend.fit([[1.0]], [1.0, 2.0])
    with pytest.raises(NoItems, match="no rows"):
        Blend.fit(np.empty((0, 2)), [])


@pytest.mark.parametrize(("weights", "kept"), [([1.0, 0.0], False), ([0.9, 0.1], True)], ids=str)
def test_a_blend_that_is_one_of_its_models_is_none(tmp_path, monkeypatch, weights, kept):
    blend = RegressionTask.blend

    def forced(self, members):
        made = blend(self, members)
        return replace(made, weights=tuple(weights), members=tuple(members))

    monkeypatch.setattr(RegressionTask, "blend", forced)
    settings = {"models": "poly_ridge,kernel_ridge", "trials": 1, "folds": 2}
    found = tune_table(smooth(), tmp_path / "auto", Settings(**settings))
    assert (found.ensemble is not None) == kept
    if not kept:
        best = min(found.finalists, key=lambda one: one.value)
        assert found.winner is best
    always = tune_table(smooth(), tmp_path / "always", Settings(**settings, blend="always"))
    assert always.winner.model_type == "blend"
    assert list(always.winner.weights) == weights
