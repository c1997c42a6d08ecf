"""Ensembles of networks that are trained as one batch, each with its own normalisation.

One network is an ensemble of one member.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, BadStore
from ordinate.tuning.experiment import safe_files
from ordinate.tuning.experiment.stored_json import read_json
from ordinate.tuning.models import model_files
from ordinate.tuning.models.networks.residual_network import ResidualNetwork
from ordinate.tuning.models.networks.trainer import (
    DeviceData,
    EpochCallback,
    Floats,
    Trainer,
    TrainingConfig,
    predict_members,
    resolve_device,
)
from ordinate.tuning.models.target_scaling import FeatureTargetScaler

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TrainingPair = tuple[Any, Any]  # features [N, d] and targets [N], in their units


def derive_seeds(seed: int, members: int) -> list[int]:
    """Return the seeds of members; those of a smaller ensemble are the first of a larger one.

    >>> derive_seeds(0, 3)[:2] == derive_seeds(0, 2)
    True
    """
    return np.random.SeedSequence(seed).generate_state(members).tolist()


class _StoredEnsemble(TypedDict):
    network: ResidualNetwork
    training: TrainingConfig
    seeds: tuple[int, ...]
    scaled: list[dict[str, Any]]
    overall: dict[str, Any]
    steps: tuple[int, ...]
    stopped: bool
    history: tuple[dict[str, list[float | None]], ...]


@dataclass(frozen=True, eq=False)
class NetworkEnsemble:
    """Networks that were trained, what they were trained with, and how it went.

    `scaled` is the normalisation of each member, `overall` that of all training rows.
    """

    network: ResidualNetwork
    training: TrainingConfig
    seeds: tuple[int, ...]
    weights: torch.Tensor  # [M, P]
    scaled: tuple[FeatureTargetScaler, ...]
    overall: FeatureTargetScaler
    steps: tuple[int, ...]  # epochs that the weights of each member took
    stopped: bool = False  # by a progress callback
    history: tuple[dict[str, list[float | None]], ...] = ()  # RMSE by epoch and member, in the unit

    @classmethod
    def fit(
        cls,
        train: TrainingPair,
        validation: TrainingPair | None = None,
        *,
        network: ResidualNetwork,
        training: TrainingConfig | None = None,
        seeds: Sequence[int] = (0,),
        bootstrap: bool = False,
        device: str = "cpu",
        progress: EpochCallback | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Train a member for each seed, on the same rows or on rows drawn with replacement."""
        if not seeds:
            raise BadOption("An ensemble has one member at least: pass a seed for each.")
        x, y = np.asarray(train[0], float), np.asarray(train[1], float)
        plan, overall = training or TrainingConfig(), FeatureTargetScaler.fit(x, y)
        rows = [_draw_bootstrap_rows(each, len(y)) for each in seeds] if bootstrap else None
        scaled = (
            (overall,) * len(seeds)
            if rows is None
            else tuple(FeatureTargetScaler.fit(x[r], y[r]) for r in rows)
        )
        place = resolve_device(device)
        trainer = Trainer(network, plan, seeds, [each.target for each in scaled], device=device)
        trainer.fit(
            _build_device_data(scaled, x, y, place, rows),
            None if validation is None else _build_device_data(scaled, *validation, place),
            progress=progress,
            checkpoint=checkpoint,
        )
        return cls(
            network,
            plan,
            tuple(seeds),
            trainer.best.cpu(),
            scaled,
            overall,
            tuple(trainer.steps.tolist()),
            trainer.stopped,
            tuple(trainer.history),
        )

    @property
    def curve(self) -> list[tuple[int, float]]:
        """The validation RMSE by epoch, the mean over members that still learned."""
        found = []
        for number, row in enumerate(self.history, start=1):
            known = [x for x in row["validation"] if x is not None]
            if known:
                found.append((number, float(np.mean(known))))
        return found

    # --- predictions ---------------------------------------------------------------------------

    def members(self, features: Any, *, device: str = "cpu") -> Floats:
        """Return the predictions [M, N] of every member, in the unit of the target."""
        x = np.asarray(features, float)
        if x.ndim != 2 or x.shape[1] != self.network.features:
            raise BadInput(
                f"The networks know {self.network.features} features, and these rows have the "
                f"shape {x.shape}. Pass the columns of the training data, in their order."
            )
        place = resolve_device(device)
        rows = _build_device_data(self.scaled, x, np.zeros(len(x)), place).features
        found = predict_members(self.network, self.weights.to(place), rows)
        pairs = zip(self.scaled, found, strict=True)
        return np.stack([each.target.denormalize(row) for each, row in pairs])

    def predict(self, features: Any) -> Floats:
        """Return the mean of the members' predictions [N]."""
        return self.members(features).mean(axis=0)

    def spread(self, features: Any) -> Floats:
        """Return the standard deviation of the members' predictions [N]; 0 for one member."""
        return self.members(features).std(axis=0, ddof=min(1, len(self.seeds) - 1))

    # --- files -------------------------------------------------------------------------------

    def save(self, folder: Path) -> list[str]:
        """Write weights and configuration into a folder and return the names of the files."""
        config = {
            "network": self.network.to_dict(),
            "training": asdict(self.training),
            "seeds": list(self.seeds),
            "scaled": [each.to_dict() for each in self.scaled],
            "overall": self.overall.to_dict(),
            "steps": list(self.steps),
            "stopped": self.stopped,
            "history": list(self.history),
        }
        safe_files.write_json(folder / CONFIG, config)
        model_files.write_tensors(folder / WEIGHTS, self.network.named(self.weights), {})
        return [CONFIG, WEIGHTS]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return what was saved; files that do not fit together are refused."""
        try:
            config = read_json(folder / CONFIG, _StoredEnsemble)
            network = config["network"]
            weights = network.flatten_weights(model_files.read_tensors(folder / WEIGHTS)[0])
            found = cls(
                network,
                config["training"],
                config["seeds"],
                weights,
                tuple(map(FeatureTargetScaler.from_dict, config["scaled"])),
                FeatureTargetScaler.from_dict(config["overall"]),
                config["steps"],
                config["stopped"],
                config["history"],
            )
            found.check()
        except BadStore as reason:
            raise BadStore(f"{folder} is refused: {reason}") from None
        return found

    def check(self) -> None:
        """Refuse parts that are not about the same members."""
        count = len(self.weights)
        if not len(self.seeds) == len(self.scaled) == len(self.steps) == count:
            raise BadStore(f"there are weights of {count} members, and settings of others.")
        if any(
            each.means.shape != (self.network.features,) for each in (*self.scaled, self.overall)
        ):
            raise BadStore("the normalisation is that of another number of features.")
        if not torch.isfinite(self.weights).all():
            raise BadStore("there are weights that are not finite numbers.")


def _draw_bootstrap_rows(seed: int, rows: int) -> NDArray[np.intp]:
    return np.random.default_rng((seed, 2)).integers(0, rows, rows)


def _build_device_data(
    scaled: Sequence[FeatureTargetScaler],
    x: Any,
    y: Any,
    device: torch.device,
    samples: Sequence[NDArray[np.intp]] | None = None,
) -> DeviceData:
    """Return rows as each member sees them; members with one normalisation share their memory."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    shared = samples is None and all(each is scaled[0] for each in scaled)
    distinct = scaled[:1] if shared else scaled
    rows: Sequence[Any] = [slice(None)] * len(distinct) if samples is None else samples
    pairs = [(each, x[r], y[r]) for each, r in zip(distinct, rows, strict=True)]
    features = np.stack([each.features(a) for each, a, _ in pairs]).astype(np.float32)
    targets = np.stack([each.target.normalize(b) for each, _, b in pairs]).astype(np.float32)
    found = [torch.tensor(each, device=device) for each in (features, targets)]
    if shared:
        found = [each.expand(len(scaled), *each.shape[1:]) for each in found]
    return DeviceData(*found)
