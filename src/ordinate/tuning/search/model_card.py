"""Model cards: one page on a tuned model, after Mitchell et al., Model Cards (FAccT 2019).

A card has no numbers of its own: it evaluates what the winner predicted for the test data, which
the run wrote down, and tells how the run chose it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, shorten
from ordinate.metrics import find_metric
from ordinate.readers.item_columns import ItemTable, read_columns
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.render.reserved_paths import (
    MODELS,
    RESULTS,
    RESULTS_FILE,
    RUNS,
    TEST_PREDICTIONS_FILE,
    TRIALS_FILE,
)
from ordinate.results.arguments import select_metrics
from ordinate.results.base import SCHEMA, Origin, Record, Result, align_columns, record_call
from ordinate.results.evaluation import Evaluation, evaluate
from ordinate.results.regression import RegressionEvaluation, evaluate_regression
from ordinate.results.report_parts import ReportPart
from ordinate.results.residuals import analyse_residuals
from ordinate.summaries.normalization import Normalization
from ordinate.tuning.experiment.dataset import Dataset
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.frame_files import write_frame
from ordinate.tuning.experiment.manifest import Manifest, read_verified_manifest
from ordinate.tuning.experiment.safe_files import resolve_inside
from ordinate.tuning.search.analysis import (
    collect_histories,
    explain_missing_keys,
    name_winner,
    read_run_files,
)
from ordinate.tuning.search.model_card_text import describe_model_card
from ordinate.tuning.search.saved_models import find_winner
from ordinate.tuning.search.tuning_result import TuningResult

TestEvaluation = Evaluation | RegressionEvaluation
History = dict[str, list[tuple[int, float]]]
Column = NDArray[Any]


@dataclass(frozen=True, repr=False, eq=False)
class ModelCard(Result):
    """What is to be known of the winner of a search: data, evaluation, selection, hashes.

    `results` are those of the run, as it wrote them. `run` is its manifest, `models` are those of
    the winner and, of an ensemble, of its members.
    """

    results: Record
    run: Manifest
    models: tuple[Manifest, ...]
    evaluations: Mapping[str, TestEvaluation]  # by test
    fingerprints: Mapping[str, str]  # of test data that are files of their own
    history: History  # number and value of complete trials, by study
    intended_use: str | None = None

    @classmethod
    @record_call
    def of(
        cls,
        results: Record,
        run: Manifest,
        models: tuple[Manifest, ...],
        evaluations: Mapping[str, TestEvaluation],
        fingerprints: Mapping[str, str],
        history: History,
        intended_use: str | None,
    ) -> Self:
        """Return the card, whose report is made again from the summaries of its evaluations."""
        return cls(results, run, models, evaluations, fingerprints, history, intended_use)

    @property
    def title(self) -> str:
        """What people call the model."""
        return name_winner(self.results)

    def document(self) -> Document:
        """Return the card for people."""
        return describe_model_card(self)

    def rows(self) -> list[Record]:
        """Return one flat record for each number of the tests."""
        return align_columns(
            [
                {"test": name} | row
                for name, evaluation in self.evaluations.items()
                for row in evaluation.rows()
            ]
        )

    def to_dict(self) -> Record:
        """Return plain values."""
        results = self.results
        return {
            "schema": SCHEMA,
            "task": "card",
            "tuned_by": results["task"],
            "run": results["run"],
            "metric": results["metric"],
            "direction": results["direction"],
            "unit": results["unit"],
            "intended_use": self.intended_use,
            "settings": results["settings"],
            "data": results["data"],
            "winning": results["winning"],
            "summary": results["summary"],
            "screening": results["screening"],
            "studies": results["studies"],
            "nested": results["nested"],
            "tests": {name: one.to_dict() for name, one in self.evaluations.items()},
            "files": {model.name: model.files for model in self.models},
            "versions": self.run.versions,
            "fingerprints": {**self.run.data, **self.fingerprints},
            "command": self.run.command,
            "created": self.run.created,
            "notes": results["notes"],
        }

    def make_charts(self) -> Iterable[Chart]:
        """Yield the views of the evaluations, and the trials of the search."""
        from ordinate.tuning.search.search_charts import chart_history  # noqa: PLC0415 - start-up: a pipe shows none

        for name, evaluation in self.evaluations.items():
            for chart in evaluation.make_charts():
                variant = chart.variant
                if len(self.evaluations) > 1:
                    variant = ", ".join(filter(None, (name, variant)))
                yield replace(chart, variant=variant)
        metric, unit = self.results["metric"], self.results["unit"]
        yield from chart_history(self.history, metric, unit, self.results["direction"])


def make_model_card(
    folder: Path | str | TuningResult,
    *,
    by: str | None = None,
    table: Any = None,
    intended_use: str | None = None,
) -> ModelCard:
    """Return the model card of the winner of the latest run: of `tune` or of `tune_regression`.

    `by` is a column of the test data: subgroups that are evaluated one by one. For a regression it
    is read from the table that was learned from, or from `table`, the same one elsewhere: a file,
    or a data frame. `intended_use` is a text of yours, which a placeholder asks for without one.

    >>> from ordinate.tuning.classify import tune
    >>> from ordinate.examples import locate_example
    >>> tuned = tune(locate_example("texts"), preset="minimal", trials=1)
    >>> card = make_model_card(tuned, intended_use="Drafts of learners. Never for exams.")
    >>> card.title, [*card.evaluations]
    ('lexical/logistic', ['cefr_texts_test'])
    """
    home = Path(folder.folder if isinstance(folder, TuningResult) else folder)
    results, trials, predictions = read_run_files(
        home, RESULTS_FILE, TRIALS_FILE, TEST_PREDICTIONS_FILE
    )
    with explain_missing_keys(home):
        tests = {test["data"]: test for test in predictions["tests"]}
        read = None if by is None else _choose_reader(home, results, table, by)
        card = ModelCard.of(
            results,
            Manifest.read(resolve_inside(home, RESULTS, RUNS, results["run"])),
            _read_models(home, results["winning"]["members"]),
            {
                name: _evaluate_test(results, test, None if read is None else read(test))
                for name, test in tests.items()
            },
            {name: test["fingerprint"] for name, test in tests.items() if "fingerprint" in test},
            collect_histories(trials),
            intended_use,
        )
        _ = card.document(), card.to_dict()  # whatever is lacking, they need
    return card


def _read_models(home: Path, members: Iterable[str]) -> tuple[Manifest, ...]:
    """Return the manifests of the winner and its members, once their files are as they say."""
    names = (find_winner(home), *members)
    return tuple(read_verified_manifest(resolve_inside(home, MODELS, name)) for name in names)


# --- the tests -----------------------------------------------------------------------------------


def _evaluate_test(results: Record, test: Record, by: Column | None) -> TestEvaluation:
    """Evaluate what the winner predicted for a test: levels, or numbers."""
    found = (_evaluate_levels if "gold" in test else _evaluate_targets)(results, test, by)
    origin = Origin(found.origin.gold, name_winner(results), (test["data"],))
    return found.replace_fields(origin=origin)


def _evaluate_levels(results: Record, test: Record, by: Column | None) -> Evaluation:
    """Evaluate levels and probabilities, first of all by the metric of the search."""
    tuned = find_metric(results["metric"])
    others = [x for x in select_metrics(None) if x.expression != tuned.expression]
    return evaluate(
        test["gold"],
        test["predictions"][results["winner"]],
        results["data"]["scale"],
        [tuned, *others],
        probabilities=np.array(test["probabilities"][results["winner"]], float),
        groups=test["groups"],
        by=by,
        seed=results["settings"]["seed"],
    )


def _evaluate_targets(results: Record, test: Record, by: Column | None) -> RegressionEvaluation:
    """Evaluate predictions and their intervals, and look at the residuals."""
    stored = next(x["test"] for x in results["tests"] if x["data"] == test["data"])
    training, unit = stored["normalization"], results["unit"]
    targets, predicted = test["targets"], test["predictions"][results["winner"]]
    found = evaluate_regression(
        targets,
        predicted,
        unit=unit,
        normalization=None if training is None else Normalization(**training),
        groups=test["groups"],
        by=by,
        lower=[-math.inf if x is None else x for x in test["lower"]],
        upper=[math.inf if x is None else x for x in test["upper"]],
        alpha=results["settings"]["alpha"],
    )
    residuals = analyse_residuals(targets, predicted, unit=unit, rows=test["rows"])
    residuals = residuals.take_bias(found.metrics)
    return found.add_parts([ReportPart("residuals", residuals)])


# --- subgroups -----------------------------------------------------------------------------------


def _choose_reader(home: Path, results: Record, given: Any, by: str) -> Callable[[Record], Column]:
    """Return what reads the column of subgroups for the items of a test."""
    if "target" in results["data"]:
        table = _read_table(results["data"], given, by)
        return lambda test: _select_rows(table, results["data"], test, by)
    if given is not None:
        raise BadOption("The test data are in the folder of the experiment: leave out --table.")
    experiment = Experiment.open(home)
    return lambda test: _read_dataset_column(experiment.dataset(test["data"]), test, by)


def _read_dataset_column(dataset: Dataset, test: Record, by: str) -> Column:
    """Return a column of the test data for the items that were tested."""
    if dataset.fingerprint != test["fingerprint"]:
        raise _explain_change(dataset.path)
    return dataset.read_column(by)[np.array(test["rows"]) - 1]


def _read_table(facts: Record, given: Any, by: str) -> ItemTable:
    """Return the target and a further column of the table that was learned from."""
    if given is not None and not isinstance(given, str | Path):
        with write_frame(given) as written:
            return _read_table(facts, written, by)
    path = facts["path"] if given is None else str(given)
    if given is None and (path is None or not Path(path).is_file()):
        lacking = "A data frame was learned from" if path is None else f"{path} is not there"
        raise BadInput(
            f"{lacking}, and the column {shorten(by)} is in it: name the table (--table)."
        )
    return read_columns([path], [facts["target"]], labels=[by])


def _select_rows(table: ItemTable, facts: Record, test: Record, by: str) -> Column:
    """Return the subgroups of the rows that were tested, if these have the targets of then."""
    rows, targets = np.array(test["rows"]) - 1, table[facts["target"]]
    same = len(table) == facts["n"]
    if same and isinstance(targets, np.ndarray):  # true and false are texts
        same = np.array_equal(targets[rows], test["targets"])
    if not same:
        raise _explain_change(table.files[0])
    return table.labels[by][rows]


def _explain_change(path: Path | str) -> BadInput:
    return BadInput(
        f"{shorten(str(path))} is not what the model was tested on, so that its subgroups are not "
        "known. Restore the file, or tune again."
    )
