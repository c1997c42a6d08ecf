"""Networks as a model type: one, or an ensemble of several that are trained as one batch."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ordinate.errors import NotFitted
from ordinate.tuning.models.base import Floats, Parameter
from ordinate.tuning.models.regressors.regressor import Regressor, RowPair, StepCallback

if TYPE_CHECKING:  # torch takes seconds to load
    from ordinate.tuning.models.networks.batched_ensemble import NetworkEnsemble
    from ordinate.tuning.models.networks.trainer import EpochReport

NETWORK_PARAMETERS = ("width", "depth", "block", "dropout")


class MLP(Regressor):
    """Residual networks; the prediction is the mean over members."""

    name: ClassVar = "mlp"
    title: ClassVar = "networks (MLP)"
    library: ClassVar = "torch"
    stored_by: ClassVar = "safetensors"
    iterative: ClassVar = True
    resumable: ClassVar = True
    parameters: ClassVar = {
        "width": Parameter(64, [32, 64, 128]),
        "depth": Parameter(2, (1, 3)),
        "block": Parameter("silu", ["silu", "swiglu"]),
        "dropout": Parameter(0.0, [0.0, 0.05]),
        "loss": Parameter("huber", ["huber", "mse"]),
        "huber": Parameter(0.1, (0.02, 1.0), log=True),
        "lr": Parameter(0.004, (0.0005, 0.01), log=True),
        "weight_decay": Parameter(0.0001, (1e-5, 0.1), log=True),
        "batch": Parameter(32, [16, 32, 64]),
        "epochs": Parameter(100),
        "patience": Parameter(40),
        "members": Parameter(4, taken=(1, 1024)),
        "bootstrap": Parameter(default=False),
        "device": Parameter("cpu", taken=("cpu", "cuda")),
    }

    def _fit(
        self, x: Floats, y: Floats, validation: RowPair | None, progress: StepCallback
    ) -> "NetworkEnsemble":
        from ordinate.tuning.models.networks.batched_ensemble import NetworkEnsemble, derive_seeds
        from ordinate.tuning.models.networks.residual_network import ResidualNetwork
        from ordinate.tuning.models.networks.trainer import TrainingConfig

        def report(epoch: "EpochReport") -> bool | None:
            return progress(epoch.number, epoch.rmse) if np.isfinite(epoch.rmse) else None

        plan = {each.name for each in fields(TrainingConfig)} & set(self.params)
        with _limit_torch_threads():
            found = NetworkEnsemble.fit(
                (x, y),
                validation,
                network=ResidualNetwork(
                    x.shape[1], **{name: self.params[name] for name in NETWORK_PARAMETERS}
                ),
                training=TrainingConfig(**{name: self.params[name] for name in plan}),
                seeds=derive_seeds(self.seed, self.params["members"]),
                bootstrap=self.params["bootstrap"],
                device=self.params["device"],
                progress=report,
                checkpoint=self.checkpoint,
            )
        self.steps = round(float(np.mean(found.steps)))
        self.curve = found.curve  # with what a checkpoint knew before
        if idle := sum(steps == 0 for steps in found.steps):
            warnings.warn(_describe_idle_members(idle, len(found.steps)), stacklevel=2)
        return found

    def _predict(self, fitted: "NetworkEnsemble", x: Floats) -> Floats:
        with _limit_torch_threads():
            return fitted.predict(x)

    def spread(self, x: Any) -> Floats:
        """Return how far the members lie apart [N], normalised; 0 for one member."""
        if self.fitted is None:
            raise NotFitted("This model has learned nothing yet: call fit first.")
        with _limit_torch_threads():
            return self.fitted.spread(np.asarray(x, float))

    def _save(self, fitted: "NetworkEnsemble", folder: Path) -> list[str]:
        return fitted.save(folder)

    def _load(self, folder: Path) -> "NetworkEnsemble":
        from ordinate.tuning.models.networks.batched_ensemble import NetworkEnsemble

        return NetworkEnsemble.load(folder)

    def _is_valid(self, fitted: "NetworkEnsemble") -> bool:
        return fitted.network.features == self.width


def _describe_idle_members(idle: int, members: int) -> str:
    """Say that members are as they began: they diverged at once, or learned nothing of use."""
    return (
        f"{idle:,} of {members:,} networks did not learn: no epoch made them better than the "
        "weights that they began with, which they keep. A smaller lr may help."
    )


@contextmanager
def _limit_torch_threads() -> Iterator[None]:
    """Keep torch to one thread, in which sums have one order; it was loaded after other limits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
