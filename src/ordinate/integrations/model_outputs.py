"""Metrics of what models put out: labels, or a number for each class, whatever the order of these.

Libraries number the classes, and sort their labels first. Here the classes are matched to the
levels of the declared scale.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, shorten
from ordinate.metrics import Metric
from ordinate.results import score
from ordinate.results.arguments import (
    MetricSelection,
    ScaleDeclaration,
    select_metrics,
    split_metrics_by_summary,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.labels import convert_to_python, normalize_label
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.probabilities import IN_ORDER_OF_SCALE, ColumnLabels, sort_labels
from ordinate.summaries.reliability import Reliability

Classes = Iterable[Hashable] | str | None


class OutputMetrics:
    """Metrics of class numbers beside the numbers that a model puts out for each class.

    `classes` are the labels by their numbers, 0, 1, …, or "scale", where they are those of the
    scale, lowest first; it may be left out where sorting the labels gives the order of the scale.
    The class with the highest output is the predicted one.

    >>> measure = OutputMetrics("mae,rps", "low,mid,high", classes=["high", "low", "mid"])
    >>> measure.compute([0, 1], [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    {'mae': 0.0, 'rps': 0.0625}
    """

    def __init__(
        self, metrics: MetricSelection, scale: ScaleDeclaration, classes: Classes = None
    ) -> None:
        self.metrics = select_output_metrics(metrics)
        self.scale = Scale.of(scale) if scale is not None else resolve_scale(None, classes)
        if classes is None and sort_labels(self.scale) != list(self.scale.labels):
            raise BadOption(
                f"Which class has which number? Libraries sort labels, and the scale {self.scale} "
                "has another order: pass classes=model.classes_ (or a model's id2label), or "
                'classes="scale" if 0 is the lowest level.'
            )
        if classes is None or (isinstance(classes, str) and classes == IN_ORDER_OF_SCALE):
            classes = self.scale.labels
        self.classes = list(classes)
        self.positions = find_positions(self.classes, self.scale)

    def compute(self, target: Any, outputs: Any, weights: Any = None) -> dict[str, float]:
        """Return each metric by its expression; nan where it is undefined.

        Of two classes, one column of outputs is the probability of the second. Metrics of
        probabilities take rows that sum to 1.
        """
        rows = self._read_rows(outputs)
        numbers = np.asarray(target)
        codes = numbers.astype(np.int64)
        if codes.shape != rows.shape[:1] or np.any(codes != numbers):
            raise BadInput(
                f"The target is one class number for each of {len(rows):,} rows of outputs, not "
                f"an array of shape {numbers.shape} and type {numbers.dtype}."
            )
        if codes.size and not 0 <= codes.min() <= codes.max() < len(self.classes):
            outside = codes.max() if codes.min() >= 0 else codes.min()
            raise BadInput(
                f"The target has class number {outside}, but there are {len(self.classes)} "
                f"classes, from 0: {', '.join(map(str, self.classes))}. Pass all with classes=…."
            )
        gold = self.positions[codes]
        return {
            metric.expression: self._compute_metric(metric, gold, rows, weights)
            for metric in self.metrics
        }

    def _compute_metric(
        self, metric: Metric, gold: NDArray[np.int64], rows: NDArray[np.float64], weights: Any
    ) -> float:
        if is_of_probabilities(metric):
            placed = place_columns(rows, self.classes, self.scale)
            labels = np.array(self.scale.labels, dtype=object)[gold]
            return score_probabilities(
                metric, labels, placed, self.scale, weights, IN_ORDER_OF_SCALE
            )
        predicted = self.positions[rows.argmax(axis=1)]
        levels = Scale(range(len(self.scale)))
        counts = ConfusionMatrix.of(gold, predicted, levels, weights).counts
        return float(score(metric, ConfusionMatrix.from_counts(counts, self.scale)))

    def _read_rows(self, outputs: Any) -> NDArray[np.float64]:
        rows = np.asarray(outputs, dtype=np.float64)
        size = len(self.classes)
        if rows.ndim == 1 and size == 2:
            rows = np.column_stack((1.0 - rows, rows))
        if rows.ndim != 2 or rows.shape[1] != size:
            raise BadInput(
                f"The model puts out an array of shape {rows.shape}, not a column for each of the "
                f"{size} classes: {', '.join(map(str, self.classes))}. Name them with classes=…, "
                "and train a classifier that puts out probabilities."
            )
        return rows


def select_output_metrics(metrics: MetricSelection) -> list[Metric]:
    """Return the metrics of labels, then those of probabilities."""
    if metrics is None:
        return select_metrics(None)
    of_labels, of_probabilities = split_metrics_by_summary(metrics)
    return [
        *([] if of_labels is None else select_metrics(of_labels)),
        *([] if of_probabilities is None else select_metrics(of_probabilities, Reliability)),
    ]


def select_output_metric(metric: str | Metric) -> Metric:
    """Return one metric, of labels or of probabilities."""
    (selected,) = select_output_metrics([metric])
    return selected


def is_of_probabilities(metric: Metric) -> bool:
    """Tell whether a metric takes probabilities rather than labels."""
    return metric.summary is Reliability


def score_predictions(
    metric: Metric,
    gold: Any,
    predicted: Any,
    scale: ScaleDeclaration,
    weights: Any = None,
    columns: ColumnLabels = None,
) -> float:
    """Return a metric of predicted labels, or of rows of probabilities for one of these."""
    if is_of_probabilities(metric):
        declared = resolve_scale(scale, gold)
        return score_probabilities(metric, gold, predicted, declared, weights, columns)
    return float(score(metric, gold, predicted, scale=scale, weights=weights))


def score_probabilities(
    metric: Metric,
    gold: Any,
    rows: Any,
    scale: Scale,
    weights: Any = None,
    columns: ColumnLabels = None,
) -> float:
    """Return a metric of probabilities, whose columns have these labels."""
    parts = metric.required_parts
    summary = Reliability.of(
        gold, rows, scale, parts, columns=columns, weights=weights, renormalize=True
    )
    return float(metric(summary))


def place_columns(
    rows: NDArray[np.float64], classes: list[Any], scale: Scale
) -> NDArray[np.float64]:
    """Return a column for each level of the scale; one that the estimator never saw has 0.

    >>> rows = np.array([[0.2, 0.8]])
    >>> place_columns(rows, ["high", "low"], Scale.of("low,mid,high")).tolist()
    [[0.8, 0.0, 0.2]]
    """
    placed = np.zeros((len(rows), len(scale)))
    placed[:, find_positions(classes, scale)] = rows
    return placed


def find_positions(classes: list[Any], scale: Scale) -> NDArray[np.int64]:
    """Return the position on the scale of each class."""
    places = {normalize_label(label): place for place, label in enumerate(scale.labels)}
    columns = [places.get(normalize_label(label), -1) for label in classes]
    if -1 in columns:
        label = shorten(convert_to_python(classes[columns.index(-1)]))
        raise BadOption(
            f"The estimator predicts probabilities of {label}, which is "
            f"not on the scale {scale}. Declare the scale of the labels that it was fitted to."
        )
    return np.array(columns, dtype=np.int64)
