"""What every model can do: say what it is, learn, predict, be saved, loaded and searched."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    BadInput,
    BadOption,
    BadStore,
    MissingExtra,
    NotFitted,
    OrdinateError,
    replace_control_characters,
    shorten,
    suggest_names,
)
from ordinate.tuning.experiment import safe_files
from ordinate.tuning.experiment.stored_json import at_least, at_most, read_json
from ordinate.tuning.experiment.workers import limit_to_one_thread
from ordinate.tuning.models import model_files

Floats = NDArray[np.float64]
FACTS_FILE = "model.json"
ADVICE = "Tune again, or restore the folder."
MOST_FEATURES = 10_000_000
LARGEST_PARAMETER = 1e300  # beyond which no hyperparameter makes sense


class StoredModel(TypedDict):
    """What a folder says of any model in it."""

    model_type: str
    params: dict[str, Any]
    seed: Annotated[int, at_least(0)]
    features: Annotated[int, at_least(1), at_most(MOST_FEATURES)]
    notes: list[str]


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter: its default, which says its type, what a search tries, and what is taken.

    A search tries a range (from, to) or choices in a list, and leaves others at their default.
    Numbers of 0 or more are taken, or those from the least to the most; of strings those that are
    tried, or these.
    """

    default: Any
    tried: tuple[float, float] | list[Any] = field(default_factory=list)
    log: bool = False
    step: int = 1
    taken: tuple[Any, ...] = ()

    def suggest(self, trial: Any, name: str) -> Any:
        """Ask an Optuna trial for a value."""
        if isinstance(self.tried, list):
            return trial.suggest_categorical(name, self.tried)
        if isinstance(self.default, int):
            return trial.suggest_int(name, *self.tried, step=self.step, log=self.log)
        return trial.suggest_float(name, *self.tried, log=self.log)

    def explain_refusal(self, value: Any) -> str:
        """Return what it takes, if not this value."""
        if isinstance(self.default, bool):
            return "" if isinstance(value, bool) else "true or false"
        if isinstance(self.default, str):
            known = self.taken or tuple(self.tried)
            return "" if isinstance(value, str) and value in known else " or ".join(known)
        least, most = self.taken or (0, math.inf)
        integer = isinstance(self.default, int)
        right = isinstance(value, int if integer else (int, float)) and not isinstance(value, bool)
        # integers too large for a float are too large for any parameter
        if right and abs(value) < LARGEST_PARAMETER and least <= value <= most:
            return ""
        reach = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        return f"{'an integer' if integer else 'a number'} {reach}"


class Model(ABC):
    """A model type with its hyperparameters; classifiers and regressors derive from it.

    A model type is one class: it sets the class variables and the methods `_fit`, `_predict` and
    `_is_valid`. What `_fit` returns is stored by `model_files`; a model type with
    another format has its own `_save` and `_load`. Fitting and predicting use one thread; `notes`
    has what libraries warned of in fitting.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    library: ClassVar[str] = "sklearn"
    stored_by: ClassVar[str] = "skops"
    install: ClassVar[str]  # the line that installs both
    parameters: ClassVar[Mapping[str, Parameter]]
    defaults: ClassVar[dict[str, Any]]  # of all of them
    _stored: ClassVar[Any] = StoredModel  # what its folder says of it

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if parameters := vars(cls).get("parameters"):
            cls.defaults = {name: one.default for name, one in parameters.items()}

    def __init__(self, params: Mapping[str, Any] | None = None, *, seed: int = 0) -> None:
        self.check()
        self.params: dict[str, Any] = {**self.defaults, **self._check_parameters(params or {})}
        self.seed = seed
        self.width = 0  # features
        self.notes: tuple[str, ...] = ()
        self.fitted: Any = None

    # --- what a model type says of itself ----------------------------------------------------

    @classmethod
    def check(cls) -> None:
        """Complain if a library that it is made with or stored by is not installed."""
        if missing := cls.list_missing_libraries():
            raise MissingExtra(f"Models of type {cls.name} need {missing[0]}: {cls.install}")

    @classmethod
    def list_missing_libraries(cls) -> list[str]:
        """Return which of the libraries that it is made with or stored by are not installed."""
        return [name for name in (cls.library, cls.stored_by) if not _is_installed(name)]

    @classmethod
    def space(cls, trial: Any) -> dict[str, Any]:
        """Ask an Optuna trial for every hyperparameter that is tried; return all."""
        tried = {name: one for name, one in cls.parameters.items() if one.tried}
        return cls.defaults | {name: one.suggest(trial, name) for name, one in tried.items()}

    @abstractmethod
    def _fit(self, *data: Any, **options: Any) -> Any:
        """Return what was fitted."""

    @abstractmethod
    def _predict(self, fitted: Any, rows: Any) -> NDArray[Any]:
        """Return what was fitted says of rows."""

    @abstractmethod
    def _is_valid(self, fitted: Any) -> bool:
        """Tell whether what was loaded is of this model type, and of `width` features."""

    def _save(self, fitted: Any, folder: Path) -> list[str]:
        return model_files.save_fitted(fitted, folder)

    def _load(self, folder: Path) -> Any:
        return model_files.load_fitted(folder)

    # --- what all can do ---------------------------------------------------------------------

    @abstractmethod
    def fit(self, *data: Any, **options: Any) -> Self:
        """Learn from training rows."""

    def predict(self, x: Any) -> Floats:
        """Return predictions: [N], or probabilities [N, size] of all levels of the scale."""
        if self.fitted is None:
            raise NotFitted("This model has learned nothing yet: call fit first.")
        self._check_width(x)
        if not np.shape(x)[0]:
            return np.empty((0, *self._output_shape))
        with collect_warnings(), limit_to_one_thread():
            return self._compute_outputs(self.fitted, x)

    def save(self, folder: Path) -> list[str]:
        """Write the model's files into a folder and return their names."""
        if self.fitted is None:
            raise NotFitted("This model has learned nothing yet, and cannot be saved.")
        safe_files.write_json(folder / FACTS_FILE, self.to_facts())
        return [FACTS_FILE, *self._save(self.fitted, folder)]

    def to_facts(self) -> dict[str, Any]:
        """Return what a folder says of the model in it."""
        return {
            "model_type": self.name,
            "params": self.params,
            "seed": self.seed,
            "features": self.width,
            "notes": list(self.notes),
        }

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the model of this type that is saved in a folder."""
        facts = read_json(folder / FACTS_FILE, cls._stored, advice=ADVICE)
        return cls.from_facts(facts).restore(folder)

    @classmethod
    def from_facts(cls, facts: Any, **options: Any) -> Self:
        """Return the model that a folder tells of; it has learned nothing yet."""
        model = cls(facts["params"], seed=facts["seed"], **options)
        if model.params != facts["params"]:
            raise BadOption(f"{cls.name} has the parameters {', '.join(model.params)}.")
        model.width, model.notes = facts["features"], tuple(facts["notes"])
        return model

    def restore(self, folder: Path) -> Self:
        """Take up what was fitted from a folder, if it is what this model type makes."""
        with collect_warnings() as notes, self._report_broken_library():
            fitted = self._load(folder)
        try:
            sound = self._is_valid(fitted) and self._can_predict(fitted)
        except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RuntimeError):
            sound = False  # it is something else
        if not sound:
            raise BadStore(
                f"{folder} does not hold a {self.name} model of {self._describe_size()}, as its "
                f"{FACTS_FILE} says. {ADVICE}"
            )
        self.fitted = fitted
        self.notes += tuple(notes)  # of a library that has another version now
        return self

    # --- parts -------------------------------------------------------------------------------

    _output_shape: tuple[int, ...] = ()  # of the outputs for one row

    @abstractmethod
    def _compute_outputs(self, fitted: Any, x: Any) -> Floats:
        """Return the predictions for rows of the right width."""

    def _describe_size(self) -> str:
        return f"{self.width:,} features"

    def _learn(self, *data: Any) -> Self:
        """Fit, and say in words what a library complains of: parameters, most of the time."""
        try:
            with collect_warnings() as notes, limit_to_one_thread(), self._report_broken_library():
                self.fitted = self._fit(*data)
        except OrdinateError:
            raise
        except (ValueError, ArithmeticError, RuntimeError, MemoryError) as problem:
            reason = replace_control_characters(str(problem)).strip() or type(problem).__name__
            raise BadOption(
                f"{self.name} cannot be fitted with {shorten(self.params)}: {reason}"
            ) from None
        self.notes = tuple(notes)
        return self

    def _can_predict(self, fitted: Any) -> bool:
        """Tell whether what was loaded can predict at all."""
        with collect_warnings(), limit_to_one_thread():
            found = self._compute_outputs(fitted, np.zeros((1, self.width)))
        return found.shape == (1, *self._output_shape) and bool(np.isfinite(found).all())

    def _check_width(self, x: Any) -> None:
        shape = np.shape(x)
        if len(shape) != 2 or shape[1] != self.width:
            raise BadInput(
                f"The model was fitted to {self.width:,} features, and these rows have "
                f"{shape[1] if len(shape) == 2 else 'none'}: their shape is {shape}. Make the "
                "features as those of the training data, in their order."
            )

    @contextmanager
    def _report_broken_library(self) -> Iterator[None]:
        """Say in words that a library is there, but broken."""
        try:
            yield
        except (ImportError, OSError) as problem:
            reason = replace_control_characters(str(problem)).strip()
            raise MissingExtra(
                f"{self.library} is installed, but cannot be loaded: {reason}. Install it again: "
                f"{self.install}"
            ) from None

    @classmethod
    def _check_parameters(cls, params: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, value in params.items():
            if name not in cls.defaults:
                raise BadOption(
                    f"{cls.name} has no parameter {name!r}. It has {', '.join(cls.defaults)}."
                    f"{suggest_names(name, list(cls.defaults))}"
                )
            if takes := cls.parameters[name].explain_refusal(value):
                raise BadOption(f"{name} of {cls.name} takes {takes}, not {shorten(value)}.")
        return params


M = TypeVar("M", bound=Model)


class ModelTypes(dict[str, type[M]]):
    """Model types by their names; a name that is not there is refused, with the nearest known."""

    def __init__(self, *model_types: type[M]) -> None:
        super().__init__({each.name: each for each in model_types})

    def __missing__(self, name: str) -> NoReturn:
        raise BadOption(
            f"There is no model {shorten(name)}. Known are {', '.join(self)}."
            f"{suggest_names(name, list(self))}"
        )

    def load(self, folder: Path) -> M:
        """Return the model saved in a folder; the caller has verified the manifest over it."""
        path = folder / FACTS_FILE
        facts = read_json(path, StoredModel, advice=ADVICE)
        try:
            return self[facts["model_type"]].load(folder)
        except BadOption as reason:
            raise BadStore(f"{path} does not say what the model is: {reason} {ADVICE}") from None


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect what libraries warn of as notes, each once.

    >>> with collect_warnings() as notes:
    ...     warnings.warn("not converged", stacklevel=1)
    >>> notes
    ['not converged']
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    found = (replace_control_characters(str(each.message)).strip() for each in caught)
    notes.extend(dict.fromkeys(found))


def _is_installed(library: str) -> bool:
    """Tell whether a library is there, without importing it."""
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # something stands in its way
        return False
