"""Probabilities before and after recalibration, on the same items."""

import json

import numpy as np
import pytest

from ordinate.decide import TemperatureScaling
from ordinate.errors import BadOption
from ordinate.evaluate.calibration import Calibration
from ordinate.evaluate.recalibration import Recalibration
from ordinate.report import RENDERERS, render

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
    return Recalibration.of(gold, rows, after, scale="0..3"), gold, rows, after


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
    for name in ("ece", "log_loss", "brier", "rps"):
        assert found.changes[name].high < 0, name


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
        Recalibration.of([0, 1], [[1, 0], [0, 1]], [[1, 0], [0, 1]], scale="0..1", interval=None)
