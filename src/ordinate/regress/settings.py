"""Settings: what a search for a surrogate is asked for, checked before any work is done."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

from ordinate.errors import BadOption, shorten, suggest_names
from ordinate.models.regressors import (
    MODEL_TYPES,
    create_regressor,
    find_model_type,
    list_available_types,
)
from ordinate.postprocess.conformal_sets import check_alpha
from ordinate.settings import check_choice, check_integer, check_number

AutoOption = Literal["auto", "always", "never"]
ShiftEnd = Literal["high", "low"]
Device = Literal["cpu", "cuda"]

AUTO = "auto"
# What changes when and where the work is done, and nothing that is found.
EXECUTION_SETTINGS = ("jobs", "timeout")
MOST_SHIFTED = 0.5  # of the rows


class Preset(NamedTuple):
    """How much work a search is: model types, trials of each, folds, epochs of networks."""

    model_types: tuple[str, ...]
    trials: int
    folds: int
    epochs: int


# Model types stand in the order in which they are tried, quick ones first.
PRESETS = {
    "minimal": Preset(("poly_ridge", "hist_boosting", "lightgbm", "svr"), 1, 3, 60),
    "balanced": Preset(("hist_boosting", "lightgbm", "svr", "gp", "mlp"), 12, 5, 100),
    "thorough": Preset(
        ("poly_ridge", "hist_boosting", "lightgbm", "svr", "kernel_ridge", "gp", "mlp"), 40, 5, 300
    ),
}


@dataclass(frozen=True)
class Settings:
    """Everything that a search is asked for; errors name the flag.

    What the preset decides can be said otherwise: model types, trials, folds, epochs.

    >>> Settings(model="lightgbm,svr", preset="minimal").model_types
    ('lightgbm', 'svr')
    >>> Settings(preset="thorough", trials=5).count_trials("lightgbm")
    5
    """

    model: Sequence[str] | str = AUTO
    preset: str = "balanced"
    trials: int | None = None  # of each model type
    folds: int | None = None  # 0: the validation part alone
    epochs: int | None = None  # of networks, at most
    device: Device = "cpu"  # where networks are trained
    blend: AutoOption = "auto"
    lattice: AutoOption = "auto"  # whether models are told which rows lie on a lattice
    alpha: float = 0.1  # the share of targets that may lie outside their intervals
    shift: str | None = None  # the column whose extreme region is kept apart, for a second test
    shift_share: float = 0.1
    shift_end: ShiftEnd = "high"
    timeout: float | None = None  # seconds of searching after which no trial is begun
    jobs: int = 1
    seed: int = 0
    fixed: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # by model type; made whole

    def __post_init__(self) -> None:
        """Check everything that can be checked without data."""
        check_choice("preset", self.preset, tuple(PRESETS))
        named, model_types, missing = _parse_model_types(self.model, PRESETS[self.preset])
        object.__setattr__(self, "model", named)
        object.__setattr__(self, "model_types", model_types)
        object.__setattr__(self, "missing", missing)
        preset = PRESETS[self.preset]
        if self.epochs is None and "epochs" in self.fixed.get("mlp", {}):
            object.__setattr__(self, "epochs", self.fixed["mlp"]["epochs"])
        for name, least in (("trials", 1), ("folds", 0), ("epochs", 1)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(preset, name))
            check_integer(name, getattr(self, name), least)
        if self.folds == 1:
            raise BadOption("--folds takes 2 or more, or 0 to judge by the validation part alone.")
        check_integer("jobs", self.jobs, 1)
        check_integer("seed", self.seed, 0)
        for name in ("blend", "lattice"):
            check_choice(name, getattr(self, name), get_args(AutoOption))
        check_choice("shift_end", self.shift_end, get_args(ShiftEnd))
        check_choice("device", self.device, get_args(Device))
        check_shift_share(self.shift_share)
        check_number("timeout", self.timeout, 0.0, math.inf)
        check_alpha(self.alpha)
        if unknown := sorted(set(self.fixed) - set(self.model_types)):
            raise BadOption(
                f"There are parameters of {', '.join(unknown)}, which --model does not name."
            )
        if self.blend == "always" and len(self.model_types) < 2:
            raise BadOption("A blend takes two model types or more. Name them in --model.")
        object.__setattr__(
            self, "fixed", {k: self._complete_params(k, x) for k, x in self.fixed.items()}
        )
        if self.device != "cpu":
            self._check_device()

    model_types: tuple[str, ...] = field(init=False, repr=False, compare=False)
    missing: tuple[str, ...] = field(init=False, repr=False, compare=False)  # not installed

    def _complete_params(self, model_type: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with the defaults of those that are not given, all checked."""
        given = self.get_training_options(model_type)
        device = {name: given[name] for name in ("device",) if name in given}
        return create_regressor(model_type, given | dict(params) | device).params

    def _check_device(self) -> None:
        if "mlp" not in self.model_types:
            raise BadOption("--device is for networks: name mlp in --model, too.")
        from ordinate.models.networks.trainer import resolve_device

        resolve_device(self.device)

    def get_training_options(self, model_type: str) -> dict[str, Any]:
        """Return the hyperparameters of a model type that are set here, and not searched.

        >>> Settings(preset="minimal", model="mlp").get_training_options("mlp")
        {'epochs': 60, 'device': 'cpu'}
        """
        known = find_model_type(model_type).defaults
        return {name: getattr(self, name) for name in ("epochs", "device") if name in known}

    def count_trials(self, model_type: str) -> int:
        """Return how many trials a model type gets: one where its parameters are given."""
        return 1 if model_type in self.fixed else int(self.trials or 1)

    @property
    def blends(self) -> bool:
        """Whether models of several model types are blended."""
        return self.blend != "never" and len(self.model_types) > 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, by the names of the flags with underscores."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in plain.items()}

    @property
    def result_settings(self) -> dict[str, Any]:
        """What decides the result: everything but the manner of working."""
        plain = self.to_dict() | {"model_types": list(self.model_types)}
        return {name: value for name, value in plain.items() if name not in EXECUTION_SETTINGS}


def check_shift_share(share: Any) -> None:
    """Refuse what is no share of rows that a shift can keep apart."""
    right = isinstance(share, (int, float)) and not isinstance(share, bool)
    if not (right and 0.0 < share <= MOST_SHIFTED):
        raise BadOption(
            f"--shift-share takes a finite number of 0 to {MOST_SHIFTED}, above 0: not "
            f"{shorten(share)}."
        )


def _parse_model_types(
    wanted: Any, preset: Preset
) -> tuple[tuple[str, ...] | str, tuple[str, ...], tuple[str, ...]]:
    """Return what was named, the model types that it means, and those that are not installed."""
    listed = wanted.split(",") if isinstance(wanted, str) else wanted
    if not isinstance(listed, Iterable):
        raise BadOption(f"--model takes names separated by commas, not {shorten(wanted)}.")
    named = tuple(dict.fromkeys(str(one).strip() for one in listed))
    known = [AUTO, *MODEL_TYPES]
    for one in named:
        if one not in known:
            near = suggest_names(one, known)
            raise BadOption(f"There is no model {shorten(one)}.{near} Known: {', '.join(known)}.")
    if not named:
        raise BadOption(f"--model names no model. Known: {', '.join(known)}.")
    if AUTO not in named:
        for one in named:
            find_model_type(one).check()
        return named, named, ()
    if len(named) > 1:
        raise BadOption("--model takes auto alone, or names of models.")
    installed = list_available_types()
    there = tuple(model_type for model_type in preset.model_types if model_type in installed)
    if not there:
        find_model_type(preset.model_types[0]).check()  # which says what to install
    return (
        AUTO,
        there,
        tuple(model_type for model_type in preset.model_types if model_type not in there),
    )
