"""What a run of tuning found: screened sets, searched models, the winner, and its test."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ordinate.classify.scoring import DecisionRuleScores
from ordinate.classify.settings import Settings
from ordinate.classify.training_data import TrainingDataSummary
from ordinate.inference.estimates import to_json_number
from ordinate.metrics import Metric
from ordinate.render import Document
from ordinate.results.base import SCHEMA, Result, align_columns

if TYPE_CHECKING:
    from ordinate.search.trials import Trial

STATES = ("complete", "pruned", "failed")


@dataclass(frozen=True)
class ScreeningResult:
    """A feature set, what the cheap model makes of it, and whether it is searched."""

    set: str
    features: int
    matched: str
    evaluation: DecisionRuleScores | None  # None where nothing could be learned from it
    failed: str | None = None
    kept: bool = False
    discard_reason: str | None = None  # it is not searched

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "set": self.set,
            "features": self.features,
            "matched": self.matched,
            "kept": self.kept,
            "why": self.discard_reason,
            "failed": self.failed,
            "screening": self.evaluation and self.evaluation.to_dict(),
        }


@dataclass(frozen=True)
class Finalist:
    """The best model of a study, or a vote of several, judged by cross-validation.

    `name` is that of the saved model; a vote has members, by their names.
    """

    name: str
    kind: str
    sets: tuple[str, ...]
    params: dict[str, Any]
    evaluation: DecisionRuleScores
    members: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "name": self.name,
            "model": self.kind,
            "sets": list(self.sets),
            "params": self.params,
            "members": list(self.members),
            "cross_validation": self.evaluation.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class StudyResult:
    """One feature set with one kind of model: the trials of its study, and the best of them."""

    set: str
    kind: str
    wanted: int  # trials
    trials: "tuple[Trial, ...]"
    best: Finalist | None  # None where no trial was completed

    def count(self, state: str) -> int:
        """Return how many trials ended so."""
        return sum(trial.state == state for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "set": self.set,
            "model": self.kind,
            "trials": {"wanted": self.wanted} | {state: self.count(state) for state in STATES},
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
        return {"set": self.set, "model": self.kind, "trials": trials}


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
    """The whole procedure, run on each part of the training data and judged on the rest."""

    evaluation: DecisionRuleScores
    chosen: tuple[str, ...]  # set and model that each part chose
    finished: bool = True  # whether all parts made all trials that were asked for

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        return {
            "chosen": list(self.chosen),
            "finished": self.finished,
            "estimate": self.evaluation.to_dict(),
        }


@dataclass(frozen=True, repr=False)
class TuningResult(Result):
    """A run of tuning: what was screened, what was searched, what won, and what it is worth."""

    run: str
    settings: Settings
    source: TrainingDataSummary
    screened: tuple[ScreeningResult, ...]
    searched: tuple[StudyResult, ...]
    vote: Finalist | None
    winner: Finalist
    tests: tuple[HeldOutResult, ...] = ()
    nested: NestedEstimate | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def finalists(self) -> list[Finalist]:
        """The best of each study, and the vote."""
        found = [one.best for one in self.searched if one.best is not None]
        return [*found, self.vote] if self.vote else found

    # --- plain values ------------------------------------------------------------------------

    def _build_header(self) -> dict[str, Any]:
        metric = self.settings.measure
        return {
            "schema": SCHEMA,
            "task": "tune",
            "run": self.run,
            "metric": metric.expression,
            "direction": metric.direction,
            "settings": self.settings.asked,
            "data": self.source.to_dict(),
        }

    def convert_screening_to_dict(self) -> dict[str, Any]:
        """Return what screening found."""
        return self._build_header() | {"sets": [one.to_dict() for one in self.screened]}

    def convert_search_to_dict(self) -> dict[str, Any]:
        """Return what the search found, which model won, and its test."""
        return self._build_header() | {
            "winner": self.winner.name,
            "winning": self.winner.to_dict(),
            "studies": [one.to_dict() for one in self.searched],
            "vote": self.vote and self.vote.to_dict(),
            "tests": [one.to_dict() for one in self.tests],
            "nested": self.nested and self.nested.to_dict(),
            "notes": list(self.notes),
        }

    def list_trials(self) -> dict[str, Any]:
        """Return every trial of every study."""
        return self._build_header() | {"studies": [one.list_trials() for one in self.searched]}

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
        from ordinate.classify.tuning_text import describe_tuning  # noqa: PLC0415 - describe shows results

        return describe_tuning(self)


def _name_finalist(one: Finalist) -> tuple[str, str, str]:
    return ",".join(one.sets), one.kind, one.name


def _flatten_scores(
    stage: str, judged: "Iterable[tuple[str, str, str, DecisionRuleScores | None]]"
) -> list[dict[str, Any]]:
    return [
        {"stage": stage, "set": set_, "model": kind, "name": name} | row
        for set_, kind, name, one in judged
        if one is not None
        for row in one.rows()
    ]


def compute_optimism(metric: Metric, chosen_by: float, tested: float) -> float:
    """Return how much better the value was by which a model was chosen than that of its test.

    >>> from ordinate.metrics import find_metric
    >>> round(compute_optimism(find_metric("mae"), 0.3, 0.4), 3)
    0.1
    """
    return float(metric.merit(chosen_by) - metric.merit(tested))
