"""The result of tuning: screened inputs, studies, finalists, the winner, and its tests."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from ordinate.errors import replace_control_characters
from ordinate.inference.estimates import Estimate, to_json_number
from ordinate.render import Block, Document, Grid
from ordinate.render.charts import Axis, Chart
from ordinate.render.document import join_bounds
from ordinate.render.estimates import (
    format_count,
    format_estimate,
    format_estimate_interval,
    format_headline,
    format_interval_head,
    format_number,
    join_names,
)
from ordinate.render.forest_plots import ForestPlot, ForestRow
from ordinate.render.tables import NAME, UNIT_ESTIMATE, Column, Estimates, Kind, Table
from ordinate.results.base import BETTER_VALUES, SCHEMA, Record, Result, align_columns
from ordinate.tuning.search.search_charts import (
    DISCARDED,
    LEVEL,
    SHORTLISTED,
    WINNER,
    chart_history,
    chart_learning_curves,
    collect_curves,
)
from ordinate.tuning.search.settings import SearchSettings
from ordinate.tuning.search.studies import TRIAL_STATES, Trial

OPTIMISM_NOTE = (
    "The best of many is optimistically biased: each value was selected among others on the same "
    "items, so expect less of new ones"
)
PLACEHOLDER = (
    "Intended use: [TO FILL IN] Who is to use this model, for what, and for what not? Whom could "
    "its errors harm?"
)
WEIGHT_NOTE = (
    "The search weighted its metric by class weights, which the evaluation on the tests does not."
)
CI_HEAD = format_interval_head(LEVEL)
VALUE = Estimates(format_number, format_estimate, joined=format_estimate, missing="none")
ANY = Kind(lambda count: count or None)


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

    def list_value_columns(self) -> list[Column]:
        """Return the columns of the `evaluation` of records, None where nothing was fitted."""
        return [Column("value", self.metric, VALUE, self.take_estimate)]

    def take_estimate(self, record: Record) -> Estimate | None:
        """Return the value of the metric of a record of a table."""
        found = record["evaluation"]
        return None if found is None else self.get_estimate(found)

    def build_test_blocks(self, result: "TuningResult") -> list[str | Grid]:
        """Return the tests as tables."""
        if not result.tests:
            return []
        title = "Test: the winner on data by which nothing was selected"
        columns = (Column("data", kind=NAME), Column("n"), *self.list_value_columns())
        records = [{"data": x.name, "n": x.n, "evaluation": x.evaluation} for x in result.tests]
        return [*Table("tests", title, columns, records, LEVEL).grids()]

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
        return chart_tuning(self)

    def tables(self) -> Iterable[Table]:
        """Return values of screening, search, tests and nested estimate; then what is shown."""
        values = self._list_values()
        yield Table("values", "", tuple(map(Column, values[0])), values)
        yield make_summary_table(self.summarize())
        yield from (self._searched(), self._nested(), self._screening(), self._finalists())

    def _searched(self) -> Table:
        """Return the best trial of each study, and the ensemble."""
        best = [
            {
                "model": study.title,
                "evaluation": study.best and study.best.evaluation,
                "requested": study.requested,
                "trials": f"{study.counts['complete']} of {study.requested}",
                **study.counts,
            }
            for study in self.studies
        ]
        if one := self.ensemble:
            best.append({"model": one.model_type, "evaluation": one.evaluation})
        columns = (
            Column("model", kind=NAME),
            *self.report.list_value_columns(),
            Column("trials", stored=False, get=lambda x: x.get("trials")),
            Column("requested", shown=False, get=lambda x: x.get("requested")),
            Column("complete", shown=False, get=lambda x: x.get("complete")),
            Column("pruned", kind=ANY, get=lambda x: x.get("pruned"), optional=2),
            Column("failed", kind=ANY, get=lambda x: x.get("failed"), optional=1),
        )
        title = f"Search: the best trial of each study, {self.report.basis}, with {CI_HEAD}"
        return Table("search", title, columns, best, LEVEL)

    def _screening(self) -> Table:
        columns = (
            Column("set", kind=NAME),
            Column("features", optional=6),
            *self.report.list_value_columns(),
            Column("shortlisted", "searched", Kind(lambda x: "yes" if x else "no")),
        )
        title = f"Screening: each feature set with {self.screening_model}"
        return Table("screening", title, columns, [*map(vars, self.screened)], LEVEL)

    def _finalists(self) -> Table:
        """Return the full names of saved models, and their hyperparameters."""
        titles = {one.name: one.title for one in self.finalists}
        columns = (
            Column("title", "model", NAME),
            Column("name", "saved as", NAME),
            Column(
                "hyperparameters",
                kind=NAME,
                get=lambda x: _format_hyperparameters(_get_hyperparameters(x, titles)),
            ),
        )
        title = "Finalists: their names and hyperparameters"
        return Table("finalists", title, columns, self.finalists)

    def _nested(self) -> Table:
        title = f"Nested cross-validation: the whole selection in each outer fold, with {CI_HEAD}"
        both = {"cross-validation": self.winner, "nested": self.nested}
        records = [
            {"estimate": name, "evaluation": one.evaluation}
            for name, one in both.items()
            if self.nested is not None and one is not None
        ]
        columns = (Column("estimate", kind=NAME), *self.report.list_value_columns())
        return Table("nested", title, columns, records, LEVEL)

    def _list_values(self) -> list[Record]:
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


# --- in words ------------------------------------------------------------------------------------


def describe_tuning(result: TuningResult) -> Document:
    """Return the report: who won, by how much, what was tried, and what to keep in mind."""
    report = result.report
    sound = any(one.evaluation and not report.count_seen_items(result, one) for one in result.tests)
    blocks: list[str | Grid] = [
        *_draw(result, "search"),
        *report.build_test_blocks(result),
        *_build_nested_blocks(result),
        *_build_screening_blocks(result),
    ]
    notes = [
        *result.notes,
        *(f"{one.name}: {note}" for one in result.tests for note in one.notes),
        *report.describe_source(result),
        f"{OPTIMISM_NOTE}{', and go by the test' if sound else ''}.",
        *report.describe_methods(result),
        *explain_missing_intervals(result.summarize()),
    ]
    return Document(
        report.describe_title(result),
        tuple(blocks),
        describe_winner(result),
        tuple(notes),
        (*result.get_table("finalists").grids(),),
    )


def describe_winner(result: TuningResult) -> str:
    """Return who won, by cross-validation and on the tests, and what it is not better than."""
    winner, report = result.winner, result.report
    value = _format_value(result, winner.evaluation, report.metric)
    weakness = report.describe_weakness(winner.evaluation)
    said = f"The best model is {winner.title}: {value} {report.basis}"
    sentences = [
        f"{', '.join(filter(None, (said, weakness)))}.",
        _describe_timeout(result),
        _describe_nested(result),
        *(_describe_test(result, one) for one in result.tests),
    ]
    return " ".join(filter(None, sentences))


def _describe_timeout(result: TuningResult) -> str:
    """Say how many trials the timeout left, and which model types without any."""
    requested = sum(study.requested for study in result.studies)
    made = sum(len(study.trials) for study in result.studies)
    if made == requested:
        return ""
    tried = {study.model_type for study in result.studies if study.trials}
    rest = [study.model_type for study in result.studies if study.model_type not in tried]
    verb = "was" if len(set(rest)) == 1 else "were"
    untried = f": {join_names(list(dict.fromkeys(rest)))} {verb} not tried" if rest else ""
    return f"The timeout ended the search after {made:,} of {requested:,} trials{untried}."


def _describe_nested(result: TuningResult) -> str:
    if result.nested is None:
        return ""
    value = _format_value(result, result.nested.evaluation)
    said = f"The nested estimate, without the bias of selecting it, is {value}"
    weakness = result.report.describe_weakness(result.nested.evaluation)
    return f"{', '.join(filter(None, (said, weakness)))}."


def _describe_test(result: TuningResult, test: HeldOutResult) -> str:
    """Return what a test says: beside cross-validation only where it is a test, and has a range."""
    if test.evaluation is None:
        return f"Nothing was tested on {test.name}."
    report = result.report
    estimate = report.get_estimate(test.evaluation)
    value = _format_value(result, test.evaluation)
    if seen := report.count_seen_items(result, test):
        said = f"On {test.name} it has {value}, which is {_describe_bias(seen, test.n)}."
        weakness = report.describe_weakness(test.evaluation)
        return f"{said} Even so it is {weakness}." if weakness else said
    said = f"On {test.name}, by which nothing was selected, it has {value}"
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{said}, which has no confidence interval."
    parts = (_describe_optimism(result, test.optimism), report.describe_weakness(test.evaluation))
    return f"{': '.join(filter(None, (said, ', '.join(filter(None, parts)))))}."


def _describe_optimism(result: TuningResult, optimism: float) -> str:
    if math.isnan(optimism):
        return ""
    if optimism == 0:
        return f"the same as {result.report.basis}"
    side = "worse" if optimism > 0 else "better"
    return f"{_add_unit(result, abs(optimism))} {side} than {result.report.basis}"


def _format_value(result: TuningResult, evaluation: Any, name: str = "") -> str:
    """Return the value of the metric with its interval, behind a steadier one where it needs it."""
    report = result.report
    named = [(name, report.get_estimate(evaluation))]
    if steadier := report.get_steadier_estimate(evaluation):
        named = [steadier, (report.metric, named[0][1])]
    return " and ".join(
        " ".join(filter(None, (name, _add_interval(result, one)))) for name, one in named
    )


def _add_interval(result: TuningResult, estimate: Estimate) -> str:
    interval = join_bounds(estimate.low, estimate.high, result.report.format_value)
    return format_headline(_add_unit(result, estimate.value), interval, 0.95)


def _add_unit(result: TuningResult, value: float) -> str:
    return " ".join(filter(None, (result.report.format_value(value), result.report.unit)))


def _build_screening_blocks(result: TuningResult) -> list[str | Grid]:
    if not result.screened:
        return []
    lines = [
        f"{one.set} failed: {one.failed}"
        if one.failed and one.failed != one.discard_reason
        else f"{one.set} is not searched: {one.discard_reason}."
        for one in result.screened
        if one.discard_reason
    ]
    return [*_draw(result, "screening"), *([" ".join(lines)] if lines else [])]


def _build_nested_blocks(result: TuningResult) -> list[str | Grid]:
    if result.nested is None:
        return []
    counts = Counter(result.nested.selected)
    selected = ", ".join(f"{name} ({count} of {counts.total()})" for name, count in counts.items())
    return [*_draw(result, "nested"), f"The outer folds selected {selected}."]


def describe_model_card(result: TuningResult) -> list[Block]:
    """Return what users need beside the search: use, all metrics of the tests, and origins."""
    name, task = result.winner.name, result.report.task
    command = task.replace("tune", "predict").replace("_", "-")
    blocks: list[Block] = [PLACEHOLDER]
    for test in result.tests:
        if (found := result.evaluations.get(test.name)) is not None:
            document = found.document()
            verdict = f"On {test.name}, {_describe_selection(result, test)}: {document.verdict}"
            notes = " ".join(document.list_notes())
            blocks += [replace(document, verdict=verdict), notes]
    if getattr(result.settings, "weight_metric", False) and result.evaluations:
        blocks.append(WEIGHT_NOTE)
    origin = (
        f"Predict with: ordinate {command} --model {name}. models/{name}/manifest.json has the "
        "command, the versions of libraries, the seed, and the SHA-256 of data and files."
    )
    return [*blocks, origin]


def _describe_selection(result: TuningResult, test: HeldOutResult) -> str:
    seen = result.report.count_seen_items(result, test)
    return _describe_bias(seen, test.n) if seen else "by which nothing was selected"


def format_front_matter(result: TuningResult) -> str:
    """Return the facts that the Hugging Face hub reads, as YAML; its values are written as JSON."""
    report = result.report
    facts: dict[str, Any] = {
        "library_name": "ordinate",
        "pipeline_tag": report.pipeline_tag,
        "tags": ["ordinate", result.winner.model_type],
        "metrics": [report.metric],
        "model-index": [
            {
                "name": result.winner.title,
                "results": [
                    {
                        "task": {"type": report.pipeline_tag},
                        "dataset": {"name": name, "type": name},
                        "metrics": _list_metrics(evaluation.metrics),
                    }
                    for name, evaluation in result.evaluations.items()
                ],
            }
        ],
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(map(replace_control_characters, lines))


def _draw(result: TuningResult, name: str) -> list[Grid]:
    return [grid.drop_empty_columns() for grid in result.get_table(name).grids()]


def _describe_bias(seen: int, n: int) -> str:
    """Return why a test is optimistically biased: of so many items some were learned from."""
    share = "all" if seen == n else f"{seen:,} of"
    return f"optimistically biased: it has learned from {share} its {n:,} items"


def _format_hyperparameters(params: Mapping[str, Any]) -> str:
    """Return hyperparameters in one line."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


# --- the summary, which JSON has -----------------------------------------------------------------


def make_summary_table(summary: Sequence[Record]) -> Table:
    """Return metrics with their intervals, from plain values."""
    columns = (
        Column("key", shown=False),
        Column("title", "metric", NAME),
        Column("value", kind=UNIT_ESTIMATE, get=_parse_estimate),
        Column("unit"),
    )
    return Table("summary", "Summary", columns, summary, LEVEL)


def explain_missing_intervals(summary: Sequence[Record]) -> list[str]:
    """Say why metrics have no interval, or one that is open, where that is so."""
    found = [(row["title"], _parse_estimate(row)) for row in summary]
    return [
        f"The confidence interval of {title} is {one.note}."
        if one.is_open
        else f"No confidence interval of {title}: {one.note}."
        for title, one in found
        if one.note and (one.is_open or format_estimate_interval(one) is None)
    ]


def _parse_estimate(row: Record) -> Estimate:
    """Return a value with its confidence interval, from plain values."""
    value = math.nan if row["value"] is None else row["value"]
    open_ends = (math.nan, math.nan) if row["method"] is None else (-math.inf, math.inf)
    low, high = (
        end if row[key] is None else row[key]
        for key, end in zip(("low", "high"), open_ends, strict=True)
    )
    return Estimate(value, low, high, row["method"], note=row["note"])


# --- charts --------------------------------------------------------------------------------------


def chart_tuning(result: TuningResult) -> list[Chart]:
    """Return the views of a tuning run, and those of the tests that its task has."""
    report = result.report
    history = {
        study.title: [(x.number, x.value) for x in study.trials if x.value is not None]
        for study in result.studies
    }
    curves = {
        study.title: collect_curves(study.list_trials()["trials"], {"value": study.best.value})
        for study in result.studies
        if study.best is not None
    }
    return [
        *chart_optimism(result),
        *report.list_test_charts(result),
        *chart_history(history, report.metric, report.unit, report.direction),
        *chart_learning_curves(curves, report.metric, report.unit),
        *chart_screening(result),
    ]


def chart_screening(result: TuningResult) -> list[Chart]:
    """Return every input with the cheap model, best first."""
    report = result.report
    rows = [
        ForestRow(
            one.set,
            report.get_estimate(one.evaluation),
            format_count(one.features, "feature"),
            SHORTLISTED if one.shortlisted else DISCARDED,
        )
        for one in result.screened
        if one.evaluation is not None
    ]
    plot = _make_plot(
        result, sorted(rows, key=lambda x: _rank_value(result, x.estimate.value)), "feature set"
    )
    if not plot.shown:
        return []
    return [
        plot.make_chart(
            "screening",
            f"Feature sets with {result.screening_model}",
            f"Each feature set {report.basis} with a cheap model, with its confidence interval; "
            "the best ones are searched.",
        )
    ]


def chart_optimism(result: TuningResult) -> list[Chart]:
    """Return the finalists as they were selected, beside their values on data that select none."""
    report = result.report
    rows = [_make_row(result, x, report.get_estimate(x.evaluation)) for x in _sort(result)]
    plot = _make_plot(result, rows, "model")
    if not plot.shown:
        return []
    further = []
    if result.nested is not None:
        found = report.get_estimate(result.nested.evaluation)
        further.append(("nested", [_make_row(result, result.winner, found)]))
    for test in result.tests:
        tested = report.list_test_estimates(result, test)
        found_rows = [
            _make_row(result, x, tested[x.name]) for x in _sort(result) if x.name in tested
        ]
        further.append((test.name, found_rows))
    panels = [
        _make_plot(result, rows, "model").make_panel(name)
        for name, rows in further
        if any(not math.isnan(row.estimate.value) for row in rows)
    ]
    return [
        plot.make_chart(
            "optimism",
            f"Models {report.basis}, and on data that selected none of them",
            "Models, best first, with confidence intervals: the best of many is optimistically "
            "biased, and data that selected nothing are not.",
            panel_title=report.basis.removeprefix("by ").removeprefix("on the "),
            more=panels,
        )
    ]


def _sort(result: TuningResult) -> list[Finalist]:
    return sorted(result.finalists, key=lambda x: _rank_value(result, x.value))


def _rank_value(result: TuningResult, value: float) -> float:
    """Return a number that is the smaller the better a value is, and infinite for none."""
    if math.isnan(value):
        return math.inf
    direction = result.report.direction
    return -value if direction == "maximize" else abs(value)


def _make_row(result: TuningResult, one: Finalist, found: Estimate) -> ForestRow:
    """Return a finalist; the winner is told from the others by its mark."""
    won = WINNER if one.name == result.winner.name else ""
    return ForestRow(one.title, found, won, won)


def _make_plot(result: TuningResult, rows: Sequence[ForestRow], noun: str) -> ForestPlot:
    report = result.report
    axis = Axis(f"{report.metric}, {BETTER_VALUES[report.direction]} is better", unit=report.unit)
    return ForestPlot(rows, axis, LEVEL, noun, format_value=format_number)


def _get_hyperparameters(one: Finalist, titles: Mapping[str, str]) -> Mapping[str, Any]:
    if not one.members:
        return one.params
    members = [titles[name] for name in one.members]
    if one.weights:
        return dict(zip(members, one.weights, strict=True))
    return {"members": join_names(members)}


def _list_metrics(metrics: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": name, "value": float(one.value)}
        for name, one in metrics.items()
        if math.isfinite(one.value)
    ]
