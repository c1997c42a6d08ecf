"""Studies: searches by Optuna that give the same trials for any number of workers, and go on.

Trials are asked for in batches of a fixed size. A batch is asked of a study in memory that holds
the trials of earlier batches alone, with a seed of its own; the file gets finished trials only, in
order of number. So a run that is killed anywhere asks for its last batch again, finds the same
trials, and leaves out those that were written.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ordinate.errors import BadOption, BadStore, shorten
from ordinate.tuning.experiment.safe_files import compute_digest
from ordinate.tuning.search.trials import (
    PARAMS,
    REASON,
    Direction,
    Trial,
    TrialFile,
    TrialState,
    convert_to_json_values,
    freeze_trial,
    import_optuna,
    silence_optuna,
    thaw_trial,
)

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

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
