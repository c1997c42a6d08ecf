"""Hugging Face: `compute_metrics` of a Trainer, for sequence and token classification.

Needs nothing but what the Trainer hands over.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ordinate.errors import BadInput
from ordinate.integrations.model_outputs import Classes, OutputMetrics
from ordinate.results.arguments import MetricSelection, ScaleDeclaration

__all__ = ["make_compute_metrics"]

IGNORED = -100  # the label of tokens that do not count, as in all of transformers


def make_compute_metrics(
    metrics: MetricSelection = None,
    scale: ScaleDeclaration = None,
    *,
    classes: Classes | Mapping[int, str] = None,
) -> Callable[[Any], dict[str, float]]:
    """Return the function for `compute_metrics=` of a Trainer.

    `classes` are the labels by their numbers: a list, the `id2label` of a model's configuration, or
    "scale" where 0 is the lowest level; without it, sorting the labels has to give the scale.
    Logits become probabilities by softmax. Select checkpoints with `metric_for_best_model`, and for
    metrics such as mae `greater_is_better=False`.

    >>> compute_metrics = make_compute_metrics("mae,rps", "low,mid,high", classes="scale")
    >>> compute_metrics(([[0.0, 0.0, 9.0]], [1]))
    {'mae': 1.0, 'rps': 0.499...}
    """
    if isinstance(classes, Mapping):
        classes = [classes[number] for number in range(len(classes))]
    outputs = OutputMetrics(metrics, scale, classes)

    def compute_metrics(predictions: Any) -> dict[str, float]:
        logits, labels = predictions
        if isinstance(logits, (tuple, list)) and isinstance(logits[0], np.ndarray):
            logits = logits[0]  # before hidden states and attentions
        rows, target = np.asarray(logits, dtype=np.float64), np.asarray(labels)
        if rows.ndim != target.ndim + 1:
            raise BadInput(
                f"The model puts out an array of shape {rows.shape} for labels of shape "
                f"{target.shape}: it takes a classifier with a logit for each level."
            )
        counted = target.reshape(-1) != IGNORED
        rows = rows.reshape(-1, rows.shape[-1])[counted]
        return outputs.compute(target.reshape(-1)[counted], _apply_softmax(rows))

    return compute_metrics


def _apply_softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
