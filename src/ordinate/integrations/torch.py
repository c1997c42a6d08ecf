"""OrdinalMetric and RegressionMetric: torchmetrics metrics that sum up where the tensors are.

Needs PyTorch and torchmetrics: `pip install 'ordinate[torch]'`.
"""

import math
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np

from ordinate.errors import (
    BadInput,
    BadOption,
    BadValues,
    MissingExtra,
    NoItems,
    OffScale,
    UnequalLengths,
)
from ordinate.metrics import Metric as CatalogueMetric
from ordinate.results.arguments import MetricSelection, select_metrics
from ordinate.scale import Scale
from ordinate.scale.columns import IntegerCodes, find_integer_labels
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import count_pairs
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.regression import HIGHEST_ORDER, TRAIN_MEAN, CentralSums, Moments

try:
    import torch
    from torch import Tensor
    from torch.utils.dlpack import from_dlpack
    from torchmetrics import Metric
except ImportError as problem:
    raise MissingExtra(
        f"These metrics take torch and torchmetrics, which cannot be imported ({problem}): "
        "pip install 'ordinate[torch]'"
    ) from None

__all__ = ["OrdinalMetric", "RegressionMetric"]

S = TypeVar("S", ConfusionMatrix, Moments)
MEANS, SIZES = ("y", "e"), ("Σ|e|", "Σe²", "Σ|y|", "max|e|")
SIDE = HIGHEST_ORDER + 1  # of the powers of target and of error
UNKNOWN_TO_MOMENTS = ("median_absolute_error", "error_percentile")
ITEMS_PER_HISTOGRAM = 1 << 26  # whose cells take a quarter of a gigabyte
INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})


class _SummaryMetric(Metric, Generic[S]):
    """A torchmetrics metric whose values are functions of one summary."""

    is_differentiable = False
    full_state_update = False
    metrics: list[CatalogueMetric]

    def compute(self) -> dict[str, Tensor]:
        """Return each metric by its expression; nan where it is undefined."""
        summary = self._make_summary()
        values = [float(metric(summary)) for metric in self.metrics]
        tensors = torch.tensor(values, dtype=torch.float64, device=self.device)
        return dict(zip((metric.expression for metric in self.metrics), tensors, strict=True))

    def summary(self) -> S:
        """Return the summary of all batches, and of all processes, as `compute` does."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
            return self._make_summary()

    def _make_summary(self) -> S:
        raise NotImplementedError


class OrdinalMetric(_SummaryMetric[ConfusionMatrix]):
    """Metrics of ordered levels for training loops, from one confusion matrix kept on the device.

    `scale` declares the order, as everywhere in Ordinate; `metrics` are names, expressions such as
    'weighted_kappa(power=1)' or 'all'; the default metrics without them. Tensors hold class indices
    0, 1, …, K - 1 from the lowest level to the highest; with `labels=True` the labels of a scale of
    consecutive integers, such as stars 1 to 5. Items whose target is `ignore_index` are left out.
    Further arguments are those of `torchmetrics.Metric`.

    >>> metric = OrdinalMetric("low,mid,high", metrics="accuracy,mae")
    >>> metric.update(torch.tensor([0, 1, 2]), torch.tensor([0, 1, 1]))
    >>> {name: round(value.item(), 3) for name, value in metric.compute().items()}
    {'accuracy': 0.667, 'mae': 0.333}
    """

    cells: Tensor  # [K + 1, K + 1]: rows gold, columns predicted; the last of both: off the scale

    def __init__(
        self,
        scale: Scale | str | Iterable[Hashable],
        metrics: MetricSelection = None,
        *,
        labels: bool = False,
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.scale = Scale.of(scale)
        self.metrics = select_metrics(metrics)
        self.first_label = _find_first_label(self.scale) if labels else 0
        self.ignore_index = ignore_index
        self.class_indices = Scale(range(len(self.scale)))
        size = len(self.scale) + 1
        self.add_state("cells", torch.zeros(size, size, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, preds: Any, target: Any) -> None:
        """Count a batch: the predictions first, as in all of torchmetrics.

        `preds` are integers in the shape of `target`, or probabilities or logits of all levels
        along axis 1, of which the highest is taken. Both are tensors, or arrays of NumPy, JAX or
        CuPy, whose memory is read in place (DLPack).

        What is not on the scale is counted, and refused by `compute` and `summary`: a check of each
        batch would wait for the device.
        """
        predicted, gold = _read_tensor(preds, "preds"), _read_tensor(target, "target")
        if predicted.is_floating_point():
            predicted = self._select_highest(predicted, gold)
        _check_pair(predicted, gold, self.cells.device)
        self._add_counts(_flatten_labels(gold, "target"), _flatten_labels(predicted, "preds"))

    def _select_highest(self, scores: Tensor, gold: Tensor) -> Tensor:
        """Return the labels of the levels with the highest probability or logit."""
        levels = len(self.scale)
        if scores.ndim != gold.ndim + 1 or scores.shape[1] != levels:
            raise BadInput(
                f"preds of floating point are probabilities or logits of {levels} levels along "
                f"axis 1 for a target of shape {tuple(gold.shape)}, not {tuple(scores.shape)}. "
                "Round scores to levels first, or cut them (ordinate.postprocess.cut_points)."
            )
        return scores.argmax(dim=1) + self.first_label

    def _add_counts(self, gold: Tensor, predicted: Tensor) -> None:
        if gold.device.type == "cuda":
            self._add_histograms(gold, predicted)
            return
        if self.ignore_index is not None:
            counted = gold.long() != self.ignore_index  # a number that narrow integers may lack
            gold, predicted = gold[counted], predicted[counted]
        codes = [self._encode_labels(labels) for labels in (gold, predicted)]
        self.cells += torch.from_numpy(count_pairs(*codes)).to(self.cells.device)

    def _add_histograms(self, gold: Tensor, predicted: Tensor) -> None:
        """Count on a CUDA device; `torch.bincount` would wait for it."""
        size = len(self.cells)
        parts = (torch.split(column, ITEMS_PER_HISTOGRAM) for column in (gold, predicted))
        for rows, columns in zip(*parts, strict=True):
            row, column = self._locate_levels(rows), self._locate_levels(columns)
            cell = torch.add(column, row.int(), alpha=size)
            if self.ignore_index is not None:
                cell.masked_fill_(rows.long() == self.ignore_index, -1)  # outside of the histogram
            self.cells += torch.histc(cell, size**2, 0, size**2 - 1).view(size, size)

    def _locate_levels(self, labels: Tensor) -> Tensor:
        """Return the positions of labels on the scale, and K for what is not on it."""
        size = len(self.cells)
        if self.first_label or torch.iinfo(labels.dtype).max < size:
            labels = labels.long() - self.first_label
        lowest = max(torch.iinfo(labels.dtype).min, -1)
        located = labels.clamp(lowest, size - 1).remainder_(size)
        return located.int() if located.dtype == torch.int64 else located  # half the memory

    def _encode_labels(self, labels: Tensor) -> IntegerCodes:
        """Return the codes 0 to K - 1, and K for what is off the scale."""
        if self.first_label:
            labels = labels.long() - self.first_label
        codes = IntegerCodes(self.class_indices, labels.numpy(force=True))
        codes.widen()
        return codes

    def _make_summary(self) -> ConfusionMatrix:
        cells = self.cells.numpy(force=True)
        n, gold, predicted = cells.sum(), cells[-1].sum(), cells[:, -1].sum()
        if gold or predicted:
            lowest, highest = self.first_label, self.first_label + len(self.scale) - 1
            raise OffScale(
                f"{gold:,} of {n:,} targets and {predicted:,} of {n:,} predictions are not on the "
                f"scale {self.scale}, whose levels are the integers {lowest} to {highest} here. "
                "Map them first, leave items out with ignore_index=…, or declare another scale; "
                "then begin again with reset()."
            )
        return ConfusionMatrix.from_counts(cells[:-1, :-1], self.scale)


class RegressionMetric(_SummaryMetric[Moments]):
    """RMSE, MAE, R² and their like for training loops, from moments kept on the device.

    `metrics` are those of regression that moments know, by name; values are those of
    `ordinate.evaluate_regression`. With the `normalization` of the training targets, tensors are on
    the normalised scale, metrics in the unit of the target, and `skill` is relative to the training
    mean. Further arguments are those of `torchmetrics.Metric`.

    >>> metric = RegressionMetric("rmse,mae,r2", normalization=Normalization(1000.0, 50.0))
    >>> metric.update(torch.tensor([0.2, -0.4, 2.0]), torch.tensor([0.4, -0.3, 1.6]))
    >>> {name: round(value.item(), 3) for name, value in metric.compute().items()}
    {'rmse': 13.229, 'mae': 11.667, 'r2': 0.886}
    """

    sums: Tensor  # means of target and error, central sums, Σ|e|, Σe², Σ|y|, max|e|

    def __init__(
        self,
        metrics: MetricSelection = ("rmse", "mae", "r2"),
        *,
        normalization: Normalization | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.metrics = select_metrics(metrics, Moments)
        self.normalization = normalization
        unknown = [m.name for m in self.metrics if m.name in UNKNOWN_TO_MOMENTS]
        if unknown:
            raise BadOption(
                f"{unknown[0]} takes all errors, and moments are kept here: collect predictions "
                "for ordinate.evaluate_regression."
            )
        state = torch.zeros(len(MEANS) + SIDE**2 + len(SIZES), dtype=torch.float64)
        self.add_state("sums", state, dist_reduce_fx=_merge_all)

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch: the predictions first, in the shape of `target`, as tensors or arrays.

        What is no finite number is refused by `compute` and `summary`: a check of each batch would
        wait for the device.
        """
        predicted, gold = _read_tensor(preds, "preds"), _read_tensor(target, "target")
        _check_pair(predicted, gold, self.sums.device)
        if gold.numel():
            y, p = gold.reshape(-1).double(), predicted.reshape(-1).double()
            self.sums = _merge_all(torch.stack([self.sums, _sum_batch(y, p - y)]))

    def _make_summary(self) -> Moments:
        means, sums, sizes = (part.numpy(force=True) for part in _split_state(self.sums))
        if not sums[0, 0]:
            raise NoItems("There are no items to evaluate: no batch had any.")
        if not all(np.isfinite(part).all() for part in (means, sums, sizes)):
            raise BadValues(
                "A target or a prediction was no finite number, or too large; begin again with "
                "reset()."
            )
        central = CentralSums(means[0], means[1], sums)
        absolute, squares, spread, largest = map(np.asarray, sizes)
        moments = Moments(
            np.asarray(int(sums[0, 0])), central, central, absolute, absolute, largest, squares
        )
        if self.normalization is None:
            return moments
        known = replace(moments, constants={TRAIN_MEAN: 0.0}, spread={TRAIN_MEAN: spread})
        return known.scaled(self.normalization.std, self.normalization.mean)


def _sum_batch(y: Tensor, e: Tensor) -> Tensor:
    """Return the state of one batch of targets and errors."""
    means = torch.stack([x[0] + (x - x[0]).mean() for x in (y, e)])  # exact, where all are equal
    powers = [
        torch.stack([(x - mean) ** k for k in range(SIDE)])
        for x, mean in zip((y, e), means, strict=True)
    ]
    sums = powers[0] @ powers[1].T
    sizes = torch.stack([e.abs().sum(), (e * e).sum(), y.abs().sum(), e.abs().max()])
    return torch.cat([means, (sums * _known_powers(sums)).reshape(-1), sizes])


def _merge_all(states: Tensor) -> Tensor:
    """Return the state of all items of states [P, …], whose sums are moved to the common means."""
    means, sums, sizes = _split_state(states)
    weights = sums[:, 0, 0]
    # Not means[…], which waits for the device.
    first = means.index_select(0, weights.argmax()[None])
    mean = first[0] + (weights[:, None] * (means - first)).sum(0) / weights.sum().clamp(min=1.0)
    moved = torch.stack([_shift(sums[k], means[k] - mean) for k in range(len(states))]).sum(0)
    merged = torch.cat([sizes[:, :-1].sum(0), sizes[:, -1:].amax(0)])
    return torch.cat([mean, moved.reshape(-1), merged])


def _shift(sums: Tensor, by: Tensor) -> Tensor:
    """Return central sums [5, 5] about points that lie so much lower."""
    powers = torch.arange(SIDE, device=sums.device)
    apart = (powers[:, None] - powers).clamp(min=0)
    left, right = (_get_binomials(sums.device) * step**apart for step in by)
    known = _known_powers(sums)
    return (left @ sums * known) @ right.T * known


@cache  # a copy to the device waits for it
def _get_binomials(device: torch.device) -> Tensor:
    rows = [[math.comb(a, k) for k in range(SIDE)] for a in range(SIDE)]
    return torch.tensor(rows, dtype=torch.float64, device=device)


def _known_powers(sums: Tensor) -> Tensor:
    """Return 1 for the powers of target and error that are kept, up to the fourth order."""
    powers = torch.arange(SIDE, device=sums.device)
    return (powers[:, None] + powers <= HIGHEST_ORDER).to(sums)


def _split_state(state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return means, central sums [..., 5, 5] and sizes of errors."""
    first, last = len(MEANS), len(MEANS) + SIDE**2
    means, sums, sizes = state[..., :first], state[..., first:last], state[..., last:]
    return means, sums.reshape(*state.shape[:-1], SIDE, SIDE), sizes


def _find_first_label(scale: Scale) -> int:
    """Return the lowest label of consecutive integers."""
    numbers = find_integer_labels(scale)
    first = min(numbers, default=0)
    if numbers != {first + level: level for level in range(len(scale))}:
        raise BadOption(
            f"labels=True takes a scale of consecutive integers, such as 1..5, not {scale}. Pass "
            "class indices 0, 1, … from the lowest level to the highest, without labels=True."
        )
    return first


def _read_tensor(values: Any, name: str) -> Tensor:
    if isinstance(values, Tensor):
        return values
    if not hasattr(values, "__dlpack__"):
        raise BadInput(
            f"{name} must be a tensor, or an array of NumPy, JAX or CuPy, not "
            f"{type(values).__name__}."
        )
    return from_dlpack(values)


def _check_pair(predicted: Tensor, target: Tensor, device: torch.device) -> None:
    """Refuse a batch of two shapes, or of other devices than the metric's."""
    if target.shape != predicted.shape:
        raise UnequalLengths(
            f"Targets of shape {tuple(target.shape)} and predictions of shape "
            f"{tuple(predicted.shape)}: each item needs both."
        )
    if not target.device == predicted.device == device:
        raise BadInput(
            f"preds are on {predicted.device}, target on {target.device} and the metric on "
            f"{device}: move the metric to where they are, with metric.to(device)."
        )


def _flatten_labels(labels: Tensor, name: str) -> Tensor:
    """Return integers in one contiguous row."""
    if labels.dtype == torch.bool:
        labels = labels.view(torch.uint8)
    if labels.dtype not in INTEGERS:
        raise BadInput(f"{name} must be integers, not {labels.dtype}.")
    return labels.reshape(-1).contiguous()
