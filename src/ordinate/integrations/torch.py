"""OrdinalMetric: a torchmetrics metric that counts levels where the tensors are.

Needs PyTorch and torchmetrics: `pip install 'ordinate[torch]'`.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from ordinate.errors import BadInput, BadOption, MissingExtra, OffScale, UnequalLengths
from ordinate.results.arguments import MetricSelection, select_metrics
from ordinate.scale import Scale
from ordinate.scale.columns import IntegerCodes, find_integer_labels
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import count_pairs

try:
    import torch
    from torch import Tensor
    from torch.utils.dlpack import from_dlpack
    from torchmetrics import Metric
except ImportError as problem:
    raise MissingExtra(
        f"OrdinalMetric takes torch and torchmetrics, which cannot be imported ({problem}): "
        "pip install 'ordinate[torch]'"
    ) from None

from ordinate.integrations.cuda_counting import add_counts_on_cuda

__all__ = ["OrdinalMetric"]

INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})


class OrdinalMetric(Metric):
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

    is_differentiable = False
    full_state_update = False
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
        if gold.shape != predicted.shape:
            raise UnequalLengths(
                f"Targets of shape {tuple(gold.shape)} and predictions of shape "
                f"{tuple(predicted.shape)}: each item needs both."
            )
        if not gold.device == predicted.device == self.cells.device:
            raise BadInput(
                f"preds are on {predicted.device}, target on {gold.device} and the metric on "
                f"{self.cells.device}: move the metric to where they are, with metric.to(device)."
            )
        self._add_counts(_flatten_labels(gold, "target"), _flatten_labels(predicted, "preds"))

    def compute(self) -> dict[str, Tensor]:
        """Return each metric by its expression; nan where it is undefined."""
        matrix = self._make_confusion_matrix()
        values = [float(metric(matrix)) for metric in self.metrics]
        tensors = torch.tensor(values, dtype=torch.float64, device=self.cells.device)
        return dict(zip((metric.expression for metric in self.metrics), tensors, strict=True))

    def summary(self) -> ConfusionMatrix:
        """Return the confusion matrix of all batches, and of all processes, as `compute` does."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
            return self._make_confusion_matrix()

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
            add_counts_on_cuda(self.cells, gold, predicted, self.first_label, self.ignore_index)
            return
        if self.ignore_index is not None:
            counted = gold.long() != self.ignore_index  # a number that narrow integers may lack
            gold, predicted = gold[counted], predicted[counted]
        codes = [self._encode_labels(labels) for labels in (gold, predicted)]
        self.cells += torch.from_numpy(count_pairs(*codes)).to(self.cells.device)

    def _encode_labels(self, labels: Tensor) -> IntegerCodes:
        """Return the codes 0 to K - 1, and K for what is off the scale."""
        if self.first_label:
            labels = labels.long() - self.first_label
        codes = IntegerCodes(self.class_indices, labels.numpy(force=True))
        codes.widen()
        return codes

    def _make_confusion_matrix(self) -> ConfusionMatrix:
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


def _flatten_labels(labels: Tensor, name: str) -> Tensor:
    """Return integers in one contiguous row."""
    if labels.dtype == torch.bool:
        labels = labels.view(torch.uint8)
    if labels.dtype not in INTEGERS:
        raise BadInput(f"{name} must be integers, not {labels.dtype}.")
    return labels.reshape(-1).contiguous()
