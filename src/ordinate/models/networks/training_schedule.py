"""How networks are trained: settings, the schedule of the learning rate, and losses."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor
from torch.nn import functional

from ordinate.errors import BadOption

Loss = Literal["mse", "huber"]
FINAL_RATE_SHARE = 0.01  # the last learning rate, as a share of the highest


@dataclass(frozen=True)
class TrainingConfig:
    """How networks are trained: AdamW, a cosine schedule after a warm-up, clipped gradients.

    The Huber loss counts errors beyond `huber` standard deviations of the target by their size, not
    by its square. `patience` is how many epochs without a better validation RMSE end a member.

    >>> plan = TrainingConfig(lr=1.0, warm_up=0.1)
    >>> [round(plan.compute_rate(step, 100), 3) for step in (0, 9, 10, 55, 99)]
    [0.1, 1.0, 1.0, 0.496, 0.01]
    """

    epochs: int = 200
    batch: int = 32
    lr: float = 2e-3
    weight_decay: float = 1e-4
    warm_up: float = 0.05  # share of the steps
    clip: float = 1.0  # the longest gradient of a member
    patience: int = 50
    loss: Loss = "mse"
    huber: float = 0.1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "patience"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise BadOption(f"{name}={value!r} is not an integer of at least 1.")
        for name in ("lr", "clip", "huber"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise BadOption(f"{name}={getattr(self, name)!r} is not a number above 0.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise BadOption(f"weight_decay={self.weight_decay!r} is not a number of at least 0.")
        if not 0.0 <= self.warm_up < 1.0:
            raise BadOption(f"warm_up={self.warm_up!r} is not a share from 0 to below 1.")
        if self.loss not in get_args(Loss):
            raise BadOption(f"loss={self.loss!r} is not one of {', '.join(get_args(Loss))}.")

    def compute_rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step of so many."""
        rising = round(self.warm_up * steps)
        if step < rising:
            return self.lr * (step + 1) / rising
        share = (step - rising) / max(1, steps - 1 - rising)
        return self.lr * (
            FINAL_RATE_SHARE + (1.0 - FINAL_RATE_SHARE) * (1.0 + math.cos(math.pi * share)) / 2.0
        )

    def losses(self, predicted: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each row."""
        if self.loss == "mse":
            return functional.mse_loss(predicted, targets, reduction="none")
        # times two: a small error counts as its square, as in the other loss
        return 2.0 * functional.huber_loss(predicted, targets, reduction="none", delta=self.huber)
