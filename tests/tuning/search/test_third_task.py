"""A third task, counts with the Poisson deviance: what a task says, and what it gets for that.

All that is particular about it stands here: settings, a fit, the task, its report, and how saved
models are loaded. Search, resume, nested estimate, saved models and results are those of any task.
"""

import importlib
import multiprocessing
import os
import signal
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from search_cases import read_untimed_files

from ordinate.errors import BadStore
from ordinate.inference.estimates import Estimate
from ordinate.render import render
from ordinate.tuning.experiment.safe_files import compute_digest
from ordinate.tuning.search import hyperparameter_search
from ordinate.tuning.search.fits import Fit, FitOutputs, OutOfTime
from ordinate.tuning.search.saved_models import MODEL_FOLDER, read_description, resolve_model_name
from ordinate.tuning.search.settings import Preset, SearchSettings
from ordinate.tuning.search.task import Score, StudyKey, Task
from ordinate.tuning.search.time_budget import TimeBudget
from ordinate.tuning.search.tuning import RunOrigin, open_workers, plan_search, run_search
from ordinate.tuning.search.tuning_result import TaskReport

# --- the task ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CountSettings(SearchSettings):
    """Two model types, and nothing to set beside what all searches have."""

    PRESETS: ClassVar = dict.fromkeys(
        ("minimal", "balanced", "thorough"), Preset(("constant", "ridge"), trials=6, folds=3)
    )

    @classmethod
    def list_model_types(cls):
        return ["constant", "ridge"]


class Counts(NamedTuple):
    """What is learned from: features [N, d], and how often something happened [N]."""

    features: Any
    counts: Any

    @property
    def n(self):
        return len(self.counts)

    def to_dict(self):
        return {"n": self.n}


@dataclass(frozen=True, eq=False, kw_only=True)
class CountFit(Fit):
    """Weights of the logarithm of the rate: of a constant alone, or of all features."""

    model_type: str
    params: dict
    rows: Any
    new: Any

    def run(self, kept):
        features, counts = (column[self.rows] for column in kept["counts"])
        weights = np.zeros(1 + features.shape[1])
        weights[0] = np.log(counts.mean())
        if self.model_type == "ridge":
            x, y = features - features.mean(axis=0), np.log(counts + 0.5)
            penalty = self.params["penalty"] * np.eye(x.shape[1])
            weights[1:] = np.linalg.solve(x.T @ x + penalty, x.T @ y)
            weights[0] += np.log(counts.sum() / predict_rates(weights, features).sum())
        if self.folder:
            Path(self.folder).mkdir()
            np.save(Path(self.folder) / "weights.npy", weights)
        new = kept["counts"].features[[] if self.new is None else self.new]
        return FitOutputs(predict_rates(weights, new))


@dataclass(frozen=True, eq=False, kw_only=True)
class CountTask(Task):
    """Counts, or some of them, with rates that predict them."""

    name = "counts"
    metric = "deviance"

    data: Counts
    rows: Any

    def __post_init__(self):
        self.workers.keep("counts", self.data)

    @cached_property
    def folds(self):
        order = np.random.default_rng(self.settings.seed).permutation(len(self.rows))
        return np.array_split(order, self.settings.folds)

    def get_rows(self, places):
        return self.rows[places]

    def restrict_to_rest(self, fold, subset):
        return replace(self, rows=np.delete(self.rows, fold), subset=subset, best_trials={})

    def get_space(self, model_type):
        if model_type == "constant":
            return lambda _: {}, [{}]
        return (
            lambda trial: {"penalty": trial.suggest_float("penalty", 1e-3, 1e3, log=True)},
            [{"penalty": 1.0}],
        )

    def make_fit(self, candidate, rows, new):
        _, model_type, params = candidate
        return CountFit(model_type=model_type, params=params, rows=rows, new=new)

    def score(self, predictions):
        counts = self.data.counts[self.rows]
        return Score(float(compute_deviances(counts, predictions).mean()), {})

    def evaluate(self, predictions):
        deviances = compute_deviances(self.data.counts[self.rows], predictions)
        value, error = float(deviances.mean()), float(deviances.std() / np.sqrt(len(deviances)))
        return Estimate(value, value - 1.96 * error, value + 1.96 * error, "normal")

    def fingerprint(self, inputs):
        del inputs
        return {"counts": compute_digest([column.tolist() for column in self.data])}

    report = property(lambda _: CountReport())


class CountReport(TaskReport):
    """All words are those of any task."""

    task, metric, direction = "tune_counts", "deviance", "minimize"


def compute_deviances(counts, rates):
    ratios = np.log(np.where(counts > 0, counts, 1.0) / rates)
    return 2.0 * (counts * np.where(counts > 0, ratios, 0.0) - (counts - rates))


def predict_rates(weights, features):
    return np.exp(weights[0] + features @ weights[1:])


def open_task(data, root, settings, workers):
    budget = TimeBudget(settings.timeout, settings.folds, settings.jobs)
    shared = {"root": root, "settings": settings, "workers": workers, "budget": budget}
    return CountTask(data=data, rows=np.arange(data.n), **shared)


def tune_counts(data, root, **options):
    settings = CountSettings(**options)
    with open_workers(root, settings, "count", "tune_counts") as workers:
        task = open_task(data, root, settings, workers)
        return run_search(task, data, RunOrigin("tune_counts"))


def load_weights(root, name=None):
    folder, *_ = read_description(root, resolve_model_name(root, name), CountTask.name)
    return np.load(folder / MODEL_FOLDER / "weights.npy")


# --- what it gets --------------------------------------------------------------------------------


def draw_counts(n=60):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 2))
    return Counts(features, rng.poisson(np.exp(1.0 + features @ [0.8, -0.4])).astype(float))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("counts")
    return root, tune_counts(draw_counts(), root)


@pytest.fixture
def importable(monkeypatch):
    """This module, by a name that other processes find."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return importlib.import_module(Path(__file__).stem)


def test_the_best_model_wins_by_cross_validation(finished):
    _, result = finished
    constant, ridge = result.finalists
    assert result.winner is ridge
    assert ridge.value < 0.5 * constant.value
    assert ridge.evaluation.low < ridge.value < ridge.evaluation.high
    assert [len(study.trials) for study in result.studies] == [6, 6]
    assert ridge.value == min(trial.value for trial in result.studies[1].trials)


def test_results_are_written_and_reported_in_every_form(finished):
    root, result = finished
    assert (root / "results/summary.md").read_text() == render(result, "markdown")
    text = " ".join(render(result, "text").split())
    assert f"Tuned for deviance on {result.source.n} items" in text
    assert "The best model is ridge: deviance " in text
    assert "penalty=" in result.to_markdown()
    assert {row["stage"] for row in result.rows()} == {"search"}
    plain = result.to_dict()
    assert (plain["task"], plain["winner"]) == ("tune_counts", result.winner.name)
    assert all(render(result, form) for form in ("json", "csv", "latex"))


def test_a_saved_model_is_found_verified_and_predicts(finished, tmp_path):
    root, result = finished
    data = draw_counts()
    fit = CountFit(model_type="ridge", params=result.winner.params, rows=np.arange(60), new=None)
    fit = replace(fit, folder=str(tmp_path / "model"))
    fit.run({"counts": data})
    expected = predict_rates(np.load(tmp_path / "model/weights.npy"), data.features)
    assert np.array_equal(predict_rates(load_weights(root), data.features), expected)
    assert np.corrcoef(expected, data.counts)[0, 1] > 0.7
    assert np.array_equal(load_weights(root, "constant")[1:], [0.0, 0.0])


def test_a_saved_model_that_was_changed_is_refused(tmp_path):
    data = draw_counts()
    result = tune_counts(data, tmp_path, trials=1)
    path = tmp_path / "models" / result.winner.name / "model/weights.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    for again in (lambda: load_weights(tmp_path), lambda: tune_counts(data, tmp_path, trials=1)):
        with pytest.raises(BadStore, match=r"weights.npy' .* is not what its manifest.json lists"):
            again()


def test_the_same_again_makes_no_fit_and_changes_no_file(finished, monkeypatch):
    root, result = finished
    before = read_untimed_files(root)
    monkeypatch.setattr(CountFit, "run", lambda *_: pytest.fail("fitted again"))
    assert tune_counts(draw_counts(), root).to_dict() == result.to_dict()
    assert read_untimed_files(root) == before


def test_more_processes_change_nothing(finished, importable, tmp_path):
    importable.tune_counts(importable.draw_counts(), tmp_path, jobs=2)
    assert read_untimed_files(tmp_path) == read_untimed_files(finished[0])


def test_a_nested_estimate_repeats_the_selection(finished, tmp_path):
    result = tune_counts(draw_counts(), tmp_path, trials=2, nested=True)
    assert result.nested.selected == ("ridge",) * 3
    assert 0.5 < result.nested.value / finished[1].winner.value < 2.0


def test_given_hyperparameters_a_timeout_and_a_plan_are_those_of_any_task(tmp_path):
    data = draw_counts()
    given = tune_counts(data, tmp_path, models="ridge", params={"ridge": {"penalty": 2.0}})
    assert [trial.params for trial in given.studies[0].trials] == [{"penalty": 2.0}]
    with pytest.raises(OutOfTime, match=r"\(--timeout 0\) was over before any model was fitted"):
        tune_counts(data, tmp_path / "late", timeout=0.0)
    with open_workers(
        tmp_path / "plan", settings := CountSettings(), "plan", "tune_counts"
    ) as workers:
        plan = plan_search(open_task(data, tmp_path, settings, workers), data, [])
    assert plan.fits == {"search": 36, "finalists": 8}


# --- killed --------------------------------------------------------------------------------------


def tune_and_die(root, module, function, count):
    """Kill this process when a function is called for the nth time."""
    module = importlib.import_module(module)
    call, calls = getattr(module, function), []

    def kill_at_last(*given, **options):
        calls.append(given)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **options)

    setattr(module, function, kill_at_last)
    tune_counts(draw_counts(), root)


def list_trials(root):
    """Return the trials that are stored."""
    with open_workers(root, settings := CountSettings(), "list", "tune_counts") as workers:
        task = open_task(draw_counts(), root, settings, workers)
        keys = [StudyKey("", model_type) for model_type in settings.model_types]
        studies = {key: hyperparameter_search._open_study(task, key) for key in keys}
    return {(key, trial.number) for key, study in studies.items() for trial in study.trials}


@pytest.mark.parametrize(
    ("module", "function", "count"),
    [
        ("hyperparameter_search", "_finish_trial", 4),
        ("hyperparameter_search", "_start_trial", 10),
        ("saved_models", "_write_model", 2),
        ("tuning", "_write_run", 1),
    ],
)
def test_a_search_that_was_killed_goes_on_to_the_same_end(
    finished, importable, tmp_path, monkeypatch, module, function, count
):
    process = multiprocessing.get_context("forkserver").Process(
        target=importable.tune_and_die,
        args=(tmp_path, f"ordinate.tuning.search.{module}", function, count),
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    stored, made, start = list_trials(tmp_path), set(), hyperparameter_search._start_trial

    def start_logged(task, key, pending, end):
        made.add((key, pending.number))
        return start(task, key, pending, end)

    monkeypatch.setattr(hyperparameter_search, "_start_trial", start_logged)
    tune_counts(draw_counts(), tmp_path)
    assert not stored & made
    assert len(stored | made) == 12
    assert read_untimed_files(tmp_path) == read_untimed_files(finished[0])
    assert not list(tmp_path.rglob(".ordinate-*"))
