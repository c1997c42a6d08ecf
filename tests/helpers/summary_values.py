"""Summaries made of a few rows of small integers, one of each class, and how tests compare them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import ConfusionMatrix, PairedPredictions, Panel
from ordinate.summaries.base import BatchSummary, Summary
from ordinate.summaries.ensemble import EnsemblePredictions
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import Moments
from ordinate.summaries.reliability import Reliability, ReliabilityParts

LABELS = ["low", "mid", "high"]
SCALE = Scale(LABELS, positions=[0, 1, 5], names=["L", "M", "H"])
PARTS = ReliabilityParts(
    frozenset((events, 5) for events in ("top", "levels", "cumulative")),
    scores=True,
    confusion_matrix=True,
    ranking=True,
)
Rows = list[tuple[int, int, int]]
Weights = list[float] | None


def _columns(rows: Rows) -> tuple[list[int], list[int], list[int]]:
    first, second, third = zip(*rows, strict=True)
    return list(first), list(second), list(third)


def _labels(numbers: list[int]) -> list[str]:
    return [LABELS[number % 3] for number in numbers]


def _predictions(numbers: list[int]) -> "list[str | None]":
    return [[*LABELS, None][number % 4] for number in numbers]


def _matrix(rows: Rows, weights: Weights) -> ConfusionMatrix:
    gold, predicted, _ = _columns(rows)
    return ConfusionMatrix.of(_labels(gold), _predictions(predicted), SCALE, weights, "worst")


def _matrix_of_unknown_items(rows: Rows, weights: Weights) -> ConfusionMatrix:
    cells = _matrix(rows, weights).counts + np.eye(3) / 3
    return ConfusionMatrix.from_counts(cells, SCALE)


def _panel(rows: Rows, weights: Weights, *, grouped: bool = False) -> Panel:
    gold, first, second = _columns(rows)
    systems = {"one": _predictions(first), "two": _predictions(second)}
    groups = factorize_column([f"g{number % 5}" for number in first]) if grouped else None
    return Panel.of(_labels(gold), systems, SCALE, weights, groups, "worst")


def _pairs(rows: Rows, weights: Weights) -> PairedPredictions:
    return _panel(rows, weights).pair_systems("one", "two")


def _moments(rows: Rows, weights: Weights, **options: Any) -> Moments:
    targets, predictions, _ = np.array(rows).T / 4
    return Moments.of(targets, predictions, weights, **options)


def _intervals(rows: Rows, weights: Weights) -> PredictionIntervals:
    targets, first, second = np.array(rows).T / 4
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    return PredictionIntervals.of(targets, lower, upper, weights, predicted=first)


def _ensemble(rows: Rows, weights: Weights) -> EnsemblePredictions:
    targets, first, second = np.array(rows).T / 4
    return EnsemblePredictions.of(targets, np.stack([first, second, targets + 1], 1), weights)


def _reliability(rows: Rows, weights: Weights, parts: ReliabilityParts = PARTS) -> Reliability:
    gold, *_ = _columns(rows)
    sizes = 1.0 + np.array(rows) % 7
    probabilities = sizes / sizes.sum(axis=1, keepdims=True)
    return Reliability.of(
        _labels(gold), probabilities, SCALE, parts, columns="scale", weights=weights
    )


class Sample(NamedTuple):
    """A way to make a summary of rows."""

    make: Callable[[Rows, Weights], Summary]
    ordered: bool = False  # whether its groups are in the order in which they come
    counts_rows: bool = True  # whether every field is a sum over rows


SAMPLES = {
    "confusion matrix": Sample(_matrix),
    "confusion matrix of unknown items": Sample(_matrix_of_unknown_items, counts_rows=False),
    "panel": Sample(_panel),
    "panel with groups": Sample(lambda rows, w: _panel(rows, w, grouped=True), ordered=True),
    "pairs": Sample(_pairs),
    "moments": Sample(_moments),
    "moments with all parts": Sample(
        lambda rows, w: _moments(rows, w, histogram=True, constants={"c": 1.5})
    ),
    "moments of order 2": Sample(lambda rows, w: _moments(rows, w, order=2), counts_rows=False),
    "prediction intervals": Sample(_intervals),
    "ensemble": Sample(_ensemble),
    "reliability": Sample(_reliability),
    "reliability without parts": Sample(lambda rows, w: _reliability(rows, w, ReliabilityParts())),
}


def empty_like(summary: Any) -> Any:
    """A summary of no items that merges with this one."""
    if isinstance(summary, BatchSummary):
        return summary._map(np.zeros_like)
    arrays = {
        name: value[:0]
        for name in summary.rules
        if isinstance(value := getattr(summary, name), np.ndarray)
    }
    return replace(summary, **arrays)


def list_arrays(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each array of a value of a field, or of a summary, with where it stands."""
    if isinstance(value, Summary):
        for name in value.rules:
            yield from list_arrays(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from list_arrays(part, f"{path}[{key}]")
    elif isinstance(value, tuple):
        for k, part in enumerate(value):
            yield from list_arrays(part, f"{path}[{k}]")
    elif isinstance(value, (np.ndarray, np.generic)):
        yield path, value


def assert_close(first: Any, second: Any, tolerance: float = 1e-12) -> None:
    """Hold that two summaries are the same but for rounding; a bin that is not there is empty."""
    assert type(first) is type(second)
    arrays, others = dict(list_arrays(first)), dict(list_arrays(second))
    for path in arrays.keys() | others.keys():
        both = [found.get(path, 0.0) for found in (arrays, others)]
        np.testing.assert_allclose(*both, tolerance, tolerance, err_msg=path)
    for name, rule in first.rules.items():
        if rule.pool is None:
            mine, theirs = getattr(first, name), getattr(second, name)
            assert rule.dump(mine) == rule.dump(theirs), name
