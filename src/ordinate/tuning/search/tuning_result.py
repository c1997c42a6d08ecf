"""The result of tuning: screened inputs, studies, finalists, the winner, and its tests."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from ordinate.inference.estimates import Estimate, to_json_number
from ordinate.render import Document, Grid
from ordinate.render.charts import Chart
from ordinate.render.document import Cell
from ordinate.render.estimates import format_estimate, format_number
from ordinate.results.base import SCHEMA, Record, Result, align_columns
from ordinate.tuning.search.settings import SearchSettings
from ordinate.tuning.search.studies import TRIAL_STATES, Trial
from ordinate.tuning.search.tuning_text import (
    describe_model_card,
    describe_tuning,
    format_front_matter,
)


class TaskReport:
    """What is particular about the report of a task: its evaluations as records, cells and words.

    An evaluation is what the task makes of predictions: an estimate, or something that holds it.
    """

    task: ClassVar[str]  # as in JSON
    pipeline_tag: ClassVar[str | None] = None  # as the Hugging Face hub calls it
    test_charts: ClassVar[tuple[str, ...]] = ()  # of the evaluations on tests; none: all
    metric: str  # by which models are selected
    direction: str
    unit: str | None = None

    def get_estimate(self, evaluation: Any) -> Estimate:
        """Return the value of the metric with its confidence interval."""
        return cast("Estimate", evaluation)

    def get_steadier_estimate(self, evaluation: Any) -> tuple[str, Estimate] | None:
        """Return another metric by name, which stands first where the interval of this is open."""
        del evaluation
        return None

    @property
    def basis(self) -> str:
        """By what models are evaluated and selected."""
        return "by cross-validation"

    def format_value(self, value: float) -> str:
        """Return a value of the metric with the digits that matter, without its unit."""
        return format_number(value)

    def convert_evaluation(self, evaluation: Any) -> Record:
        """Return an evaluation as plain values."""
        return self.get_estimate(evaluation).to_dict()

    def convert_if_any(self, evaluation: Any) -> Record | None:
        """Return an evaluation as plain values, and None where there is none."""
        return None if evaluation is None else self.convert_evaluation(evaluation)

    def flatten_evaluation(self, evaluation: Any) -> list[Record]:
        """Return an evaluation as flat records."""
        return [{"metric": self.metric} | self.convert_evaluation(evaluation)]

    def list_measures(self, result: "TuningResult") -> list[tuple[str, str, Estimate, str | None]]:
        """Return what matters most of the tests: key, title, value and unit."""
        won = self.get_estimate(result.winner.evaluation)
        return [
            ("cross_validation", f"cross-validated {self.metric} of the winner", won, self.unit),
            *(
                (
                    f"test_{one.name}",
                    f"{self.metric} on {one.name}",
                    self.get_estimate(one.evaluation),
                    self.unit,
                )
                for one in result.tests
                if one.evaluation is not None
            ),
        ]

    def describe_weakness(self, evaluation: Any) -> str:
        """Return which baselines an evaluation is not better than; '' where it is."""
        del evaluation
        return ""

    def count_seen_items(self, result: "TuningResult", test: "HeldOutResult") -> int:
        """Return how many items of a test the models have learned from."""
        del result
        return test.seen

    def describe_title(self, result: "TuningResult") -> str:
        """Return what was searched, in a few words."""
        return f"Tuned for {self.metric} on {result.source.n:,} items"

    def describe_source(self, result: "TuningResult") -> list[str]:
        """Return what is to be known of the data."""
        del result
        return []

    @property
    def value_header(self) -> tuple[str, ...]:
        """The heads of the columns of `build_value_cells`."""
        return (self.metric,)

    def build_value_cells(self, evaluation: Any) -> tuple[Cell, ...]:
        """Return an evaluation as cells of a table; it may be None, where nothing was fitted."""
        return (
            ("none",) if evaluation is None else (format_estimate(self.get_estimate(evaluation)),)
        )

    def build_test_blocks(self, result: "TuningResult") -> list[str | Grid]:
        """Return the tests as tables."""
        if not result.tests:
            return []
        rows = tuple(
            (one.name, one.n, *self.build_value_cells(one.evaluation)) for one in result.tests
        )
        title = "Test: the winner on data by which nothing was selected"
        return [Grid(title, ("data", "n", *self.value_header), rows)]

    def list_test_estimates(
        self, result: "TuningResult", test: "HeldOutResult"
    ) -> dict[str, Estimate]:
        """Return the value of each tested finalist by name, with its confidence interval."""
        if test.evaluation is None:
            return {}
        return {result.winner.name: self.get_estimate(test.evaluation)}

    def evaluate_test(self, result: "TuningResult", test: "HeldOutResult") -> Result | None:
        """Return the winner on a test by all metrics, where there are predictions."""
        del result, test
        return None

    def list_test_charts(self, result: "TuningResult") -> list[Chart]:
        """Return the views of the winner on each test."""
        return [
            replace(chart, variant=name if len(result.tests) > 1 else "", varies_by="test set")
            for name, evaluation in result.evaluations.items()
            for chart in evaluation.list_charts()
            if chart.name in (self.test_charts or (chart.name,))
        ]

    def describe_methods(self, result: "TuningResult") -> list[str]:
        """Return how values came about, and what to keep in mind."""
        del result
        return []


@dataclass(frozen=True)
class ScreeningResult:
    """An input (a feature set), its evaluation with the cheap model, and whether it is searched."""

    set: str
    features: int
    matched: str
    evaluation: Any  # None where nothing could be learned from it
    value: float
    failed: str | None = None
    shortlisted: bool = False
    discard_reason: str | None = None  # of an input that is not searched

    def to_dict(self, report: TaskReport) -> Record:
        """Return plain values, nan as None."""
        return {
            "set": self.set,
            "features": self.features,
            "matched": self.matched,
            "shortlisted": self.shortlisted,
            "discard_reason": self.discard_reason,
            "failed": self.failed,
            "value": to_json_number(self.value),
            "cross_validation": report.convert_if_any(self.evaluation),
        }


@dataclass(frozen=True)
class Finalist:
    """The best model of a study, or an ensemble of several, evaluated by cross-validation.

    `name` is that of the saved model, `title` what people call it; an ensemble has members, by
    their names, and a blend the weights of them.
    """

    name: str
    title: str
    model_type: str
    sets: tuple[str, ...]
    params: dict[str, Any]
    value: float
    evaluation: Any
    members: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self, report: TaskReport) -> Record:
        """Return plain values, nan as None."""
        return {
            "name": self.name,
            "model": self.model_type,
            "sets": list(self.sets),
            "params": self.params,
            "members": list(self.members),
            "weights": list(self.weights),
            "value": to_json_number(self.value),
            "cross_validation": report.convert_evaluation(self.evaluation),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class StudyResult:
    """One input with one model type: the trials of its study, and the best of them."""

    set: str
    model_type: str
    requested: int  # trials
    trials: "tuple[Trial, ...]"
    best: Finalist | None  # None where no trial was completed

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.set}/{self.model_type}" if self.set else self.model_type

    @property
    def counts(self) -> dict[str, int]:
        """How many trials ended in each state."""
        return {state: sum(trial.state == state for trial in self.trials) for state in TRIAL_STATES}

    def to_dict(self, report: TaskReport) -> Record:
        """Return plain values, nan as None."""
        return {
            "set": self.set,
            "model": self.model_type,
            "trials": {"requested": self.requested} | self.counts,
            "best": self.best and self.best.to_dict(report),
        }

    def list_trials(self) -> Record:
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


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """The winner on data by which nothing was selected, and the optimism of cross-validation.

    `columns` are the items themselves: what they are, and what all tested finalists predict.
    """

    name: str
    description: str  # which items these are
    n: int
    evaluation: Any  # None where nothing could be tested, for a reason
    optimism: float
    notes: tuple[str, ...] = ()
    groups: int | None = None  # that its items belong to, where they have some
    comparison: Any = None  # of the finalists
    seen: int = 0  # items that the models have learned from, too
    columns: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self, report: TaskReport) -> Record:
        """Return plain values, nan as None."""
        return {
            "data": self.name,
            "description": self.description,
            "n": self.n,
            "groups": self.groups,
            "test": report.convert_if_any(self.evaluation),
            "optimism": to_json_number(self.optimism),
            "finalists": None if self.comparison is None else self.comparison.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class NestedEstimate:
    """The whole selection, repeated for each outer fold and evaluated on it."""

    evaluation: Any
    value: float
    selected: tuple[str, ...]  # for each outer fold
    finished: bool = True  # whether every study made all its trials

    def to_dict(self, report: TaskReport) -> Record:
        """Return plain values, nan as None."""
        return {
            "selected": list(self.selected),
            "finished": self.finished,
            "value": to_json_number(self.value),
            "estimate": report.convert_evaluation(self.evaluation),
        }


@dataclass(frozen=True, repr=False, eq=False)
class TuningResult(Result):
    """A tuning run: screened inputs, studies, the winner, and what it is worth.

    `folder` is where the models were saved.
    """

    run: str
    report: TaskReport
    settings: SearchSettings
    source: Any  # what is known of the data
    screened: tuple[ScreeningResult, ...]
    studies: tuple[StudyResult, ...]
    ensemble: Finalist | None
    winner: Finalist
    tests: tuple[HeldOutResult, ...] = ()
    nested: NestedEstimate | None = None
    notes: tuple[str, ...] = ()
    folder: Path = Path()
    screening_model: str = ""  # the cheap model that every input was tried with

    @property
    def finalists(self) -> list[Finalist]:
        """The best of each study, and the ensemble."""
        best = [study.best for study in self.studies if study.best is not None]
        return [*best, self.ensemble] if self.ensemble else best

    @cached_property
    def evaluations(self) -> dict[str, Any]:
        """The winner on each test by all metrics."""
        found = {one.name: self.report.evaluate_test(self, one) for one in self.tests}
        return {name: one for name, one in found.items() if one is not None}

    # --- plain values ------------------------------------------------------------------------

    def _build_header(self) -> Record:
        return {
            "schema": SCHEMA,
            "task": self.report.task,
            "run": self.run,
            "metric": self.report.metric,
            "direction": self.report.direction,
            "unit": self.report.unit,
            "settings": self.settings.result_settings,
            "data": self.source.to_dict(),
        }

    def to_dict(self) -> Record:
        """Return plain values, nan as None: what `--format json` writes."""
        report = self.report
        return self._build_header() | {
            "winner": self.winner.name,
            "winning": self.winner.to_dict(report),
            "summary": self.summarize(),
            "screening": [one.to_dict(report) for one in self.screened],
            "studies": [study.to_dict(report) for study in self.studies],
            "ensemble": self.ensemble and self.ensemble.to_dict(report),
            "tests": [
                one.to_dict(report) | {"seen": report.count_seen_items(self, one)}
                for one in self.tests
            ],
            "nested": self.nested and self.nested.to_dict(report),
            "notes": list(self.notes),
        }

    def list_trials(self) -> Record:
        """Return every trial of every study."""
        return self._build_header() | {"studies": [study.list_trials() for study in self.studies]}

    def list_test_predictions(self) -> Record:
        """Return the items of the tests, with what was predicted for them."""
        tests = [{"data": one.name} | one.columns for one in self.tests if one.columns]
        return self._build_header() | {"winner": self.winner.name, "tests": tests}

    def summarize(self) -> list[Record]:
        """Return the values that matter most, each with its interval; keys are for programs."""
        return [
            {"key": key, "title": title, "unit": unit} | estimate.to_dict()
            for key, title, estimate, unit in self.report.list_measures(self)
        ]

    def make_charts(self) -> Iterable[Chart]:
        """Return finalists beside the tests, the winner on these, trials, and screened inputs."""
        from ordinate.tuning.search.search_charts import chart_tuning  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_tuning(self)

    def rows(self) -> list[Record]:
        """Return one flat record for each value: of screening, search, test and nested estimate."""
        screened = ((one.set, self.screening_model, "", one.evaluation) for one in self.screened)
        searched = ((*_name_finalist(one), one.evaluation) for one in self.finalists)
        rows = [*self._flatten("screening", screened), *self._flatten("search", searched)]
        for one in self.tests:
            tested = [(*_name_finalist(self.winner), one.evaluation)]
            rows += self._flatten(one.name, tested)
        if self.nested:
            rows += self._flatten("nested", [("", "", "", self.nested.evaluation)])
        return align_columns(rows)

    def _flatten(
        self, stage: str, evaluated: "Iterable[tuple[str, str, str, Any]]"
    ) -> list[Record]:
        return [
            {"stage": stage, "set": set_, "model": model, "name": name} | row
            for set_, model, name, evaluation in evaluated
            if evaluation is not None
            for row in self.report.flatten_evaluation(evaluation)
        ]

    def document(self) -> Document:
        """Return the report for people; as a file it is the model card of the winner."""
        report = describe_tuning(self)
        details = (*report.details, *describe_model_card(self))
        return replace(report, details=details, front_matter=format_front_matter(self))


def _name_finalist(one: Finalist) -> tuple[str, str, str]:
    return ",".join(one.sets), one.model_type, one.name
