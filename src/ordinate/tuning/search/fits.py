"""One fit: what a worker is given, what it returns, and what is cached of it between runs."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore, OrdinateError
from ordinate.render.atomic_files import replace_file
from ordinate.tuning.experiment.safe_files import compute_digest, write_json
from ordinate.tuning.experiment.stored_json import read_json

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Curve = list[tuple[int, float]]  # steps, and the value by which a fit stops early

CHECKPOINT_SECONDS = 1.0  # what takes less is fitted again sooner than stored


class OutOfTime(OrdinateError):
    """The time for a search was over before a fit was done."""


@dataclass(frozen=True, eq=False)
class FitOutputs:
    """What a fitted model says of the rows that it was asked for, and what is known of the fit.

    `predictions` are [N] or [N, K]; `spread` [N] is how far the members of a model that is an
    ensemble lie apart. `facts` are plain values that the saved model needs.
    """

    predictions: Floats
    spread: Floats | None = None
    notes: tuple[str, ...] = ()
    curve: Curve = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def join(cls, folds: Sequence["FitOutputs"], order: Sequence[Rows]) -> Self:
        """Return the outputs of all folds as one, each at its place among the rows."""
        spreads = [one.spread for one in folds if one.spread is not None]
        spread = join_folds(spreads, order) if len(spreads) == len(folds) else None
        return cls(join_folds([one.predictions for one in folds], order), spread)

    def save(self, path: Path) -> None:
        """Write the outputs to a file, whole or not at all."""
        about = json.dumps({"notes": self.notes, "curve": self.curve, "facts": self.facts})
        none = np.empty(0)
        with replace_file(path) as temporary:
            np.savez(
                temporary,
                predictions=self.predictions,
                spread=none if self.spread is None else self.spread,
                about=np.frombuffer(about.encode(), np.uint8),
            )

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Read outputs from a file; None where it holds none, or none that are finite."""
        try:
            # NumPy itself leaves a damaged file open.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                predictions, spread = stored["predictions"], stored["spread"]
                about = json.loads(stored["about"].tobytes())
            found = cls(
                predictions,
                spread if len(spread) else None,
                tuple(about["notes"]),
                [(step, value) for step, value in about["curve"]],
                about["facts"],
            )
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            return None
        columns = [found.predictions] + ([] if found.spread is None else [found.spread])
        sound = all(x.dtype == np.float64 and np.isfinite(x).all() for x in columns)
        return found if sound and len({len(x) for x in columns}) == 1 else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit(ABC):
    """A model to be fitted on some rows, and asked for others.

    With a `folder` the fitted model is saved in it. `checkpoint` is a path without suffix, where
    what would be lost with a killed run is kept. No fit begins after `end`, by the clock that all
    processes share.
    """

    folder: str | None = None
    checkpoint: str | None = None
    end: float | None = None

    @abstractmethod
    def run(self, kept: Mapping[str, Any]) -> FitOutputs:
        """Fit and predict; `kept` is what the workers were sent."""

    def check_time(self) -> None:
        """Refuse to go on when the time is over."""
        if self.end is not None and time.monotonic() >= self.end:
            raise OutOfTime("There was no time left for this fit.")


def run_fit(kept: Mapping[str, Any], fit: Fit) -> FitOutputs:
    """Run a fit in a worker; one that an earlier run finished is taken from its checkpoint."""
    path = _locate_outputs(fit)
    if path is not None and (stored := FitOutputs.load(path)) is not None:
        return stored
    fit.check_time()
    started = time.monotonic()
    outputs = fit.run(kept)
    if path is not None and time.monotonic() - started >= CHECKPOINT_SECONDS:
        outputs.save(path)
    return outputs


def take_outputs(made: Sequence[FitOutputs | OrdinateError]) -> list[FitOutputs]:
    """Return the outputs of fits; of several errors, raise the first."""
    outputs = [one for one in made if isinstance(one, FitOutputs)]
    if len(outputs) < len(made):
        raise next(one for one in made if isinstance(one, OrdinateError))
    return outputs


def remove_checkpoints(fits: Iterable[Fit]) -> None:
    """Remove the checkpoints of fits whose outputs are stored elsewhere."""
    for fit in fits:
        if fit.checkpoint is not None:
            for path in Path(fit.checkpoint).parent.glob(f"{Path(fit.checkpoint).name}.*"):
                path.unlink(missing_ok=True)


def _locate_outputs(fit: Fit) -> Path | None:
    """Return where the outputs of a fit are kept; those of a last fit stand in its folder."""
    return None if fit.checkpoint is None or fit.folder else Path(f"{fit.checkpoint}.npz")


def join_folds(values: Sequence[NDArray[Any]], folds: Sequence[Rows]) -> NDArray[Any]:
    """Return the values of all folds as one array, in the order of the rows.

    >>> join_folds([np.array([1.0, 3.0]), np.array([2.0])], [np.array([0, 2]), np.array([1])])
    array([1., 2., 3.])
    """
    joined = np.empty((sum(map(len, folds)), *values[0].shape[1:]), values[0].dtype)
    for of_fold, fold in zip(values, folds, strict=True):
        joined[fold] = of_fold
    return joined


# --- records -------------------------------------------------------------------------------------

Record = dict[str, Any]  # plain values
DIGEST_KEY = "digest"  # of the other entries of a record, and of the name of its file


def load_or_compute(
    path: Path, is_usable: Callable[[Record], bool], compute: Callable[[], Record]
) -> Record:
    """Return the record of a file, computed and cached if need be.

    A file that is no such record, or not as it was written, is computed again. A record that is
    not `final` is not cached.
    """
    record = _load_record(path)
    if record is None or not is_usable(record):
        record = compute()
        if record.pop("final", True):
            write_json(path, record | {DIGEST_KEY: _hash_record(path, record)})
    return record


def _load_record(path: Path) -> Record | None:
    try:
        record = read_json(path, Record)
    except BadStore:
        return None
    return record if record.pop(DIGEST_KEY, None) == _hash_record(path, record) else None


def _hash_record(path: Path, record: Record) -> str:
    return compute_digest({"name": path.name, "record": record}, length=64)
