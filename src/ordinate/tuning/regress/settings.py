"""Settings of tuning a regression model, checked before any work is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ordinate.errors import BadOption, shorten
from ordinate.postprocess.conformal_sets import check_alpha
from ordinate.settings import Setting
from ordinate.tuning.models.regressors import MODEL_TYPES, create_regressor, find_model_type
from ordinate.tuning.search.settings import Preset, SearchSettings

AutoOption = Literal["auto", "always", "never"]
ShiftEnd = Literal["high", "low"]

MOST_SHIFTED = 0.5  # of the rows


@dataclass(frozen=True, kw_only=True)
class Settings(SearchSettings):
    """Everything that tuning a regression model is told; errors name the flag.

    With 0 folds, models are selected by the validation rows alone.

    >>> Settings(models="lightgbm,svr", preset="minimal").model_types
    ('lightgbm', 'svr')
    >>> Settings(preset="thorough", trials=5).count_trials("lightgbm")
    5
    """

    PRESETS: ClassVar[Mapping[str, Preset]] = {  # quick model types first
        "minimal": Preset(("poly_ridge", "hist_boosting", "lightgbm", "svr"), 1, 3, 60),
        "balanced": Preset(("hist_boosting", "lightgbm", "svr", "gp", "mlp"), 12, 5, 100),
        "thorough": Preset(
            ("poly_ridge", "hist_boosting", "lightgbm", "svr", "kernel_ridge", "gp", "mlp"),
            *(40, 5, 300),
        ),
    }

    epochs: Annotated[
        int | None,
        Setting("of networks, at most", metavar="N", least=1, default="as the preset says"),
    ] = None
    device: Annotated[
        Literal["cpu", "cuda"],
        Setting("where networks are trained; results of cuda differ in last digits"),
    ] = "cpu"
    blend: Annotated[
        AutoOption,
        Setting(
            "blend the best of each model type: auto takes the blend unless one model is "
            "significantly better on held-out rows, in RMSE and in MAE"
        ),
    ] = "auto"
    lattice: Annotated[
        AutoOption,
        Setting(
            "tell models which rows have only values that repeat, as on a lattice: auto if that is "
            "better on held-out rows"
        ),
    ] = "auto"
    alpha: Annotated[
        float, Setting("share of targets outside their prediction intervals", metavar="X")
    ] = 0.1
    shift: Annotated[
        str | None,
        Setting(
            "keep the extreme region of a column apart, as a second test (target: of the target, "
            "unless a feature is called so)",
            metavar="COL",
        ),
    ] = None
    shift_share: Annotated[float, Setting("of rows beyond the shift", metavar="SHARE")] = 0.1
    shift_end: Annotated[ShiftEnd, Setting("at which end the shifted region lies")] = "high"

    def __post_init__(self) -> None:
        """Check everything that can be checked without data."""
        self._check_params()
        if self.epochs is None:
            preset = self.PRESETS.get(self.preset, Preset((), 1, 1))
            given = self.params.get("mlp", {})
            self._set("epochs", given.get("epochs", preset.epochs or None))
        check_shift_share(self.shift_share)
        check_alpha(self.alpha)
        super().__post_init__()
        if self.nested and not self.folds:
            raise BadOption("--nested takes --folds: without any there is no outer fold.")
        if self.blend == "always" and len(self.model_types) < 2:
            raise BadOption("A blend takes two model types or more. Name them in --models.")
        if self.device != "cpu":
            self._check_device()

    @classmethod
    def list_model_types(cls) -> Sequence[str]:
        """Return the names of all regressors."""
        return list(MODEL_TYPES)

    @classmethod
    def check_model_type(cls, name: str) -> None:
        """Complain if the libraries of a regressor are not installed."""
        find_model_type(name).check()

    def complete_params(self, model_type: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return given hyperparameters with the defaults of the others, all checked."""
        given = self.get_training_options(model_type)
        device = {name: given[name] for name in ("device",) if name in given}
        return create_regressor(model_type, given | dict(params) | device).params

    def get_training_options(self, model_type: str) -> dict[str, Any]:
        """Return the hyperparameters of a model type that are set here, and not searched.

        >>> Settings(preset="minimal", models="mlp").get_training_options("mlp")
        {'epochs': 60, 'device': 'cpu'}
        """
        known = find_model_type(model_type).defaults
        return {name: getattr(self, name) for name in ("epochs", "device") if name in known}

    @property
    def blends(self) -> bool:
        """Whether models of several model types are blended."""
        return self.blend != "never" and len(self.model_types) > 1

    def _check_device(self) -> None:
        if "mlp" not in self.model_types:
            raise BadOption("--device is for networks: name mlp in --models, too.")
        from ordinate.tuning.models.networks.trainer import resolve_device

        resolve_device(self.device)


def check_shift_share(share: Any) -> None:
    """Refuse what is no share of rows that a shift can keep apart."""
    right = isinstance(share, (int, float)) and not isinstance(share, bool)
    if not (right and 0.0 < share <= MOST_SHIFTED):
        raise BadOption(
            f"--shift-share takes a finite number of 0 to {MOST_SHIFTED}, above 0: not "
            f"{shorten(share)}."
        )
