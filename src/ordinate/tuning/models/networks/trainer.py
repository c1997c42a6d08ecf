"""The one training loop: of a network, or of all members of an ensemble at once.

Each member has its own seed, its own order of rows and its own early stopping. Randomness is a
function of a member's seed and the epoch, so that nothing of it has to be stored: training that
goes on from a checkpoint equals training that was never disturbed, bit for bit on one CPU thread.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypedDict, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ordinate.errors import BadOption, BadStore, NoItems, shorten
from ordinate.inference.estimates import to_json_number
from ordinate.summaries.normalization import Normalization
from ordinate.tuning.experiment.stored_json import decode
from ordinate.tuning.models import model_files
from ordinate.tuning.models.networks.residual_network import Dropout, ResidualNetwork

Floats = NDArray[np.float64]
Loss = Literal["mse", "huber"]
FINAL_RATE_SHARE = 0.01  # the last learning rate, as a share of the highest
PREDICTION_ROWS = 4096  # that are predicted together
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of AdamW
MOMENTS = ("first", "second")
MINUTE = 60.0  # seconds


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


class DeviceData(NamedTuple):
    """Rows of data on their device, normalised for each member; members may share memory."""

    features: Tensor  # [M, N, d]
    targets: Tensor  # [M, N]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.targets.shape[1]

    def digest(self) -> str:
        """Return a short name for the contents."""
        found = hashlib.sha256()
        for tensor in self:
            one = tensor[:1] if tensor.stride(0) == 0 else tensor
            found.update(one.cpu().contiguous().numpy().tobytes())
        return found.hexdigest()[:16]


class EpochReport(NamedTuple):
    """How far training is: validation RMSE in the unit of the targets, the mean over members."""

    number: int
    epochs: int
    rmse: float  # of members that still learn; nan without validation rows
    best: float  # of all members' best weights; infinite without validation rows
    running: int  # members that still learn


class _Checkpoint(TypedDict):
    of: dict[str, Any]
    epoch: int
    stopped: bool
    taken: int
    running: list[int]
    rmse: list[float | None]
    steps: list[int]
    history: list[Any]


EpochCallback = Callable[[EpochReport], bool | None]  # True: stop here


class Trainer:
    """Trains one network for each seed, all in one batch; one seed is one network.

    `weights` are those of the members that still learn, `best` those of every member at its lowest
    validation RMSE (at the end, without validation rows): they are tested and saved. A member whose
    weights are no longer finite stops.
    """

    def __init__(
        self,
        network: ResidualNetwork,
        training: TrainingConfig,
        seeds: Sequence[int],
        normalizations: Sequence[Normalization],
        *,
        device: str = "cpu",
    ) -> None:
        if not seeds or len(seeds) != len(normalizations):
            raise BadOption(
                f"Every member has a seed and a normalisation: there are {len(seeds)} and "
                f"{len(normalizations)}."
            )
        self.network, self.training = network, training
        self.seeds, self.normalizations = tuple(seeds), tuple(normalizations)
        self.device = resolve_device(device)
        self.stds = np.array([each.std for each in normalizations])
        self.best = network.initialize_weights(seeds).to(self.device)
        self.rmse = np.full(len(seeds), math.inf)  # of the best weights, normalised
        self.steps = np.zeros(len(seeds), int)  # epochs that the best weights took
        self.running = np.arange(len(seeds))  # members that still learn
        self.epoch = 0
        self.stopped = False  # by a progress callback
        self.history: list[dict[str, list[float | None]]] = []  # RMSE by epoch, in the unit
        self._start_optimizer(self.best.clone())

    # --- an epoch ----------------------------------------------------------------------------

    def train_epoch(self, part: DeviceData) -> Floats:
        """Go once through the rows; return the training RMSE of each running member.

        It is the mean over rows, not over batches: the last batch may be smaller.
        """
        streams = [np.random.default_rng((self.seeds[m], 1, self.epoch)) for m in self.running]
        order = np.stack([stream.permutation(part.rows) for stream in streams])
        drop = Dropout(self.network.dropout, streams) if self.network.dropout else None
        members = torch.from_numpy(self.running)[:, None].to(self.device)
        squares = torch.zeros(len(self.running), device=self.device)
        batches = torch.split(torch.from_numpy(order).to(self.device), self.training.batch, dim=1)
        for number, rows in enumerate(batches):
            step = self.epoch * len(batches) + number
            rate = self.training.compute_rate(step, self.training.epochs * len(batches))
            squares += self._take_step(
                part.features[members, rows], part.targets[members, rows], rate, drop
            )
        self.epoch += 1
        return np.sqrt(squares.double().cpu().numpy() / part.rows)

    def _take_step(self, x: Tensor, y: Tensor, rate: float, drop: Dropout | None) -> Tensor:
        """Take one step with every running member; return their sums of squared errors before."""
        predicted = self.network(self.weights, x, drop)
        # members do not touch each other: the gradient of the sum is that of each
        loss = self.training.losses(predicted, y).mean(dim=1).sum()
        (gradient,) = torch.autograd.grad(loss, self.weights)
        length = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        self._descend(gradient.mul_((self.training.clip / length).clamp_(max=1.0)), rate)
        return (predicted.detach() - y).square_().sum(dim=1)

    def predict(
        self, weights: Tensor, part: DeviceData, members: NDArray[Any] | None = None
    ) -> Floats:
        """Return normalised predictions [M, N] of members, all of them unless some are named."""
        chosen = np.arange(len(self.seeds)) if members is None else members
        rows = part.features if len(chosen) == len(part.features) else part.features[chosen]
        return predict_members(self.network, weights, rows)

    def validate(self, part: DeviceData) -> Floats:
        """Return the normalised RMSE of each running member, as it is now."""
        found = self.predict(self.weights, part, self.running)
        errors = found - part.targets.double().cpu().numpy()[self.running]
        return np.sqrt(np.square(errors).mean(axis=1))

    # --- training ----------------------------------------------------------------------------

    def fit(
        self,
        train: DeviceData,
        validation: DeviceData | None = None,
        *,
        progress: EpochCallback | None = None,
        checkpoint: Path | None = None,
        every: int = 10,
    ) -> Self:
        """Train until all members have stopped; go on from the checkpoint, if it is there.

        It is written every so many epochs, every minute if they take long, and after the last.
        """
        if not train.rows:
            raise NoItems("There are no training rows to learn from.")
        if validation is not None and not validation.rows:
            validation = None
        self._run_description = self._describe_run(train, validation)
        if checkpoint is not None and checkpoint.exists():
            self._resume(checkpoint)
        elif validation is not None:
            self._keep(self.validate(validation))  # so that there always is a best
        written = time.monotonic()
        while not self.done:
            self._advance_epoch(train, validation, progress)
            due = self.epoch % every == 0 or time.monotonic() - written > MINUTE
            if checkpoint is not None and (self.done or due):
                self._write(checkpoint)
                written = time.monotonic()
        return self

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return self.stopped or not len(self.running) or self.epoch >= self.training.epochs

    def _advance_epoch(
        self, train: DeviceData, validation: DeviceData | None, progress: EpochCallback | None
    ) -> None:
        members, learned = self.running, self.train_epoch(train)
        rmse = None if validation is None else self.validate(validation)
        self._note(members, learned, rmse)
        sound = torch.isfinite(self.weights).all(dim=1).cpu().numpy()
        if rmse is None:
            self._store_best(sound)
            self._retain_members(sound)
        else:
            self._keep(rmse)
            self._retain_members(
                sound & (self.epoch - self.steps[members] < self.training.patience)
            )
        if progress is not None:
            self.stopped = bool(progress(self._report_epoch(members, rmse)))

    def _keep(self, rmse: Floats) -> None:
        """Keep the weights of running members that are better than ever."""
        better = rmse < self.rmse[self.running]
        self.rmse[self.running[better]] = rmse[better]
        self._store_best(better)

    def _store_best(self, which: NDArray[np.bool]) -> None:
        """Take the weights of some of the running members for their best."""
        members = self.running[which]
        self.best[members] = self.weights.detach()[which]
        self.steps[members] = self.epoch

    def _retain_members(self, going: NDArray[np.bool]) -> None:
        """Go on with some of the running members only: those that stopped cost nothing more."""
        if not going.all():
            self.running = self.running[going]
            moments = {name: part[going] for name, part in self.moments.items()}
            self._start_optimizer(self.weights.detach()[going], moments, self.optimizer_steps)

    def _note(self, members: NDArray[Any], learned: Floats, rmse: Floats | None) -> None:
        columns = {"train": learned, "validation": rmse}
        row: dict[str, list[float | None]] = {}
        for name, values in columns.items():
            spread = np.full(len(self.seeds), math.nan)
            if values is not None:
                spread[members] = values
            row[name] = [to_json_number(x) for x in (spread * self.stds).tolist()]
        self.history.append(row)

    def _report_epoch(self, members: NDArray[Any], rmse: Floats | None) -> EpochReport:
        now = math.nan if rmse is None else float(np.mean(rmse * self.stds[members]))
        best = float(np.mean(self.rmse * self.stds))
        return EpochReport(self.epoch, self.training.epochs, now, best, len(self.running))

    # --- the optimiser -----------------------------------------------------------------------

    def _start_optimizer(
        self, weights: Tensor, moments: Mapping[str, Tensor] | None = None, taken: int = 0
    ) -> None:
        """Take up weights, and the moments of their gradients after so many steps."""
        self.weights = weights.requires_grad_()
        self.optimizer_steps = taken
        self.moments = {name: torch.zeros_like(weights) for name in MOMENTS} | dict(moments or {})

    @torch.no_grad()
    def _descend(self, gradient: Tensor, rate: float) -> None:
        """Take a step of AdamW, in one pass over the weights.

        It is the kernel of `torch.optim.AdamW(fused=True)`, whose own loading takes a second.
        """
        self.optimizer_steps += 1
        first, second = (self.moments[name] for name in MOMENTS)
        torch.ops.aten._fused_adamw_(  # the kernel has no other name
            [self.weights],
            [gradient],
            [first],
            [second],
            [],
            [torch.tensor(float(self.optimizer_steps), device=self.device)],
            lr=rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            weight_decay=self.training.weight_decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )

    # --- checkpoints -------------------------------------------------------------------------

    def _describe_run(self, train: DeviceData, validation: DeviceData | None) -> dict[str, Any]:
        return {
            "network": self.network.to_dict(),
            "training": asdict(self.training),
            "seeds": list(self.seeds),
            "data": [None if part is None else part.digest() for part in (train, validation)],
        }

    def _write(self, path: Path) -> None:
        """Write everything that the next epoch depends on into one file."""
        facts = {
            "of": self._run_description,
            "epoch": self.epoch,
            "stopped": self.stopped,
            "taken": self.optimizer_steps,
            "running": self.running.tolist(),
            "rmse": [to_json_number(x) for x in self.rmse.tolist()],
            "steps": self.steps.tolist(),
            "history": self.history,
        }
        tensors = {"weights": self.weights.detach(), "best": self.best, **self.moments}
        model_files.write_tensors(path, tensors, facts)

    def _resume(self, path: Path) -> None:
        tensors, stored = model_files.read_tensors(path)
        advice = "Remove it to begin anew."
        facts = decode(stored, _Checkpoint, path, advice=advice)
        known = facts["of"]
        if known != self._run_description:
            changed = [k for k, v in self._run_description.items() if known.get(k) != v]
            raise BadStore(
                f"{path} is the checkpoint of other training: {', '.join(changed)} differ. Remove "
                "it to begin anew, or train as before."
            )
        try:
            self._restore_state(
                {name: part.to(self.device) for name, part in tensors.items()}, facts
            )
        except (KeyError, ValueError, OverflowError) as problem:
            raise BadStore(
                f"{path} is no complete checkpoint: {shorten(str(problem))}. {advice}"
            ) from None

    def _restore_state(self, tensors: dict[str, Tensor], facts: _Checkpoint) -> None:
        self.epoch, self.stopped = facts["epoch"], facts["stopped"]
        self.running = np.array(facts["running"], int)
        if not np.isin(self.running, np.arange(len(self.seeds))).all():
            raise BadStore(f"{shorten(facts['running'])} are no members")
        self.rmse = np.array([math.inf if x is None else x for x in facts["rmse"]], float)
        self.steps, self.history = np.array(facts["steps"], int), facts["history"]
        shapes = {"best": len(self.seeds)}
        shapes |= dict.fromkeys(("weights", *MOMENTS), len(self.running))
        for name, rows in shapes.items():
            if tensors[name].shape != (rows, self.network.size):
                raise BadStore(f"{name} has the shape {tuple(tensors[name].shape)}")
        self.best, moments = tensors["best"], {name: tensors[name] for name in MOMENTS}
        self._start_optimizer(tensors["weights"], moments, facts["taken"])


def predict_members(network: ResidualNetwork, weights: Tensor, features: Tensor) -> Floats:
    """Return predictions [M, N] of members for normalised rows [M, N, d], some rows at a time."""
    with torch.no_grad():
        pieces = [network(weights, rows) for rows in torch.split(features, PREDICTION_ROWS, dim=1)]
        return torch.cat(pieces, dim=1).double().cpu().numpy()


def resolve_device(device: str) -> torch.device:
    """Return a device that is there."""
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise BadOption(
            f"The device {shorten(device)} cannot be used: {reason.rstrip('.')}. Pass --device cpu."
        ) from None
    return found
