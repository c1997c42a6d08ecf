"""What every model of a surrogate can do: learn, predict, be saved and loaded, and be searched."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    BadInput,
    BadOption,
    BadStore,
    MissingExtra,
    NoItems,
    NotFitted,
    OrdinateError,
    replace_control_characters,
    shorten,
    suggest_names,
)
from ordinate.experiment import safe_files
from ordinate.experiment.library_warnings import collect_warnings
from ordinate.experiment.stored_json import at_least, at_most, read_json
from ordinate.experiment.workers import limit_to_one_thread
from ordinate.models import model_files

Floats = NDArray[np.float64]
LARGEST_PARAMETER = 1e300  # beyond which no parameter makes sense
StepCallback = Callable[
    [int, float], bool | None
]  # step, validation RMSE (normalised); True: stop here

FACTS_FILE = "model.json"
MOST_FEATURES = 1_000_000  # features
INSTALL_EXTRA = "pip install 'ordinate[surrogate]'"


class Regressor(ABC):
    """A model type with its parameters. Features and targets come normalised.

    A model type sets the class variables and the methods `space`, `_fit` and `_predict`. What
    `_fit` returns is stored by `ordinate.models.model_files`; a model type with another format has
    its own `_save` and `_load`.

    After `fit`: `steps` is how many rounds or epochs the best state took (None where there are
    none), `stopped` tells that `progress` asked for an end, `curve` has (step, validation RMSE) and
    `notes` what libraries warned of.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    library: ClassVar[str] = "sklearn"
    stored_by: ClassVar[str] = "skops"
    defaults: ClassVar[Mapping[str, Any]]  # one point of the space, with every parameter
    # The least and the most of numbers, which otherwise are 0 or more; the known strings of others.
    bounds: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    iterative: ClassVar[bool] = False  # whether fit calls progress callback on the way
    resumable: ClassVar[bool] = False  # whether fit keeps checkpoints, and goes on from them

    def __init__(self, params: Mapping[str, Any] | None = None, *, seed: int = 0) -> None:
        self.check()
        self.params: dict[str, Any] = {**self.defaults, **self._check_parameters(params or {})}
        self.seed = seed
        self.width: int | None = None  # features
        self.steps: int | None = None
        self.stopped = False
        self.curve: list[tuple[int, float]] = []
        self.notes: tuple[str, ...] = ()
        self.checkpoint: Path | None = None
        self.fitted: Any = None

    # --- what a model type says of itself ----------------------------------------------------

    @classmethod
    def check(cls) -> None:
        """Complain if a library that it is made with or stored by is not installed."""
        for library in (cls.library, cls.stored_by):
            if not is_installed(library):
                raise MissingExtra(f"Models of type {cls.name} need {library}: {INSTALL_EXTRA}")

    @classmethod
    @abstractmethod
    def space(cls, trial: Any) -> dict[str, Any]:
        """Ask an Optuna trial for every parameter, and return them."""

    @abstractmethod
    def _fit(
        self, x: Floats, y: Floats, validation: tuple[Floats, Floats] | None, progress: StepCallback
    ) -> Any:
        """Return what was fitted; `progress` is always callable, and True when it is to stop."""

    @abstractmethod
    def _predict(self, fitted: Any, x: Floats) -> Floats:
        """Return predictions [N]."""

    def _save(self, fitted: Any, folder: Path) -> list[str]:
        return model_files.save_fitted(fitted, folder)

    def _load(self, folder: Path) -> Any:
        return model_files.load_fitted(folder)

    def _is_valid(self, _fitted: Any) -> bool:
        """Tell whether what was loaded is of this model type, and of `width` features."""
        return True

    # --- what all can do ---------------------------------------------------------------------

    def fit(
        self,
        x: Any,
        y: Any,
        x_val: Any = None,
        y_val: Any = None,
        *,
        progress: StepCallback | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Learn from training rows; validation rows are for early stopping only.

        Without validation rows a model runs its full number of steps. A model type that is
        resumable keeps its state in the file `checkpoint`, and goes on from it.
        """
        x, y = _check_pair(x, y, "training")
        if not len(y):
            raise NoItems("There are no training rows to learn from.")
        validation = None
        if x_val is not None and y_val is not None and len(y_val):
            validation = _check_pair(x_val, y_val, "validation")
            _check_width(x.shape[1], validation[0])
        self.width, self.steps, self.stopped, self.curve = x.shape[1], None, False, []
        self.checkpoint = checkpoint
        with collect_warnings() as notes, limit_to_one_thread():
            self.fitted = self._fitted(x, y, validation, self._wrap_progress(progress))
        self.notes = tuple(notes)
        return self

    def _fitted(
        self, x: Floats, y: Floats, validation: tuple[Floats, Floats] | None, progress: StepCallback
    ) -> Any:
        """Fit, and say in words what a library complains of: parameters, most of the time."""
        try:
            with self._report_broken_library():
                return self._fit(x, y, validation, progress)
        except OrdinateError:
            raise
        except (ValueError, ArithmeticError, RuntimeError, MemoryError) as problem:
            reason = replace_control_characters(str(problem)).strip() or type(problem).__name__
            raise BadOption(
                f"{self.name} cannot be fitted with {shorten(self.params)}: {reason}"
            ) from None

    def predict(self, x: Any) -> Floats:
        """Return predictions [N] on the normalised scale."""
        if self.fitted is None or self.width is None:
            raise NotFitted("This model has learned nothing yet: call fit first.")
        rows = np.ascontiguousarray(x, np.float64)
        _check_width(self.width, rows)
        if not len(rows):
            return np.empty(0)
        with collect_warnings(), limit_to_one_thread():
            return np.asarray(self._predict(self.fitted, rows), np.float64).reshape(len(rows))

    def save(self, folder: Path) -> list[str]:
        """Write the model's files into a folder and return their names."""
        if self.fitted is None:
            raise NotFitted("This model has learned nothing yet, and cannot be saved.")
        facts = {
            "model": self.name,
            "params": self.params,
            "seed": self.seed,
            "features": self.width,
            "steps": self.steps,
            "notes": list(self.notes),
        }
        safe_files.write_json(folder / FACTS_FILE, facts)
        return [FACTS_FILE, *self._save(self.fitted, folder)]

    def restore(self, folder: Path, facts: "RegressorFacts") -> Self:
        """Take up what was fitted from a folder."""
        self.width, self.steps = facts["features"], facts["steps"]
        with (
            collect_warnings() as notes,
            self._report_broken_library(),
        ):  # of a library that has another version now
            fitted = self._load(folder)
        try:
            sound = self._is_valid(fitted) and self._can_predict(fitted)
        except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RuntimeError):
            # it is something else
            sound = False
        if not sound:
            raise BadStore(
                f"{folder} does not hold a {self.name} model of {self.width:,} features, as its "
                f"{FACTS_FILE} says. Train again, or restore the folder."
            )
        self.fitted = fitted
        self.notes = (*facts["notes"], *notes)
        return self

    # --- parts -------------------------------------------------------------------------------

    @contextmanager
    def _report_broken_library(self) -> Iterator[None]:
        """Say in words that a library is there, but broken."""
        try:
            yield
        except (ImportError, OSError) as problem:
            reason = replace_control_characters(str(problem)).strip()
            raise MissingExtra(
                f"{self.library} is installed, but cannot be loaded: {reason}. Install it again: "
                f"{INSTALL_EXTRA}"
            ) from None

    def _can_predict(self, fitted: Any) -> bool:
        """Tell whether what was loaded can predict at all."""
        with collect_warnings(), limit_to_one_thread():
            found = np.asarray(self._predict(fitted, np.zeros((1, self.width or 0))), np.float64)
        return found.shape == (1,) and bool(np.isfinite(found).all())

    def _check_parameters(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, value in params.items():
            if name not in self.defaults:
                raise BadOption(
                    f"{self.name} has no parameter {name!r}. It has {', '.join(self.defaults)}."
                    f"{suggest_names(name, list(self.defaults))}"
                )
            if takes := _explain_refusal(value, self.defaults[name], self.bounds.get(name)):
                raise BadOption(f"{name} of {self.name} takes {takes}, not {shorten(value)}.")
        return params

    def _wrap_progress(self, progress: StepCallback | None) -> StepCallback:
        def ticked(step: int, value: float) -> bool:
            self.curve.append((step, value))
            self.stopped = self.stopped or bool(progress is not None and progress(step, value))
            return self.stopped

        return ticked


def is_installed(library: str) -> bool:
    """Tell whether a library is there, without importing it."""
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # something stands in its way
        return False


def _explain_refusal(value: Any, usual: Any, bounds: tuple[Any, ...] | None) -> str:
    """Return what a parameter takes, if not this value; its default says which type that is."""
    if isinstance(usual, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(usual, str):
        known = bounds or (usual,)
        return "" if isinstance(value, str) and value in known else " or ".join(known)
    least, most = bounds or (0, math.inf)
    integer = isinstance(usual, int)
    right = isinstance(value, int if integer else (int, float)) and not isinstance(value, bool)
    # integers too large for a float are too large for any parameter
    if right and abs(value) < LARGEST_PARAMETER and least <= value <= most:
        return ""
    reach = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
    return f"{'an integer' if integer else 'a number'} {reach}"


class RegressorFacts(TypedDict):
    """What a folder says of the model in it."""

    model: str
    params: dict[str, Any]
    seed: Annotated[int, at_least(0)]
    features: Annotated[int, at_least(1), at_most(MOST_FEATURES)]
    steps: int | None
    notes: list[str]


def read_facts(folder: Path) -> RegressorFacts:
    """Return what a folder says of the model in it."""
    return read_json(
        folder / FACTS_FILE, RegressorFacts, advice="Train again, or restore the folder."
    )


def rmse(y: Floats, predicted: Floats) -> float:
    """Return the root of the mean squared error."""
    return math.sqrt(float(np.mean(np.square(predicted - y))))


def _check_pair(x: Any, y: Any, what: str) -> tuple[Floats, Floats]:
    rows, targets = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    if rows.ndim != 2 or targets.shape != (len(rows),) or not rows.shape[1]:
        raise BadInput(
            f"The {what} rows are features [N, d] and targets [N]: not {rows.shape} and "
            f"{targets.shape}."
        )
    return rows, targets


def _check_width(width: int, rows: Floats) -> None:
    if rows.ndim != 2 or rows.shape[1] != width:
        raise BadInput(
            f"The model was fitted to {width:,} features, and these rows have the shape "
            f"{rows.shape}. Pass the columns of the training data, in their order."
        )
