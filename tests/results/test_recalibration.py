"""Probabilities before and after recalibration, on the same items."""

import json
import math

import numpy as np
import pytest

from ordinate.errors import BadOption, BadProbabilities, UnequalLengths
from ordinate.postprocess import TemperatureScaling
from ordinate.render import RENDERERS, render
from ordinate.results.calibration import Calibration
from ordinate.results.recalibration import RecalibrationEvaluation

LEVELS = 4


def sampled(n, seed, temperature=0.4):
    """Gold levels and probabilities that are too sure of themselves."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(LEVELS), n)
    gold = np.array([rng.choice(LEVELS, p=row) for row in true])
    sharp = true ** (1 / temperature)
    return gold, sharp / sharp.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def result():
    fit_gold, fit_rows = sampled(2_000, 1)
    gold, rows = sampled(1_500, 2)
    after = TemperatureScaling(scale="0..3").fit(fit_rows, fit_gold).predict_proba(rows)
    return RecalibrationEvaluation.of(gold, rows, after, scale="0..3"), gold, rows, after


def test_both_are_judged_as_alone(result):
    found, gold, rows, after = result
    for part, table in ((found.before, rows), (found.after, after)):
        alone = Calibration.of(gold, table, scale="0..3")
        assert part.to_dict() == alone.to_dict()


def test_a_change_is_after_less_before_and_recalibration_helps(result):
    found, *_ = result
    for name, change in found.changes.items():
        gap = found.after.metrics[name].value - found.before.metrics[name].value
        assert change.value == pytest.approx(gap, abs=1e-12)
    for name in ("log_loss", "brier", "rps"):
        assert found.changes[name].high < 0, name


def test_errors_stand_beside_what_they_are_if_calibrated_instead_of_an_interval(result):
    found, *_ = result
    change, before, after = (
        part["ece"] for part in (found.changes, found.before.metrics, found.after.metrics)
    )
    assert math.isnan(change.low)
    assert "no valid interval" in change.note
    row = next(row for row in found.rows() if row["metric"] == "ece")
    assert row["if_calibrated_before"] == before.perfect_calibration.mean
    assert row["if_calibrated_after"] == after.perfect_calibration.mean
    line = next(line for line in str(found).splitlines() if line.startswith("ece "))
    wanted = [
        before.value,
        after.value,
        change.value,
        before.perfect_calibration.mean,
        after.perfect_calibration.mean,
    ]
    assert [float(cell) for cell in line.split()[2:]] == pytest.approx(wanted, abs=6e-4)


def test_before_is_named_by_its_columns_and_may_be_renormalized(result):
    found, gold, rows, after = result
    order = [2, 0, 3, 1]
    other = RecalibrationEvaluation.of(
        gold, 1.005 * rows[:, order], after, scale="0..3", columns=order, renormalize=True
    )
    assert other.changes["brier"].value == pytest.approx(found.changes["brier"].value)


def test_an_item_that_one_of_both_lacks_is_dropped_from_both(result):
    _, gold, rows, after = result
    rows, after = rows.copy(), after.copy()
    rows[3], after[7] = np.nan, np.nan
    with pytest.raises(BadProbabilities, match="row 4"):
        RecalibrationEvaluation.of(gold, rows, after, scale="0..3")
    found = RecalibrationEvaluation.of(gold, rows, after, scale="0..3", missing="drop")
    kept = np.delete(np.arange(len(gold)), [3, 7])
    alone = RecalibrationEvaluation.of(gold[kept], rows[kept], after[kept], scale="0..3")
    assert found.before.summary.dropped == found.after.summary.dropped == 2
    assert found.changes["rps"].value == pytest.approx(alone.changes["rps"].value)
    with pytest.raises(UnequalLengths, match="1500 rows of probabilities before and 1499 after"):
        RecalibrationEvaluation.of(gold, rows, after[1:], scale="0..3")


def test_the_interval_of_a_change_is_that_of_the_same_items(result):
    found, gold, rows, after = result

    def brier(table):
        return ((table - np.eye(LEVELS)[gold]) ** 2).sum(axis=1)

    gaps = brier(after) - brier(rows)
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    change = found.changes["brier"]
    assert change.value == pytest.approx(gaps.mean())
    assert (change.high - change.low) / 2 == pytest.approx(1.96 * error, rel=0.25)


@pytest.mark.parametrize("form", RENDERERS)
def test_every_form_is_written(result, form):
    found, *_ = result
    text = render(found, form)
    assert "log_loss" in text.replace(r"\_", "_")
    if form == "json":
        assert json.loads(text)["changes"]["brier"]["high"] < 0


def test_a_change_without_its_interval_is_refused():
    with pytest.raises(BadOption, match="with its interval"):
        RecalibrationEvaluation.of(
            [0, 1], [[1, 0], [0, 1]], [[1, 0], [0, 1]], scale="0..1", interval=None
        )
