"""Studies: searches by Optuna that give the same trials for any number of workers, and go on.

Trials are asked for in batches of a fixed size. A batch is asked of a study in memory that holds
the trials of earlier batches alone, with a seed of its own; the file gets finished trials only, in
order of number. So a run that is killed anywhere asks for its last batch again, finds the same
trials, and leaves out those that were written.
"""

import json
import math
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from ordinate.errors import BadOption, BadOutput, BadStore, MissingExtra, shorten
from ordinate.render.atomic_files import replace_file
from ordinate.tuning.experiment.safe_files import compute_digest

if TYPE_CHECKING:
    import optuna
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

Direction = Literal["maximize", "minimize"]
TrialState = Literal["complete", "pruned", "failed"]
TRIAL_STATES: tuple[TrialState, ...] = get_args(TrialState)
UNDAMAGED = {  # what a file of SQLite is when it can be neither read nor written
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM),
}
PARAMS, REASON = "params", "reason"  # stored with a trial, as its attributes are


@dataclass(frozen=True)
class Trial:
    """A finished trial: what was tried, what came out, and the values on the way."""

    number: int
    state: TrialState
    value: float | None
    params: dict[str, Any]  # as the space returned them
    steps: dict[int, float]
    attributes: dict[str, Any]
    reason: str | None = None  # of a failure


class TrialFile:
    """One study of an SQLite file, which Optuna reads and writes."""

    def __init__(self, path: Path, name: str, direction: Direction) -> None:
        self.path = path
        self.direction = direction
        optuna = import_optuna()
        with self._report_storage_errors():
            if not path.exists():
                with replace_file(path) as temporary:
                    _open_storage(temporary)  # makes the tables
            self._study = optuna.create_study(
                storage=_open_storage(path),
                study_name=name,
                direction=direction,
                load_if_exists=True,
            )

    @property
    def trials(self) -> "list[FrozenTrial]":
        """All trials, in order of number."""
        with self._report_storage_errors():
            return self._study.get_trials(deepcopy=False)

    def add(self, trial: "FrozenTrial") -> None:
        """Write a finished trial, in one transaction; its number is how many there were."""
        with self._report_storage_errors():
            self._study.add_trial(trial)

    def declare_settings(self, settings: dict[str, int]) -> None:
        """Store the settings of the study; refuse one that was begun otherwise, or by others."""
        with self._report_storage_errors():
            study, trials = self._study, self.trials
            if not trials and not study.user_attrs:
                study.set_user_attr("ordinate", settings)
            begun, aim = study.user_attrs.get("ordinate"), study.direction.name.lower()
        what = f"The study {study.study_name} in {self.path}"
        if begun is None:
            raise BadStore(f"{what} was not begun by Ordinate. Take another name.")
        if (begun, aim) != (settings, self.direction):
            raise BadStore(
                f"{what} was begun to {aim} with {begun}, not to {self.direction} with {settings}. "
                "Take another name."
            )
        if not all(trial.state.is_finished() for trial in trials):
            raise BadStore(
                f"{what} has trials that are not finished, which Ordinate never writes: another "
                "program uses the file. Give it a copy."
            )

    @contextmanager
    def _report_storage_errors(self) -> Iterator[None]:
        from optuna.exceptions import OptunaError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with silence_optuna():
                yield
        except (OptunaError, SQLAlchemyError, RuntimeError) as problem:
            cause = problem.__cause__ or problem
            reason = str(cause).splitlines()[0]
            # Of the code, the lower byte says what is wrong, and the rest where.
            code = getattr(getattr(cause, "orig", cause), "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code & 0xFF in UNDAMAGED:
                raise BadOutput(
                    f"{self.path} cannot be written: {reason}. It is not damaged: the same command "
                    "goes on once it can."
                ) from problem
            raise BadStore(
                f"{self.path} cannot be used for studies: {reason.rstrip('.')}. If it is damaged, "
                "move it away, and the search begins anew."
            ) from problem


# --- what Optuna keeps, and what Ordinate makes of it --------------------------------------------


def freeze_trial(
    trial: "optuna.Trial",
    state: TrialState,
    value: float | None,
    attributes: dict[str, Any],
    steps: dict[int, float],
) -> "FrozenTrial":
    """Return a trial that was asked for as Optuna keeps it when it is finished."""
    optuna = import_optuna()
    states = optuna.trial.TrialState
    names = {"complete": states.COMPLETE, "pruned": states.PRUNED, "failed": states.FAIL}
    return optuna.trial.create_trial(
        state=names[state],
        value=value,
        params=dict(sorted(trial.params.items())),  # in one order, read from a file or not
        distributions=dict(sorted(trial.distributions.items())),
        user_attrs=attributes,
        intermediate_values=dict(steps),
    )


def thaw_trial(stored: "FrozenTrial") -> Trial:
    """Return a trial that Optuna stored as Ordinate shows it."""
    states: dict[str, TrialState] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    attributes = dict(sorted(stored.user_attrs.items()))  # some versions keep them in no order
    params = attributes.pop(PARAMS, stored.params)
    reason = attributes.pop(REASON, None)
    state = states[stored.state.name]
    value = stored.value if state == "complete" else None
    steps = dict(sorted(stored.intermediate_values.items()))
    return Trial(stored.number, state, value, dict(params), steps, attributes, reason)


def convert_to_json_values(values: dict[str, Any], title: str) -> dict[str, Any]:
    """Return values as they will be read from the file again."""
    try:
        text = json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise BadOption(f"{title} cannot be kept as JSON: {problem}.") from None
    return dict(json.loads(text))


# --- Optuna itself -------------------------------------------------------------------------------


def import_optuna() -> ModuleType:
    """Return Optuna, or say how to install it."""
    try:
        import optuna
    except ImportError:
        raise MissingExtra("Searching needs Optuna: pip install 'ordinate[tune]'") from None
    return optuna


def _open_storage(path: Path) -> "RDBStorage":
    """Open a file by its path, for in a URL some characters would mean something else."""
    from sqlalchemy.pool import NullPool

    # No connection stays open: processes may be forked between two writes.
    engine = {"creator": lambda: sqlite3.connect(path), "poolclass": NullPool}
    return import_optuna().storages.RDBStorage("sqlite://", engine_kwargs=engine)


@contextmanager
def silence_optuna() -> Iterator[None]:
    """Keep Optuna's log lines and warnings from the user, and leave its settings as they were."""
    logging = import_optuna().logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)


# --- studies -------------------------------------------------------------------------------------

SearchSpace = Callable[["optuna.Trial"], dict[str, Any]]

BATCH_SIZE = 4  # trials that are asked for together
STARTUP_TRIALS = 8  # finished trials before the sampler learns from them: two batches
SIGNIFICANT_DIGITS = 12  # significant digits to which values are compared, whatever their unit
PRUNER_STARTUP_TRIALS = 5  # complete trials before the pruner compares others with them


def round_to_significant(value: float) -> float:
    """Return a value as it is compared: to so many significant digits.

    >>> round_to_significant(0.1 + 0.2) == round_to_significant(0.3)
    True
    >>> round_to_significant(1e-17) == round_to_significant(2e-17)
    False
    """
    return float(f"{value:.{SIGNIFICANT_DIGITS - 1}e}")


@dataclass(frozen=True)
class PendingTrial:
    """A trial to run."""

    number: int
    params: dict[str, Any]


@dataclass
class TrialBatch:
    """Trials that run together: none of them knows the result of another."""

    pending: list[PendingTrial]
    _memory: "optuna.Study"  # earlier batches, and this one without its results
    _file: TrialFile
    _open: "dict[int, optuna.Trial]"
    _finished: "dict[int, FrozenTrial]" = field(default_factory=dict)

    def report(self, number: int, step: int, value: float) -> bool:
        """Take a value on the way, and say whether to stop: earlier batches did better by then."""
        trial = self._get_open_trial(number)
        if math.isnan(value):
            return False  # undefined so far
        with silence_optuna():
            trial.report(value, step)
            return trial.should_prune()

    def finish(
        self,
        number: int,
        value: float | None,
        *,
        attributes: dict[str, Any] | None = None,
        failed: str | None = None,
    ) -> None:
        """Take what came out: a value, None for a trial that was stopped, or why it failed."""
        trial = self._get_open_trial(number)
        if value is not None and math.isnan(value):
            failed = failed or "its value is undefined"
        stored = convert_to_json_values(attributes or {}, f"The attributes of trial {number}")
        if reserved := stored.keys() & {PARAMS, REASON}:
            raise BadOption(
                f"{min(reserved)!r} is no name for an attribute: Ordinate keeps its own."
            )
        stored[PARAMS] = next(x.params for x in self.pending if x.number == number)
        state: TrialState = "pruned" if value is None else "complete"
        if failed is not None:
            stored[REASON], value, state = failed, None, "failed"
        steps = self._memory.get_trials(deepcopy=False)[number].intermediate_values
        with silence_optuna():
            self._finished[number] = freeze_trial(trial, state, value, stored, steps)
        del self._open[number]

    def close(self) -> None:
        """Write what is finished, in order of number, each trial in one transaction.

        Nothing is written behind a trial that is not finished: it will be asked for again.
        """
        for number in sorted(self._finished):
            if number != len(self._file.trials):
                return
            self._file.add(self._finished.pop(number))

    def _get_open_trial(self, number: int) -> "optuna.Trial":
        if number not in self._open:
            there = ", ".join(map(str, self._open)) or "none"
            raise BadOption(f"Trial {number} is not open in this batch; open are: {there}.")
        return self._open[number]


class Study:
    """A search in an SQLite file that Optuna's own tools can read.

    One process writes at a time: hold the lock of the folder.
    """

    def __init__(
        self, file: TrialFile, name: str, seed: int, batch: int, drawn_by: str | None = None
    ) -> None:
        self.name = name
        self.drawn_by = name if drawn_by is None else drawn_by
        self.seed = seed
        self.batch = batch
        self._file = file

    @classmethod
    def open(
        cls,
        path: Path,
        name: str,
        *,
        direction: Direction,
        seed: int,
        batch: int = BATCH_SIZE,
        drawn_by: str | None = None,
    ) -> Self:
        """Open the study of this name, or begin it; the file may hold others.

        What is drawn depends on the seed and the name, or on `drawn_by` instead of the name.
        """
        if batch < 1:
            raise BadOption(f"A batch has one trial or more, not {batch}.")
        file = TrialFile(path, name, direction)
        file.declare_settings({"seed": seed, "batch": batch})
        return cls(file, name, seed, batch, drawn_by)

    @property
    def trials(self) -> list[Trial]:
        """The finished trials, in order."""
        return [thaw_trial(one) for one in self._file.trials]

    def best(self, total: int | None = None) -> Trial | None:
        """Return the best complete trial, of all or of the first ones; None without any.

        Values that differ by rounding alone are equal, and of equals the first is the best.
        """
        sign = 1.0 if self._file.direction == "maximize" else -1.0
        complete = [trial for trial in self.trials[:total] if trial.value is not None]
        return max(
            complete, key=lambda x: sign * round_to_significant(x.value or 0.0), default=None
        )

    def iterate_batches(
        self, space: SearchSpace, total: int, *, defaults: Sequence[dict[str, Any]] = ()
    ) -> Iterator[TrialBatch]:
        """Give the batches that are not finished yet, up to a total number of trials.

        The space suggests values to a trial and returns its parameters; the first trials take
        theirs from the defaults. A batch that is left unfinished is the last one.
        """
        for index in range(math.ceil(total / self.batch)):
            end = min((index + 1) * self.batch, total)
            if len(self._file.trials) >= end:
                continue
            yield self._ask_batch(index, end, space, defaults)
            if len(self._file.trials) < end:
                return

    def _ask_batch(
        self, index: int, end: int, space: SearchSpace, defaults: Sequence[dict[str, Any]]
    ) -> TrialBatch:
        """Ask for a complete batch, whatever of it is pending, so that draws are the same."""
        start = index * self.batch
        done = self._file.trials
        with silence_optuna():
            memory = self._create_memory(index, done[:start])
            for params in defaults[start : start + self.batch]:
                memory.enqueue_trial(params)
            trials, batch = [], []
            for _ in range(self.batch):
                trials.append(memory.ask())
                batch.append(self._ask(trials[-1], space))
        for trial, before in zip(batch, done[start:], strict=False):
            self._check_unchanged(trial, thaw_trial(before))
        pending = [trial for trial in batch if len(done) <= trial.number < end]
        open_trials = {trial.number: trials[trial.number - start] for trial in pending}
        return TrialBatch(pending, memory, self._file, open_trials)

    def _create_memory(self, index: int, earlier: "list[FrozenTrial]") -> "optuna.Study":
        optuna = import_optuna()
        seed = int(compute_digest([self.seed, self.drawn_by, index], 8), 16)
        sampler = optuna.samplers.TPESampler(
            seed=seed,
            n_startup_trials=STARTUP_TRIALS,
            multivariate=True,
            group=True,  # spaces may branch
            constant_liar=True,  # so that the trials of a batch keep apart
        )
        pruner = optuna.pruners.MedianPruner(n_startup_trials=PRUNER_STARTUP_TRIALS)
        direction = self._file.direction
        memory = optuna.create_study(direction=direction, sampler=sampler, pruner=pruner)
        memory.add_trials(earlier)
        return memory

    def _ask(self, trial: "optuna.Trial", space: SearchSpace) -> PendingTrial:
        try:
            params = space(trial)
            freeze_trial(trial, "failed", None, {}, {})  # which refuses a default off the space
        except ValueError as problem:
            raise BadOption(
                f"Trial {trial.number} of the study {self.name} cannot be asked for: {problem}"
            ) from problem
        return PendingTrial(
            trial.number, convert_to_json_values(params, f"The parameters of trial {trial.number}")
        )

    def _check_unchanged(self, pending: PendingTrial, before: Trial) -> None:
        if pending.params != before.params:
            raise BadStore(
                f"Trial {pending.number} of the study {self.name} was made with "
                f"{shorten(before.params)}, and would now be made with {shorten(pending.params)}: "
                "the search space, the defaults or the version of Optuna changed since. Search "
                f"anew with another --seed, or remove {self._file.path}, in which finished trials "
                "are kept: all of them are made again."
            )
