"""The same regression over every engine, against columns at hand."""

import math

import numpy as np
import pandas as pd
import pytest

import ordinate
from ordinate.errors import (
    BadInput,
    BadOption,
    BadValues,
    BadWeights,
    MissingLabels,
    NoItems,
)
from ordinate.summaries.regression import Moments

NAMES = {"target": "density", "predicted": "guess", "interval": None}
FURTHER = {"weights": "weight", "by": "wood", "groups": "tree"}


def make_rows(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    y = rng.normal(600.0, 50.0, n)
    p = y + rng.normal(3.0, 20.0, n)
    return pd.DataFrame(
        {
            "density": y,
            "guess": p,
            "low": np.where(np.arange(n) % 50 == 7, -np.inf, p - rng.random(n) * 40.0),
            "high": np.where(np.arange(n) % 60 == 7, np.inf, p + rng.random(n) * 40.0),
            "wood": rng.choice(["ash", "fir", "oak"], n),
            "tree": rng.integers(0, 30, n),
            "weight": rng.integers(0, 5, n) / 2.0,
        }
    )


def evaluate(data, **options):
    return ordinate.evaluate_regression(data, **NAMES | options)


def same(one: Moments, two: Moments) -> None:
    """Hold that counts are equal, and sums relative to what is summed up."""
    assert (one.n, one.counted, one.dropped) == (two.n, two.counted, two.dropped)
    assert one.constants["mean"] == pytest.approx(two.constants["mean"], rel=1e-13)
    for mine, theirs in ((one.plain, two.plain), (one.squared, two.squared)):
        unit = [float(theirs.sums[x] / theirs.weight) ** 0.25 for x in ((4, 0), (0, 4))]
        assert float(mine.y) == pytest.approx(float(theirs.y), rel=1e-12)
        for a in range(5):
            for b in range(5 - a):
                room = 1e-12 * float(theirs.weight) * unit[0] ** a * unit[1] ** b
                assert abs(mine.sums[a, b] - theirs.sums[a, b]) <= room, (a, b)
    for name in ("absolute", "absolute_squared", "largest", "squares"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-12), name
    assert one.spread["mean"] == pytest.approx(two.spread["mean"], rel=1e-12)
    assert one.histogram.keys() == two.histogram.keys()
    assert all(one.histogram[x] == pytest.approx(two.histogram[x]) for x in one.histogram)


@pytest.mark.parametrize("further", [{}, FURTHER], ids=["alone", "weights, subgroups, clusters"])
def test_every_engine_sums_up_the_same(engine, further):
    rows = make_rows()
    found = evaluate(engine.make(rows), **further)
    columns = {x: rows[name] for x, name in further.items()}
    usual = ordinate.evaluate_regression(rows["density"], rows["guess"], interval=None, **columns)
    same(found.summary, usual.summary)
    assert found.groups == usual.groups == (30 if further else None)
    assert (found.origin.gold, found.origin.predicted) == ("density", "guess")
    assert set(found.by) == set(usual.by)
    for wood, part in found.by.items():
        same(part.summary, usual.by[wood].summary)


def test_every_engine_has_the_same_metrics_and_intervals(engine):
    rows, clusters = make_rows(), {"groups": "tree", "interval": 0.9}
    found, usual = (evaluate(x, **clusters) for x in (engine.make(rows), rows))
    for name, one in usual.metrics.items():
        other, near = found.metrics[name], 0.0051 if name == "median_absolute_error" else 1e-9
        for part in ("value", "low", "high"):
            ours, theirs = getattr(one, part), getattr(other, part)
            assert ours == pytest.approx(theirs, rel=near, nan_ok=True), (name, part)
    for one, other in zip(usual.baselines, found.baselines, strict=True):
        assert (one.rmse, one.mae) == pytest.approx((other.rmse, other.mae), rel=1e-3)


@pytest.mark.parametrize("further", [{}, FURTHER], ids=["alone", "weights, subgroups, clusters"])
def test_every_engine_has_the_same_prediction_intervals(engine, further):
    rows = make_rows()
    bounds = {"lower": "low", "upper": "high", **further}
    found, usual = (evaluate(x, **bounds) for x in (engine.make(rows), rows))
    for mine, theirs in ((found, usual), *((found.by[x], usual.by[x]) for x in usual.by)):
        for name, score in theirs.prediction_intervals.items():
            assert mine.prediction_intervals[name].value == pytest.approx(score.value, rel=1e-12)


def test_missing_values_are_treated_as_asked(engine):
    rows = make_rows()
    rows.loc[[3, 7], "guess"] = math.nan
    rows.loc[5, "density"] = math.nan
    with pytest.raises(MissingLabels, match=r"1 of 300 targets .*missing"):
        evaluate(engine.make(rows))
    found = evaluate(engine.make(rows), missing="drop", by="wood")
    same(found.summary, evaluate(rows, missing="drop").summary)
    assert (found.summary.n, found.summary.dropped) == (297, 3)
    assert sum(part.summary.dropped for part in found.by.values()) == 3
    rows.loc[::2, "guess"] = rows.loc[1::2, "density"] = math.nan
    with pytest.raises(NoItems, match="all 300 lack a value"):
        evaluate(engine.make(rows), missing="drop")
    with pytest.raises(BadOption, match="missing='worst' is not one of error, drop"):
        evaluate(engine.make(rows), missing="worst")


def test_values_that_are_not_finite_are_refused(engine):
    rows = make_rows()
    rows.loc[4, "guess"] = math.inf
    rows.loc[2, "density"] = math.nan
    with pytest.raises(BadValues, match=r"prediction .*inf.* no.* finite number"):
        evaluate(engine.make(rows), missing="drop")


def test_wrong_weights_are_refused(engine):
    rows = make_rows()
    rows.loc[4, "weight"] = -1.0
    with pytest.raises(BadWeights, match="-1"):
        evaluate(engine.make(rows), weights="weight")


def test_text_is_no_number(engine):
    rows = make_rows().astype({"guess": object})
    rows["guess"] = "many"
    with pytest.raises(
        (BadInput, BadValues), match=r"must be numbers|not numbers: cast it|'many'|text"
    ):
        evaluate(engine.make(rows))


def test_the_previous_value_needs_rows_in_order(engine):
    rows = make_rows().assign(day=np.arange(300))
    if engine.lazy:
        with pytest.raises(BadOption, match="collect the table"):
            evaluate(engine.make(rows), order="day")
    else:
        found = evaluate(engine.make(rows), order="day")
        assert found.baselines[-1].name == "previous value"
