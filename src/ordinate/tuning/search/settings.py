"""Settings of a search that every task has, checked before any work is done."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from ordinate.errors import BadOption, MissingExtra, shorten, suggest_names
from ordinate.settings import Seed, Setting, check_settings

AUTO = "auto"
# What changes when and where the work is done, and no result.
EXECUTION_SETTINGS = ("jobs", "timeout")


class Preset(NamedTuple):
    """How much work a search is: model types in the order in which they are tried, and trials."""

    models: tuple[str, ...]
    trials: int  # of each study
    folds: int
    epochs: int = 0  # of networks, at most


@dataclass(frozen=True, kw_only=True)
class SearchSettings(ABC):
    """What every search is told; errors name the flag.

    A task adds settings of its own, its presets, and the model types that it knows. `models`,
    `trials` and `folds` that are not given are those of the preset.
    """

    PRESETS: ClassVar[Mapping[str, Preset]]
    ENSEMBLES: ClassVar[tuple[str, ...]] = ()  # names in `models` that are no model types

    models: Annotated[
        Sequence[str] | str,
        Setting("model types, or auto", metavar="A,B,…", default="auto, as the preset says"),
    ] = AUTO
    preset: Annotated[
        Literal["minimal", "balanced", "thorough"],
        Setting("how much is done: model types, trials, folds, epochs"),
    ] = "balanced"
    trials: Annotated[
        int | None,
        Setting("of each study", metavar="N", least=1, default="as the preset says"),
    ] = None
    folds: Annotated[
        int | None,
        Setting("of cross-validation", metavar="K", least=0, default="as the preset says"),
    ] = None
    params: Annotated[
        Mapping[str, Mapping[str, Any]],
        Setting(
            "hyperparameters that are given and not searched, by model type, such as "
            """'{"lightgbm": {"rounds": 100}}'""",
            metavar="JSON",
            default="none",
        ),
    ] = field(default_factory=dict)
    nested: Annotated[
        bool,
        Setting(
            "nested cross-validation: an estimate without optimistic bias, by repeating the whole "
            "selection in each fold"
        ),
    ] = False
    timeout: Annotated[
        float | None,
        Setting(
            "of the whole search, after which no fit begins but the last one of the best model",
            metavar="SECONDS",
            least=0.0,
            default="none",
        ),
    ] = None
    jobs: Annotated[
        int, Setting("processes; results do not depend on it", metavar="N", least=1)
    ] = 1
    seed: Seed = 0

    # Model types that auto leaves out, and what to install for them.
    missing: Mapping[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything that can be checked without data."""
        check_settings(self)
        self._check_params()
        preset = self.PRESETS[self.preset]
        self._resolve_models(preset)
        for name in ("trials", "folds"):
            if getattr(self, name) is None:
                self._set(name, getattr(preset, name))
        if self.folds == 1:
            raise BadOption("--folds takes 2 or more, not 1: a fold is evaluated by the others.")
        if unknown := sorted(set(self.params) - set(self.model_types)):
            raise BadOption(
                f"--params has hyperparameters of {', '.join(map(shorten, unknown))}, which "
                "--models does not name."
            )
        completed = {name: self.complete_params(name, x) for name, x in self.params.items()}
        self._set("params", completed)

    # --- what a task says --------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def list_model_types(cls) -> Sequence[str]:
        """Return the names of all model types of the task."""

    @classmethod
    def check_model_type(cls, name: str) -> None:
        """Complain if the libraries of a model type are not installed."""
        del name

    def complete_params(self, model_type: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return given hyperparameters with the defaults of the others, all checked."""
        del model_type
        return dict(params)

    # --- what follows ------------------------------------------------------------------------

    @property
    def model_types(self) -> tuple[str, ...]:
        """The model types that are searched; an ensemble is made of the best of them."""
        return tuple(name for name in self.models if name not in self.ENSEMBLES)

    def count_trials(self, model_type: str) -> int:
        """Return how many trials a study has: one where its hyperparameters are given."""
        return 1 if model_type in self.params else int(self.trials or 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, by the names of the flags with underscores."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in plain.items()}

    @property
    def result_settings(self) -> dict[str, Any]:
        """What decides the result: everything but the manner of working."""
        return {name: x for name, x in self.to_dict().items() if name not in EXECUTION_SETTINGS}

    @classmethod
    def of(cls, settings: Self | None, options: Mapping[str, Any]) -> Self:
        """Return settings that were given, or those of keyword arguments; not both."""
        if settings is not None and options:
            raise BadOption(
                f"Pass settings, or {', '.join(options)} as keyword arguments, not both."
            )
        if settings is not None and not isinstance(settings, cls):
            raise BadOption(f"settings are a {cls.__module__}.{cls.__name__} here.")
        known = [one.name for one in fields(cls) if one.init]
        for name in options:
            if name not in known:
                raise BadOption(
                    f"There is no setting {shorten(name)}.{suggest_names(name, known)} There are: "
                    f"{', '.join(known)}."
                )
        return settings or cls(**options)

    def _check_params(self) -> None:
        by_model: Any = self.params
        if not isinstance(by_model, Mapping) or not all(
            isinstance(params, Mapping) for params in by_model.values()
        ):
            raise BadOption(
                "--params takes hyperparameters by model type, such as "
                f"""'{{"lightgbm": {{"rounds": 100}}}}', not {shorten(by_model)}."""
            )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _resolve_models(self, preset: Preset) -> None:
        """Replace `models` by the names that it means, and remember those not installed."""
        listed = self.models.split(",") if isinstance(self.models, str) else self.models
        if not isinstance(listed, Iterable):
            raise BadOption(
                f"--models takes names separated by commas, not {shorten(self.models)}."
            )
        named = tuple(dict.fromkeys(str(name).strip() for name in listed))
        known = [AUTO, *self.list_model_types(), *self.ENSEMBLES]
        for name in named:
            if name not in known:
                near = suggest_names(name, known)
                raise BadOption(
                    f"There is no model {shorten(name)}.{near} Known: {', '.join(known)}."
                )
        if not named:
            raise BadOption(f"--models names no model. Known: {', '.join(known)}.")
        if AUTO in named and len(named) > 1:
            raise BadOption("--models takes auto alone, or names of models.")
        if AUTO in named:
            named = self._select_installed(preset)
        else:
            for name in named:
                if name not in self.ENSEMBLES:
                    self.check_model_type(name)
        if not set(named) - set(self.ENSEMBLES):
            raise BadOption(
                f"A {named[0]} combines other models. Name some of "
                f"{', '.join(self.list_model_types())} beside it in --models."
            )
        self._set("models", named)

    def _select_installed(self, preset: Preset) -> tuple[str, ...]:
        refused = {}
        for name in preset.models:
            if name not in self.ENSEMBLES:
                try:
                    self.check_model_type(name)
                except MissingExtra as reason:
                    refused[name] = reason
        there = tuple(name for name in preset.models if name not in refused)
        if not set(there) - set(self.ENSEMBLES):
            raise next(iter(refused.values()))  # which says what to install
        self._set("missing", {name: str(reason) for name, reason in refused.items()})
        return there


@dataclass(frozen=True, kw_only=True)
class ScreeningSettings(SearchSettings):
    """What a search of several inputs is told: which of them are worth searching."""

    top_k: Annotated[int, Setting("feature sets that are searched", metavar="K", least=1)] = 5
    early_discard_threshold: Annotated[
        float | None,
        Setting("discard feature sets that screening finds worse than this", metavar="VALUE"),
    ] = None
    early_discard_percentile: Annotated[
        float | None,
        Setting(
            "discard feature sets that are worse than this percentile of all",
            metavar="P",
            least=0.0,
            most=100.0,
        ),
    ] = None
