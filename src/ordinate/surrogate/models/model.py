"""What every model of a surrogate can do: learn, predict, be saved and loaded, and be searched."""

import json
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    BadInput,
    BadOption,
    BadStore,
    MissingExtra,
    NoItems,
    NotFitted,
    printable,
    suggest,
)
from ordinate.runs import files, saved

Floats = NDArray[np.float64]
Tick = Callable[[int, float], bool | None]  # step, validation RMSE (normalised); True: stop here

FACTS = "model.json"
EXTRA = "pip install 'ordinate[surrogate]'"


class Model(ABC):
    """A kind of model with its parameters. Features and targets come normalised.

    A kind sets the class variables and the methods `space`, `_fit` and `_predict`. What `_fit`
    returns is stored by `ordinate.runs.saved`; a kind with another format has its own `_save` and
    `_load`.

    After `fit`: `steps` is how many rounds or epochs the best state took (None where there are
    none), `stopped` tells that `tick` asked for an end, `curve` has (step, validation RMSE) and
    `notes` what libraries warned of.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    library: ClassVar[str] = "sklearn"
    defaults: ClassVar[Mapping[str, Any]]  # one point of the space, with every parameter
    iterative: ClassVar[bool] = False  # whether fit calls tick on the way

    def __init__(self, params: Mapping[str, Any] | None = None, *, seed: int = 0) -> None:
        self.check()
        self.params: dict[str, Any] = {**self.defaults, **self._known(params or {})}
        self.seed = seed
        self.width: int | None = None  # features
        self.steps: int | None = None
        self.stopped = False
        self.curve: list[tuple[int, float]] = []
        self.notes: tuple[str, ...] = ()
        self.fitted: Any = None

    # --- what a kind says of itself ----------------------------------------------------------

    @classmethod
    def check(cls) -> None:
        """Complain if the library that it is made with is not installed."""
        if find_spec(cls.library) is None:
            raise MissingExtra(f"Models of kind {cls.name} need {cls.library}: {EXTRA}")

    @classmethod
    @abstractmethod
    def space(cls, trial: Any) -> dict[str, Any]:
        """Ask an Optuna trial for every parameter, and return them."""

    @abstractmethod
    def _fit(
        self, x: Floats, y: Floats, validation: tuple[Floats, Floats] | None, tick: Tick
    ) -> Any:
        """Return what was fitted; `tick` is always callable, and True when it is time to stop."""

    @abstractmethod
    def _predict(self, fitted: Any, x: Floats) -> Floats:
        """Return predictions [N]."""

    def _save(self, fitted: Any, folder: Path) -> list[str]:
        return saved.save(fitted, folder)

    def _load(self, folder: Path) -> Any:
        return saved.load(folder)

    def _sound(self, _fitted: Any) -> bool:
        """Tell whether what was loaded is of this kind, and of `width` features."""
        return True

    # --- what all can do ---------------------------------------------------------------------

    def fit(
        self, x: Any, y: Any, x_val: Any = None, y_val: Any = None, *, tick: Tick | None = None
    ) -> Self:
        """Learn from training rows; validation rows are for early stopping only.

        Without validation rows a model runs its full number of steps.
        """
        x, y = _pair(x, y, "training")
        if not len(y):
            raise NoItems("There are no training rows to learn from.")
        validation = None
        if x_val is not None and y_val is not None and len(y_val):
            validation = _pair(x_val, y_val, "validation")
            _same_width(x.shape[1], validation[0])
        self.width, self.steps, self.stopped, self.curve = x.shape[1], None, False, []
        with _noted() as notes, one_thread():
            self.fitted = self._fit(x, y, validation, self._ticking(tick))
        self.notes = tuple(notes)
        return self

    def predict(self, x: Any) -> Floats:
        """Return predictions [N] on the normalised scale."""
        if self.fitted is None or self.width is None:
            raise NotFitted("This model has learned nothing yet: call fit first.")
        rows = np.ascontiguousarray(x, np.float64)
        _same_width(self.width, rows)
        if not len(rows):
            return np.empty(0)
        with _noted(), one_thread():
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
        files.write_json(folder / FACTS, facts)
        return [FACTS, *self._save(self.fitted, folder)]

    def restore(self, folder: Path, facts: Mapping[str, Any]) -> Self:
        """Take up what was fitted from a folder."""
        self.width, self.steps = facts["features"], facts["steps"]
        with _noted() as notes:  # of a library that has another version now
            fitted = self._load(folder)
        try:
            sound = self._sound(fitted)
        except (AttributeError, TypeError, ValueError, IndexError):  # it is something else
            sound = False
        if not sound:
            raise BadStore(
                f"{folder} does not hold a {self.name} model of {self.width:,} features, as its "
                f"{FACTS} says. Train again, or restore the folder."
            )
        self.fitted = fitted
        self.notes = (*facts["notes"], *notes)
        return self

    # --- parts -------------------------------------------------------------------------------

    def _known(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        for wanted in params:
            if wanted not in self.defaults:
                raise BadOption(
                    f"{self.name} has no parameter {wanted!r}. It has {', '.join(self.defaults)}."
                    f"{suggest(wanted, list(self.defaults))}"
                )
        return params

    def _ticking(self, tick: Tick | None) -> Tick:
        def ticked(step: int, value: float) -> bool:
            self.curve.append((step, value))
            self.stopped = self.stopped or bool(tick is not None and tick(step, value))
            return self.stopped

        return ticked


def facts_of(folder: Path) -> dict[str, Any]:
    """Return what a folder says of the model in it."""
    shape: dict[str, Any] = {"model": str, "params": dict, "seed": int, "features": int}
    shape |= {"steps": int | None, "notes": list}
    try:
        facts = json.loads((folder / FACTS).read_text("utf-8"))
        right = all(isinstance(facts[name], kind) for name, kind in shape.items())
        right = right and facts["features"] > 0
    except (OSError, ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise BadStore(
            f"{folder / FACTS} does not say what the model is. Train again, or restore the folder."
        )
    return facts


def rmse(y: Floats, predicted: Floats) -> float:
    """Return the root of the mean squared error."""
    return math.sqrt(float(np.mean(np.square(predicted - y))))


def _pair(x: Any, y: Any, what: str) -> tuple[Floats, Floats]:
    rows, targets = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    if rows.ndim != 2 or targets.shape != (len(rows),) or not rows.shape[1]:
        raise BadInput(
            f"The {what} rows are features [N, d] and targets [N]: not {rows.shape} and "
            f"{targets.shape}."
        )
    return rows, targets


def _same_width(width: int, rows: Floats) -> None:
    if rows.ndim != 2 or rows.shape[1] != width:
        raise BadInput(
            f"The model was fitted to {width:,} features, and these rows have the shape "
            f"{rows.shape}. Pass the columns of the training data, in their order."
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep sums in one order: threads would add in another, and change last digits."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

    with threadpool_limits(1):
        yield


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect warnings as notes, each once."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    found = (printable(str(each.message)).strip() for each in caught)
    notes.extend(dict.fromkeys(found))
