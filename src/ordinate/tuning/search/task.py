"""What a search is handed: a task, which says how rows are split, models fitted and evaluated.

The modules of this package carry what all tasks share: studies, pruning, finalists, ensembles,
nested estimates, checkpoints, the timeout, saved models, tests and results. A task is one class,
and need say no more than what is abstract: the rest is for tasks that do more.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ordinate.errors import OrdinateError
from ordinate.render.reserved_paths import CHECKPOINTS, RESULTS
from ordinate.tuning.experiment.safe_files import compute_digest, resolve_inside
from ordinate.tuning.experiment.workers import Listener, WorkerPool
from ordinate.tuning.search.fits import (
    Fit,
    FitOutputs,
    OutOfTime,
    Rows,
    join_folds,
    run_fit,
    take_outputs,
)
from ordinate.tuning.search.settings import SearchSettings
from ordinate.tuning.search.studies import Direction, SearchSpace, round_to_significant
from ordinate.tuning.search.time_budget import TimeBudget
from ordinate.tuning.search.tuning_result import Finalist, HeldOutResult, TaskReport

DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # of libraries that are installed by another name
# Takes the stage, the share of it that is done, and a note.
ProgressCallback = Callable[[str, float, str], None]


def ignore_progress(stage: str, share: float, note: str) -> None:
    """Say nothing."""
    del stage, share, note


class StudyKey(NamedTuple):
    """What a study searches: one input (a feature set, or the table) with one model type."""

    input: str
    model_type: str

    def __str__(self) -> str:
        return f"{self.input}/{self.model_type}" if self.input else self.model_type


class Candidate(NamedTuple):
    """A model that may be selected: an input, a model type, and its hyperparameters."""

    input: str
    model_type: str
    params: dict[str, Any]

    @property
    def study(self) -> StudyKey:
        """The study that it comes from."""
        return StudyKey(self.input, self.model_type)


class Score(NamedTuple):
    """The objective of a trial, and what is stored with it."""

    objective: float
    attributes: dict[str, Any]


class ScoredOutputs(NamedTuple):
    """The best trial of a study that this run has made itself, with its out-of-fold outputs."""

    merit: float
    params: dict[str, Any]
    outputs: FitOutputs


@dataclass(frozen=True, eq=False)
class EvaluatedCandidate:
    """A candidate with its out-of-fold outputs, and their evaluation."""

    candidate: Candidate
    outputs: FitOutputs
    value: float
    evaluation: Any
    notes: tuple[str, ...] = ()

    @property
    def members(self) -> "tuple[EvaluatedCandidate, ...]":
        """Itself: an ensemble has several."""
        return (self,)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that it needs."""
        return (self.candidate.input,)

    @property
    def title(self) -> str:
        """What people call it."""
        return str(self.candidate.study)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Several candidates combined: a vote, a blend. `rule` is what the task combines them by."""

    name: str
    members: tuple[EvaluatedCandidate, ...]
    rule: Any
    outputs: FitOutputs
    value: float
    evaluation: Any
    weights: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that the members need."""
        return tuple(dict.fromkeys(one.candidate.input for one in self.members))

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.name} of {' and '.join(one.title for one in self.members)}"


Selected = EvaluatedCandidate | Ensemble


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ABC):
    """The data of a search, or a subset of its rows, and all that differs from task to task.

    `subset` names the rows, in caches and in progress. Predictions are whatever a task makes of
    outputs: numbers as they are, or say levels by decision rule.
    """

    name: ClassVar[str]
    screening_model: ClassVar[str | None] = None  # None: there is one input, and no screening

    root: Path
    settings: SearchSettings
    workers: WorkerPool = field(repr=False)
    budget: TimeBudget = field(default_factory=TimeBudget, repr=False)  # the same for all subsets
    progress: ProgressCallback = ignore_progress
    subset: str = ""
    best_trials: dict[StudyKey, ScoredOutputs] = field(default_factory=dict, repr=False)

    # --- rows --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def folds(self) -> Sequence[Rows]:
        """The held-out items of each fold, as places among all items that are held out."""

    @abstractmethod
    def restrict_to_rest(self, fold: Rows, subset: str) -> Self:
        """Return the task without the items of a fold, for a nested estimate."""

    def get_rows(self, places: Rows) -> Rows:
        """Return the rows of the data at some places among the items."""
        return places

    def prepare(self) -> Self:
        """Return the task as it is searched, once it has looked at its rows."""
        return self

    # --- inputs ------------------------------------------------------------------------------

    @property
    def inputs(self) -> Sequence[str]:
        """The names of the inputs; one without a name where there is only one."""
        return [""]

    def load_input(self, name: str) -> None:
        """See to it that the workers have an input."""
        del name

    def drop_input(self, name: str) -> None:
        """Drop an input, which is read again where it is needed."""
        del name

    def describe_input(self, name: str) -> dict[str, Any]:
        """Return what a report says of an input."""
        return {"set": name}

    # --- fits --------------------------------------------------------------------------------

    @abstractmethod
    def get_space(self, model_type: str) -> tuple[SearchSpace, Sequence[dict[str, Any]]]:
        """Return the search space of a model type, and its defaults, which are tried first."""

    def get_output_shape(self, model_type: str) -> tuple[int, ...]:
        """Return the shape of what a model says of one item; that of a number is empty."""
        del model_type
        return ()

    @abstractmethod
    def make_fit(self, candidate: Candidate, rows: Rows, new: Rows | None) -> Fit:
        """Return a fit on some rows of the data, which predicts other ones, if any."""

    def make_fold_fits(self, candidate: Candidate) -> Sequence[Fit]:
        """Return the fit of each fold, which predicts its held-out rows."""
        places = np.arange(sum(map(len, self.folds)))
        return [
            replace(
                self.make_fit(
                    candidate, self.get_rows(np.setdiff1d(places, fold)), self.get_rows(fold)
                ),
                checkpoint=self.locate_checkpoint(candidate, number),
            )
            for number, fold in enumerate(self.folds)
        ]

    def make_final_fit(self, candidate: Candidate, folder: str | None, new: Rows | None) -> Fit:
        """Return the fit on all rows that are known, which predicts other rows, if any."""
        known = self.get_rows(np.arange(sum(map(len, self.folds))))
        return replace(self.make_fit(candidate, known, new), folder=folder)

    # --- values ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def metric(self) -> str:
        """What the objective is called."""

    @property
    def direction(self) -> Direction:
        """Where better objectives lie."""
        return "minimize"

    def compute_merit(self, value: float) -> float:
        """Return a number of which the larger are better; values that differ by rounding tie."""
        rounded = round_to_significant(value)
        return rounded if self.direction == "maximize" else -rounded

    def join_outputs(self, folds: Sequence[FitOutputs]) -> FitOutputs:
        """Return the out-of-fold outputs of all items."""
        return FitOutputs.join(folds, self.folds)

    def compute_interim_objective(self, folds: Sequence[FitOutputs]) -> float:
        """Return the objective of the folds that are done; nan, and no trial is pruned by it."""
        del folds
        return math.nan

    def predict_out_of_fold(
        self, candidate: Candidate, outputs: FitOutputs
    ) -> tuple[Any, tuple[str, ...]]:
        """Return what out-of-fold outputs predict, and notes on that."""
        del candidate
        return outputs.predictions, ()

    @abstractmethod
    def score(self, predictions: Any) -> Score:
        """Return the objective of predictions; an OrdinateError says why there is none."""

    @abstractmethod
    def evaluate(self, predictions: Any) -> Any:
        """Return the evaluation of predictions for all items, with confidence intervals."""

    def get_value(self, evaluation: Any) -> float:
        """Return the value of the metric in an evaluation."""
        return self.report.get_estimate(evaluation).value

    def join_predictions(self, folds: Sequence[Any]) -> Any:
        """Return the predictions of all folds as one."""
        return join_folds(folds, self.folds)

    def encode_predictions(self, predictions: Any) -> Any:
        """Return predictions as plain values, to be cached."""
        return predictions.tolist()

    def decode_predictions(self, stored: Any, n: int) -> Any:
        """Return cached predictions; None where they are none of n items."""
        numbers = isinstance(stored, list) and all(isinstance(x, float) for x in stored)
        return np.array(stored, float) if numbers and len(stored) == n else None

    def format_value(self, value: float) -> str:
        """Return a value of the metric for people."""
        return f"{value:.3f}"

    # --- ensembles ---------------------------------------------------------------------------

    def combine(self, candidates: Sequence[EvaluatedCandidate]) -> Ensemble | None:
        """Return the ensemble that is a candidate, too; None where there is none."""
        del candidates
        return None

    def select_winner(
        self, candidates: Sequence[EvaluatedCandidate], ensemble: Ensemble | None
    ) -> Selected:
        """Return the best of all, of equals the first."""
        every: list[Selected] = [*candidates, *([ensemble] if ensemble else [])]
        return max(every, key=lambda one: self.compute_merit(one.value))

    def fit_again(self, selected: Selected, new: Rows) -> list[FitOutputs]:
        """Fit what was selected on all rows, and return what each member says of other ones."""
        for one in selected.members:
            self.load_input(one.candidate.input)
        fits = [self.make_final_fit(one.candidate, None, new) for one in selected.members]
        end = self.budget.deadline
        return take_outputs(self.attempt_fits([replace(fit, end=end) for fit in fits]))

    def predict_new(self, selected: Selected, new: Rows) -> Any:
        """Fit what was selected on all rows, and return its predictions for other ones."""
        (outputs,) = self.fit_again(selected, new)
        return outputs.predictions

    # --- saved models ------------------------------------------------------------------------

    @abstractmethod
    def fingerprint(self, inputs: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints of the data, for digests and manifests."""

    def compute_digest(self, *inputs: str, **further: Any) -> str:
        """Return a short name of all that decides a result, and of what else is to be named."""
        identity = {
            "data": self.fingerprint(inputs or self.inputs),
            "subset": self.subset,
            "folds": self.settings.folds,
            "seed": self.settings.seed,
        }
        return compute_digest(identity | further)

    def name_study(self, key: StudyKey) -> str:
        """Return the name of a study, which says all that decides its trials.

        The draws of a search depend on it, so that its keys stay as they are.
        """
        given = self.settings.params.get(key.model_type)
        further = {} if given is None else {"params": compute_digest(given)}
        digest = self.compute_digest(key.input, kind=key.model_type, **further)
        return "/".join(filter(None, (self.subset, *key, digest)))

    def name_model(self, candidate: Candidate) -> str:
        """Return the name of a saved model: its data and all its settings decide it."""
        name, model_type, params = candidate
        digest = self.compute_digest(name, model_type=model_type, params=params)
        return "-".join(filter(None, (name, model_type, digest)))

    def describe_model(self, selected: Selected, outputs: FitOutputs | None) -> dict[str, Any]:
        """Return all that predictions depend on beside the model and its calibration.

        `outputs` are those of the last fit; None where an ensemble is saved.
        """
        del selected, outputs
        return {}

    def write_calibration(
        self, folder: Path, selected: Selected, outputs: FitOutputs | None
    ) -> None:
        """Write into the folder of a saved model what makes predictions of its outputs."""
        del folder, selected, outputs

    def list_libraries(self, model_type: str) -> list[str]:
        """Return the distributions that a model type is made with."""
        del model_type
        return []

    # --- the test, and the report ------------------------------------------------------------

    def test(self, finalists: Sequence[Finalist], winner: Finalist) -> tuple[HeldOutResult, ...]:
        """Evaluate the saved winner, and finalists, on data by which nothing was selected."""
        del finalists, winner
        return ()

    def make_run_name(self) -> str:
        """Return how the name of a run begins."""
        return self.name

    @property
    @abstractmethod
    def report(self) -> TaskReport:
        """What is particular about the report of this task."""

    def list_notes(self, selection: Any) -> list[str]:
        """Return what is to be known of a selection beside what all searches note."""
        del selection
        return []

    # --- what all tasks share ----------------------------------------------------------------

    def select_space(self, model_type: str) -> tuple[SearchSpace, Sequence[dict[str, Any]]]:
        """Return what is searched of a model type: one point where that is given."""
        given = self.settings.params.get(model_type)
        return self.get_space(model_type) if given is None else (lambda _: dict(given), [])

    def locate_result(self, *parts: str) -> Path:
        """Return a path among the results of the search."""
        return resolve_inside(self.root, RESULTS, *parts)

    def locate_checkpoint(self, candidate: Candidate, number: int) -> str:
        """Return where a fit keeps what would be lost with a killed run, without suffix."""
        name = f"{self.subset or 'all'}-{self.name_model(candidate)}-{number}"
        return str(self.locate_result(CHECKPOINTS, name))

    def attempt_fits(
        self, fits: Sequence[Fit], hear: Listener | None = None
    ) -> list[FitOutputs | OrdinateError]:
        """Return the outputs of each fit or, where it ended with one, the OrdinateError itself."""
        made = self.workers.attempt(run_fit, fits, hear)
        self.budget.record_fits(sum(not isinstance(one, OutOfTime) for one in made))
        return made

    def explain_lack_of_time(self) -> OutOfTime:
        """Return the error of a search whose time was over before there was any model."""
        screened = len(self.inputs) if self.screening_model else 0
        seconds = self.budget.estimate_seconds(len(self.folds) * (screened + 1))
        what = "Screening and one trial take" if screened else "One trial takes"
        needed = "" if math.isnan(seconds) else f" {what} up to about {_format_seconds(seconds)}."
        return OutOfTime(
            f"The time (--timeout {self.budget.seconds:g}) was over before any model was fitted, "
            f"so there is no model.{needed} Allow more: with the same folder, the search goes on "
            "where it stopped."
        )

    def report_progress(self, stage: str, share: float, note: str = "") -> None:
        """Report how much of a stage is done."""
        self.progress(f"{stage} ({self.subset})" if self.subset else stage, share, note)

    def describe_best(self, values: Sequence[float]) -> str:
        """Return a note on the best of some values."""
        if not values:
            return ""
        return f"best {self.metric} {self.format_value(max(values, key=self.compute_merit))}"

    def cache_outputs(self, candidate: Candidate, value: float, outputs: FitOutputs) -> None:
        """Cache the out-of-fold outputs of the best trial of a study so far, to spare its fits."""
        merit, best = self.compute_merit(value), self.best_trials.get(candidate.study)
        if best is None or merit > best.merit:
            self.best_trials[candidate.study] = ScoredOutputs(merit, candidate.params, outputs)
            outputs.save(self._locate_best(candidate))  # for a run that goes on after a kill

    def get_cached_outputs(self, candidate: Candidate) -> FitOutputs | None:
        """Return the out-of-fold outputs of a candidate, if this run or a killed one has them."""
        best = self.best_trials.get(candidate.study)
        if best and best.params == candidate.params:
            return best.outputs
        outputs = FitOutputs.load(self._locate_best(candidate))
        whole = outputs is not None and len(outputs.predictions) == sum(map(len, self.folds))
        return outputs if whole else None

    def _locate_best(self, candidate: Candidate) -> Path:
        return Path(f"{self.locate_checkpoint(candidate, len(self.folds) + 1)}.npz")

    def evaluate_candidate(self, candidate: Candidate, outputs: FitOutputs) -> EvaluatedCandidate:
        """Evaluate a candidate by its out-of-fold outputs."""
        predictions, notes = self.predict_out_of_fold(candidate, outputs)
        evaluation = self.evaluate(predictions)
        return EvaluatedCandidate(candidate, outputs, self.get_value(evaluation), evaluation, notes)


def _format_seconds(seconds: float) -> str:
    return f"{math.ceil(seconds):,} s" if seconds >= 10.0 else f"{seconds:.1f} s"
