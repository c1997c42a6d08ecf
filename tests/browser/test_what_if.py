"""The what-if panel computes what Python computes, whatever is moved."""

import math

import numpy as np
import pytest

import ordinate
from ordinate.errors import NotApplicable
from ordinate.metrics import find_metric
from ordinate.results import Evaluation
from ordinate.summaries import ConfusionMatrix

MOVES = 200
TOLERANCE = 1e-9
GAPPED = ordinate.Scale(["none", "mild", "bad", "worst"], positions=[0, 1, 3, 7])
MOVE = """
const buttons = [...document.querySelectorAll('#cells tbody tr')]
  .map((row) => [...row.querySelectorAll('button')]);
const cells = document.querySelector('#move-cells'), level = document.querySelector('#move-level');
return arguments[0].map((move) => {
  if (move.amount !== undefined) {
    cells.amount.value = String(move.amount);
    buttons[move.from[0]][move.from[1]].click();
    buttons[move.to[0]][move.to[1]].click();
  } else {
    level.percent.value = String(move.percent);
    level.level.value = String(move.level);
    level[move.side].click();
  }
  const rows = [...document.querySelectorAll('#what-if-metrics tbody tr')];
  return {
    weights: buttons.map((row) => row.map((button) => Number(button.value))),
    metrics: Object.fromEntries(rows.map((row) => [row.cells[0].textContent,
      [...row.querySelectorAll('data')].map((x) => (x.value === '' ? null : Number(x.value)))])),
  };
});
"""


def make_evaluation(scale, weights, unanswered=None):
    matrix = ConfusionMatrix.from_counts(weights, scale, unanswered=unanswered)
    return Evaluation.from_summary(matrix, interval=None)


CASES = {
    "levels": lambda rng: make_evaluation("cefr", rng.integers(0, 20, (6, 6))),
    "gaps": lambda rng: make_evaluation(GAPPED, rng.integers(0, 9, (4, 4))),
    "unanswered": lambda rng: make_evaluation(
        GAPPED, rng.integers(0, 9, (4, 4)), rng.integers(0, 4, 4)
    ),
    "few": lambda _: make_evaluation(GAPPED, np.diag([2, 0, 0, 1])),
}

SLOW = {"gaps", "few"}


def draw_move(rng, shape):
    if rng.random() < 0.7:
        rows, columns = shape
        ends = [[int(rng.integers(rows)), int(rng.integers(columns))] for _ in range(2)]
        amount = float(rng.choice([1, 2, 0.5, 1.25, 100]))
        return {"from": ends[0], "to": ends[1], "amount": amount}
    percent = float(rng.choice([10, 33.3, 100]))
    side = str(rng.choice(["lower", "higher"]))
    return {"level": int(rng.integers(shape[0])), "percent": percent, "side": side}


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow if x in SLOW else ()) for x in CASES]
)
def test_every_metric_on_offer_equals_python_after_each_move(name, browser, make_page):
    rng = np.random.default_rng(len(name))
    result = CASES[name](rng)
    matrix = result.confusion_matrix
    columns = len(matrix.scale) + matrix.has_unanswered
    browser.open(make_page(f"what-if-{name}", result))
    moves = [draw_move(rng, (len(matrix.scale), columns)) for _ in range(MOVES)]
    states = browser.run(MOVE, moves)
    originals = {metric: compute(metric, matrix) for metric in states[0]["metrics"]}
    assert len({str(state["weights"]) for state in states}) > MOVES / 4
    for state in states:
        weights = np.array(state["weights"], float)
        assert math.isclose(weights.sum(), matrix.weights.sum(), rel_tol=1e-12)
        moved = count(matrix.scale, weights)
        assert {*result.metrics} <= {*state["metrics"]}
        for metric, (before, after, change) in state["metrics"].items():
            expected, original = compute(metric, moved), originals[metric]
            compare(after, expected, metric)
            compare(before, original, metric)
            compare(change, expected - original, metric)
    assert browser.list_messages() == []


def count(scale, weights):
    """Return the matrix of some weights; what stands beyond the last level is unanswered."""
    size = len(scale)
    unanswered = weights[:, size] if weights.shape[1] > size else None
    return ConfusionMatrix.from_counts(weights[:, :size], scale, unanswered=unanswered)


def compute(metric, matrix):
    try:
        return float(find_metric(metric)(matrix))
    except NotApplicable:
        return math.nan


def compare(shown, expected, metric):
    if shown is None or math.isnan(expected):
        assert shown is None, metric
        assert math.isnan(expected), metric
    else:
        assert abs(shown - expected) <= TOLERANCE, metric


def test_moves_are_undone_and_taken_back(browser, make_page):
    browser.open(make_page("what-if-undo", CASES["levels"](np.random.default_rng(1))))
    read = "return [...document.querySelectorAll('#cells button')].map((x) => x.value)"
    original = browser.run(read)
    press = "document.querySelector(arguments[0]).click()"
    browser.run(press, "#move-level [name=higher]")
    once = browser.run(read)
    browser.run(press, "#move-level [name=higher]")
    assert len({tuple(original), tuple(once), tuple(browser.run(read))}) == 3
    browser.run(press, "#undo")
    assert browser.run(read) == once
    browser.run(press, "#move-level [name=higher]")
    browser.run(press, "#reset")
    assert browser.run(read) == original


@pytest.mark.parametrize("unit", [1e-13, 1, 1e13])
def test_the_unit_of_positions_decides_on_no_change(browser, make_page, unit):
    scale = ordinate.Scale(["low", "mid", "high"], positions=[0, unit, 3 * unit])
    browser.open(
        make_page(f"what-if-{unit}", make_evaluation(scale, [[4, 1, 0], [0, 3, 1], [1, 0, 5]]))
    )
    browser.run(MOVE, [{"from": [0, 1], "to": [0, 0], "amount": 1}])
    judged = browser.run(
        "return Object.fromEntries([...document.querySelectorAll('#what-if-metrics tbody tr')]"
        ".map((row) => [row.cells[0].textContent, row.lastChild.textContent]))"
    )
    assert (judged["mae"], judged["macro_mae"], judged["accuracy"]) == ("better",) * 3
