"""The result of tuning: screened sets, studies, the winner, and its test."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ordinate.classify.scoring import DecisionRuleScores
from ordinate.classify.settings import Settings
from ordinate.classify.training_data import TrainingDataSummary
from ordinate.classify.tuning_text import describe_tuning
from ordinate.inference.estimates import to_json_number
from ordinate.metrics import Metric
from ordinate.render import Document
from ordinate.results.base import SCHEMA, Result, align_columns
from ordinate.search.trials import TRIAL_STATES, Trial


@dataclass(frozen=True)
class ScreeningResult:
    """A feature set, its evaluation with the cheap model, and whether it is searched."""

    set: str
    features: int
    matched: str
    evaluation: DecisionRuleScores | None  # None where nothing could be learned from it
    failed: str | None = None
    shortlisted: bool = False
    discard_reason: str | None = None  # of a set that is not searched

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "set": self.set,
            "features": self.features,
            "matched": self.matched,
            "shortlisted": self.shortlisted,
            "discard_reason": self.discard_reason,
            "failed": self.failed,
            "screening": self.evaluation and self.evaluation.to_dict(),
        }


@dataclass(frozen=True)
class Finalist:
    """The best model of a study, or a vote of several, evaluated by cross-validation.

    `name` is that of the saved model; a vote has members, by their names.
    """

    name: str
    model_type: str
    sets: tuple[str, ...]
    params: dict[str, Any]
    evaluation: DecisionRuleScores
    members: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "name": self.name,
            "model": self.model_type,
            "sets": list(self.sets),
            "params": self.params,
            "members": list(self.members),
            "cross_validation": self.evaluation.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class StudyResult:
    """One feature set with one model type: the trials of its study, and the best of them."""

    set: str
    model_type: str
    requested: int  # trials
    trials: "tuple[Trial, ...]"
    best: Finalist | None  # None where no trial was completed

    @property
    def counts(self) -> dict[str, int]:
        """How many trials ended in each state."""
        return {state: sum(trial.state == state for trial in self.trials) for state in TRIAL_STATES}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "set": self.set,
            "model": self.model_type,
            "trials": {"requested": self.requested} | self.counts,
            "best": self.best and self.best.to_dict(),
        }

    def list_trials(self) -> dict[str, Any]:
        """Return every trial, as plain values."""
        trials = [
            {
                "number": trial.number,
                "state": trial.state,
                "value": trial.value,
                **trial.attributes,
                "reason": trial.reason,
                "params": trial.params,
                "after_folds": {str(step): to_json_number(x) for step, x in trial.steps.items()},
            }
            for trial in self.trials
        ]
        return {"set": self.set, "model": self.model_type, "trials": trials}


@dataclass(frozen=True)
class HeldOutResult:
    """The winner on one test set, and the optimistic bias of cross-validation."""

    name: str  # of the test set
    n: int
    evaluation: DecisionRuleScores | None  # None where nothing could be tested, for a reason
    optimism: float
    note: str | None = None
    groups: int | None = None  # that its items belong to, where they have some

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "data": self.name,
            "n": self.n,
            "groups": self.groups,
            "test": self.evaluation and self.evaluation.to_dict(),
            "optimism": to_json_number(self.optimism),
            "note": self.note,
        }


@dataclass(frozen=True)
class NestedEstimate:
    """The whole selection, repeated for each outer fold and evaluated on it."""

    evaluation: DecisionRuleScores
    selected: tuple[str, ...]  # set and model, for each outer fold
    finished: bool = True  # whether every study made all its trials

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "selected": list(self.selected),
            "finished": self.finished,
            "estimate": self.evaluation.to_dict(),
        }


@dataclass(frozen=True, repr=False, eq=False)
class TuningResult(Result):
    """A tuning run: screened sets, studies, the winner, and what it is worth."""

    run: str
    settings: Settings
    source: TrainingDataSummary
    screened: tuple[ScreeningResult, ...]
    studies: tuple[StudyResult, ...]
    vote: Finalist | None
    winner: Finalist
    tests: tuple[HeldOutResult, ...] = ()
    nested: NestedEstimate | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def finalists(self) -> list[Finalist]:
        """The best of each study, and the vote."""
        best = [study.best for study in self.studies if study.best is not None]
        return [*best, self.vote] if self.vote else best

    # --- plain values ------------------------------------------------------------------------

    def _build_header(self) -> dict[str, Any]:
        metric = self.settings.measure
        return {
            "schema": SCHEMA,
            "task": "tune",
            "run": self.run,
            "metric": metric.expression,
            "direction": metric.direction,
            "settings": self.settings.result_settings,
            "data": self.source.to_dict(),
        }

    def convert_screening_to_dict(self) -> dict[str, Any]:
        """Return the results of screening."""
        return self._build_header() | {"sets": [one.to_dict() for one in self.screened]}

    def convert_search_to_dict(self) -> dict[str, Any]:
        """Return the results of the search, the winner, and its test."""
        return self._build_header() | {
            "winner": self.winner.name,
            "winning": self.winner.to_dict(),
            "studies": [study.to_dict() for study in self.studies],
            "vote": self.vote and self.vote.to_dict(),
            "tests": [one.to_dict() for one in self.tests],
            "nested": self.nested and self.nested.to_dict(),
            "notes": list(self.notes),
        }

    def list_trials(self) -> dict[str, Any]:
        """Return every trial of every study."""
        return self._build_header() | {"studies": [study.list_trials() for study in self.studies]}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None: what `--format json` writes."""
        return self.convert_screening_to_dict() | self.convert_search_to_dict()

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each value: of screening, search, test and nested estimate."""
        rows = [
            *_flatten_scores(
                "screen", ((one.set, "logistic", "", one.evaluation) for one in self.screened)
            ),
            *_flatten_scores(
                "search", ((*_name_finalist(one), one.evaluation) for one in self.finalists)
            ),
            *_flatten_scores(
                "test", ((*_name_finalist(self.winner), one.evaluation) for one in self.tests)
            ),
        ]
        if self.nested:
            rows += _flatten_scores("nested", [("", "", "", self.nested.evaluation)])
        return align_columns(rows)

    def document(self) -> Document:
        """Return the report for people."""
        return describe_tuning(self)


def _name_finalist(one: Finalist) -> tuple[str, str, str]:
    return ",".join(one.sets), one.model_type, one.name


def _flatten_scores(
    stage: str, evaluated: "Iterable[tuple[str, str, str, DecisionRuleScores | None]]"
) -> list[dict[str, Any]]:
    return [
        {"stage": stage, "set": set_, "model": model, "name": name} | row
        for set_, model, name, evaluation in evaluated
        if evaluation is not None
        for row in evaluation.rows()
    ]


def compute_optimism(metric: Metric, selected_by: float, tested: float) -> float:
    """Return how much better the value was by which a model was selected than that of its test.

    >>> from ordinate.metrics import find_metric
    >>> round(compute_optimism(find_metric("mae"), 0.3, 0.4), 3)
    0.1
    """
    return float(metric.merit(selected_by) - metric.merit(tested))
