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

from ordinate.errors import BadOption, BadStore, brief
from ordinate.experiment.safe_files import digest
from ordinate.search.trials import (
    PARAMS,
    REASON,
    Direction,
    State,
    Trial,
    TrialFile,
    frozen,
    library,
    plain,
    quiet,
    thawed,
)

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

Space = Callable[["optuna.Trial"], dict[str, Any]]

BATCH = 4  # trials that are asked for together
STARTUP = 8  # finished trials before the sampler learns from them: two batches
EQUAL = 12  # significant digits to which values are compared, whatever their unit
JUDGED = 5  # complete trials before the pruner judges others by them


def rounded(value: float) -> float:
    """Return a value as it is compared: to so many significant digits.

    >>> rounded(0.1 + 0.2) == rounded(0.3), rounded(1e-17) == rounded(2e-17)
    (True, False)
    """
    return float(f"{value:.{EQUAL - 1}e}")


@dataclass(frozen=True)
class Asked:
    """A trial to be made."""

    number: int
    params: dict[str, Any]


@dataclass
class Batch:
    """Trials that are made together: none of them knows what another one finds."""

    asked: list[Asked]
    _memory: "optuna.Study"  # earlier batches, and this one without its results
    _file: TrialFile
    _open: "dict[int, optuna.Trial]"
    _finished: "dict[int, FrozenTrial]" = field(default_factory=dict)

    def report(self, number: int, step: int, value: float) -> bool:
        """Take a value on the way, and say whether to stop: earlier batches did better by then."""
        trial = self._live(number)
        if math.isnan(value):
            return False  # undefined so far
        with quiet():
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
        trial = self._live(number)
        if value is not None and math.isnan(value):
            failed = failed or "its value is undefined"
        kept = plain(attributes or {}, f"The attributes of trial {number}")
        if taken := kept.keys() & {PARAMS, REASON}:
            raise BadOption(f"{min(taken)!r} is no name for an attribute: Ordinate keeps its own.")
        asked = next(one for one in self.asked if one.number == number)
        kept[PARAMS] = asked.params
        state: State = "pruned" if value is None else "complete"
        if failed is not None:
            kept[REASON], value, state = failed, None, "failed"
        steps = self._memory.get_trials(deepcopy=False)[number].intermediate_values
        with quiet():
            self._finished[number] = frozen(trial, state, value, kept, steps)
        del self._open[number]

    def close(self) -> None:
        """Write what is finished, in order of number, each trial in one transaction.

        Nothing is written behind a trial that is not finished: it will be asked for again.
        """
        for number in sorted(self._finished):
            if number != len(self._file.trials):
                return
            self._file.add(self._finished.pop(number))

    def _live(self, number: int) -> "optuna.Trial":
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
        batch: int = BATCH,
        drawn_by: str | None = None,
    ) -> Self:
        """Open the study of this name, or begin it; the file may hold others.

        What is drawn depends on the seed and the name, or on `drawn_by` instead of the name.
        """
        if batch < 1:
            raise BadOption(f"A batch has one trial or more, not {batch}.")
        file = TrialFile(path, name, direction)
        file.declare({"seed": seed, "batch": batch})
        return cls(file, name, seed, batch, drawn_by)

    @property
    def trials(self) -> list[Trial]:
        """The finished trials, in order."""
        return [thawed(one) for one in self._file.trials]

    def best(self, total: int | None = None) -> Trial | None:
        """Return the best complete trial, of all or of the first ones; None without any.

        Values that differ by rounding alone are equal, and of equals the first is the best.
        """
        sign = 1.0 if self._file.direction == "maximize" else -1.0
        complete = [trial for trial in self.trials[:total] if trial.value is not None]
        return max(complete, key=lambda x: sign * rounded(x.value or 0.0), default=None)

    def batches(
        self, space: Space, total: int, *, defaults: Sequence[dict[str, Any]] = ()
    ) -> Iterator[Batch]:
        """Give the batches that are not finished yet, up to a total number of trials.

        The space suggests values to a trial and returns its parameters; the first trials take
        theirs from the defaults. A batch that is left unfinished is the last one.
        """
        for index in range(math.ceil(total / self.batch)):
            end = min((index + 1) * self.batch, total)
            if len(self._file.trials) >= end:
                continue
            yield self._batch(index, end, space, defaults)
            if len(self._file.trials) < end:
                return

    def _batch(
        self, index: int, end: int, space: Space, defaults: Sequence[dict[str, Any]]
    ) -> Batch:
        """Ask for a whole batch, whatever of it is wanted, so that each gets the same draws."""
        start = index * self.batch
        done = self._file.trials
        with quiet():
            memory = self._memory(index, done[:start])
            for params in defaults[start : start + self.batch]:
                memory.enqueue_trial(params)
            trials, asked = [], []
            for _ in range(self.batch):
                trials.append(memory.ask())
                asked.append(self._asked(trials[-1], space))
        for one, before in zip(asked, done[start:], strict=False):
            self._unchanged(one, thawed(before))
        wanted = [one for one in asked if len(done) <= one.number < end]
        live = {one.number: trials[one.number - start] for one in wanted}
        return Batch(wanted, memory, self._file, live)

    def _memory(self, index: int, earlier: "list[FrozenTrial]") -> "optuna.Study":
        optuna = library()
        seed = int(digest([self.seed, self.drawn_by, index], 8), 16)
        sampler = optuna.samplers.TPESampler(
            seed=seed,
            n_startup_trials=STARTUP,
            multivariate=True,
            group=True,  # spaces may branch
            constant_liar=True,  # so that the trials of a batch keep apart
        )
        pruner = optuna.pruners.MedianPruner(n_startup_trials=JUDGED)
        direction = self._file.direction
        memory = optuna.create_study(direction=direction, sampler=sampler, pruner=pruner)
        memory.add_trials(earlier)
        return memory

    def _asked(self, trial: "optuna.Trial", space: Space) -> Asked:
        try:
            params = space(trial)
            frozen(trial, "failed", None, {}, {})  # which refuses a default off the space
        except ValueError as problem:
            raise BadOption(
                f"Trial {trial.number} of the study {self.name} cannot be asked for: {problem}"
            ) from problem
        return Asked(trial.number, plain(params, f"The parameters of trial {trial.number}"))

    def _unchanged(self, asked: Asked, before: Trial) -> None:
        if asked.params != before.params:
            raise BadStore(
                f"Trial {asked.number} of the study {self.name} was made with "
                f"{brief(before.params)}, and would now be made with {brief(asked.params)}: the "
                "search space, the defaults or the version of Optuna changed since. Search anew "
                f"with another --seed, or remove {self._file.path}, in which finished trials are "
                "kept: all of them are made again."
            )
