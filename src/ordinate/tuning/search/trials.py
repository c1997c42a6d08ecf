"""Finished trials in an SQLite file: what Optuna keeps of them, and what Ordinate reads."""

import json
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args

from ordinate.errors import BadOption, BadOutput, BadStore, MissingExtra
from ordinate.render.atomic_files import replace_file

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
