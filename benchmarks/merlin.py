"""Tuned models on German learner essays (MERLIN), against TF-IDF and against length alone.

    python benchmarks/merlin.py FILE --write docs/studies/merlin.md     most of an hour
    python benchmarks/merlin.py FILE --quick                    a smoke test

FILE is a CSV of MERLIN's German texts with the columns id, cefr, text. The design was fixed before
the first run: folds, seeds, feature sets, models, trials and metrics.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

import argparse
import csv
import platform
import tempfile
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from essays import FOLDS, Essays, counted, folds, read
from ordinate.metrics import find_metric
from ordinate.results.comparison_settings import ComparisonSettings, resolve_settings
from ordinate.results.leaderboard import Leaderboard, PanelLeaderboardBuilder
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.tuning.classify.decision_rules import METRIC_OPTIMAL, CalibrationPlan
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.task import ClassificationTask
from ordinate.tuning.classify.trained_model import load_model
from ordinate.tuning.classify.training_data import TrainingData
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.workers import WorkerPool
from ordinate.tuning.features import extract_features
from ordinate.tuning.features.lexical import Lexical
from ordinate.tuning.features.tfidf import Tfidf
from ordinate.tuning.search.saved_models import save_candidates, save_ensemble
from ordinate.tuning.search.selection import select_model
from ordinate.tuning.search.task import Ensemble, Selected
from writing import Table, log, markdown, processor, wrapped

Array = NDArray[Any]
SEEDS, TRIALS, PROCESSES = (0, 1), 8, 2
METRICS = {"quadratic_kappa": "QWK", "cem_ord": "CEM", "mae": "MAE", "accuracy": "accuracy"}
TUNED, WORDS, LETTERS, LENGTH = "tuned", "word TF-IDF", "character TF-IDF", "length alone"
SYSTEMS = (TUNED, WORDS, LETTERS, LENGTH)
SETTINGS = Settings(
    metric="cem_ord", models="logistic,threshold,vote", trials=TRIALS, jobs=PROCESSES
)


# --- what tuning is compared with ----------------------------------------------------------------


def plain(essays: Essays, train: Array, test: Array) -> dict[str, Array]:
    """Return the predictions of logistic regression with its defaults, on three feature sets."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    features = {
        WORDS: TfidfVectorizer(),
        LETTERS: TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5)),
        LENGTH: FunctionTransformer(lambda texts: np.log([[1 + len(text)] for text in texts])),
    }
    predictions = {}
    for name, extractor in features.items():
        model = make_pipeline(extractor, LogisticRegression(max_iter=1000))
        model.fit([essays.texts[k] for k in train], essays.levels[train])
        predictions[name] = model.predict([essays.texts[k] for k in test])
    return predictions


# --- tuning --------------------------------------------------------------------------------------


def tuned(
    essays: Essays, train: Array, test: Array, settings: Settings
) -> tuple[dict[str, Array], str]:
    """Tune on the training set alone; return the test predictions by metric, and the winner."""
    with tempfile.TemporaryDirectory() as folder:
        experiment = laid_out(essays, train, test, Path(folder))
        training = TrainingData.of(experiment, scale="cefr")
        with WorkerPool(settings.jobs) as workers:
            task = ClassificationTask(
                root=Path(folder), settings=settings, workers=workers, training=training
            )
            winner = select_model(task).winner
            return _decoded(task, winner), winner.title


def _decoded(task: ClassificationTask, winner: Selected) -> dict[str, Array]:
    """Return the test predictions of the winner, decoded for each metric out of fold."""
    experiment, scale = task.training.experiment, task.training.scale
    origin = {"run": "merlin", "command": "merlin"}
    (name, *_) = save_candidates(task, winner.members, **origin)
    if isinstance(winner, Ensemble):
        name = save_ensemble(task, winner, **origin)
    model = load_model(experiment, name)
    outputs = model.compute_outputs({one: experiment.features(one, "test") for one in model.sets})
    predictions = {}
    for metric in METRICS:
        if isinstance(winner, Ensemble):
            winner = replace(winner, rule=CalibrationPlan(scale, find_metric(metric)))
        for_metric = replace(task, settings=replace(task.settings, metric=metric))
        calibration = for_metric.fit_calibration(winner)
        predictions[metric] = calibration.levels_by_rule(outputs)[METRIC_OPTIMAL]
    return predictions


def laid_out(essays: Essays, train: Array, test: Array, folder: Path) -> Experiment:
    """Lay out an experiment: two sets of TF-IDF, and lexical features."""
    for stem, rows, where in (("train", train, "ml-training-data"), ("test", test, "ml-test-data")):
        _write(
            folder / where / f"{stem}.csv",
            ["id", "level", "text"],
            [[essays.ids[k], essays.labels[k], essays.texts[k]] for k in rows],
        )
    experiment = Experiment.open(folder)
    extract_features(experiment, Tfidf("word"))
    extract_features(experiment, Tfidf("char_wb", ngrams=(2, 5)), "tfidf-char")
    extract_features(experiment, Lexical("de"), "lexical")
    return Experiment.open(folder)


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([header, *rows])


# --- what was found ------------------------------------------------------------------------------


class Run(NamedTuple):
    """One repetition: the predictions of each system for each metric, and what tuning chose."""

    seed: int
    predictions: dict[str, dict[str, Array]]  # by metric, then by system
    winners: list[str]


def run(essays: Essays, seed: int, settings: Settings, parts: int) -> Run:
    """Answer every essay out of fold."""
    nowhere = {name: np.full(len(essays.ids), -1) for name in SYSTEMS}
    predictions = {metric: {name: x.copy() for name, x in nowhere.items()} for metric in METRICS}
    winners = []
    for number, (train, test) in enumerate(folds(essays.levels, seed), 1):
        if number > parts:
            break
        start = time.perf_counter()
        others = plain(essays, train, test)
        found, winner = tuned(essays, train, test, replace(settings, seed=seed))
        for metric, own in predictions.items():
            for name, column in own.items():
                column[test] = found[metric] if name == TUNED else others[name]
        winners.append(winner)
        log(f"seed {seed}, fold {number}: {winner} ({time.perf_counter() - start:.0f} s)")
    return Run(seed, predictions, winners)


def board(essays: Essays, runs: list[Run], metric: str) -> Leaderboard:
    """Return the leaderboard of a metric; an essay comes once for each seed, and is drawn whole."""
    n = len(essays.ids)
    predicted = [run.predictions[metric][TUNED] >= 0 for run in runs]  # all, but for a quick run
    essay = np.concatenate([np.arange(n)[there] for there in predicted])
    systems = {
        name: np.concatenate(
            [
                one.predictions[metric][name][there]
                for one, there in zip(runs, predicted, strict=True)
            ]
        )
        for name in SYSTEMS
    }
    labels = np.array(essays.scale.labels)
    panel = Panel.of(
        labels[essays.levels[essay]],
        {name: labels[column] for name, column in systems.items()},
        essays.scale,
        groups=Groups(list(range(n)), essay),
    )
    how = resolve_settings(panel.systems, ComparisonSettings(against=TUNED))
    return PanelLeaderboardBuilder(panel, [find_metric(metric)], how, None).all()[metric]


def page(essays: Essays, runs: list[Run]) -> str:
    """Return the whole page in Markdown."""
    boards = {metric: board(essays, runs, metric) for metric in METRICS}
    used = ", ".join(
        f"{name} {version(name)}" for name in ("ordinate", "numpy", "scikit-learn", "optuna")
    )
    levels = counted(essays.levels, essays.scale)
    parts = [
        "# Tuned models on learner essays",
        wrapped(METHOD.format(trials=TRIALS, folds=FOLDS)),
        wrapped(f"{len(essays.ids):,} essays: {levels}. {SOURCE}"),
        wrapped(f"Versions: Python {platform.python_version()}, {used}. {processor()}."),
        "## Result",
        wrapped(verdict(boards)),
        "### Values",
        markdown(["system", *METRICS.values()], values(boards)),
        "### Tuned minus the others",
        wrapped(APART),
        markdown(["tuned minus", *METRICS.values()], differences(boards)),
        "## What tuning chose",
        markdown(["seed", "fold", "winner by cross-validation"], chosen(runs)),
    ]
    return "\n\n".join(parts) + "\n"


METHOD = (
    "`python benchmarks/merlin.py FILE --write docs/studies/merlin.md` writes this page. The "
    "design was fixed before the first run: two repetitions (seeds 0 and 1) of {folds} stratified "
    "folds. On each training set alone, `ordinate features` extracts three feature sets: TF-IDF "
    "of words (1..2), TF-IDF of characters within words (2..5), and lexical features (lengths, "
    "word frequencies, type-token ratios, readability). All three are screened, then searched "
    "with logistic regression and the ordinal threshold model, {trials} trials each, for "
    "`cem_ord`, with {folds} folds inside the training set; the soft vote of the best is a "
    "candidate, too. The winner is refitted, and decoded for each metric separately on its "
    "out-of-fold predictions. It is compared with logistic regression with its defaults on "
    "scikit-learn's default TF-IDF of words, on TF-IDF of characters within words (2..5), and on "
    "the logarithm of the number of characters alone, each by argmax."
)
SOURCE = (
    "The texts are the German part of MERLIN (CC BY-SA 4.0), which is not part of this repository."
)
APART = (
    "Differences on the same essays with simultaneous 95 % intervals for the three comparisons of "
    "a metric (max-T); items are resampled with their predictions in both repetitions. The "
    "intervals do not include the variance from other training essays. For MAE lower is better. "
    "Bold: tuned is significantly better."
)


def values(boards: dict[str, Leaderboard]) -> Table:
    """Return the value of each system on each metric."""
    rows = []
    for system in SYSTEMS:
        cells = []
        for found in boards.values():
            one = found.get_standing(system).estimate
            cells.append(f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})")
        rows.append([system, *cells])
    return rows


def differences(boards: dict[str, Leaderboard]) -> Table:
    """Return tuned minus each other system."""
    rows = []
    for other in SYSTEMS[1:]:
        cells = []
        for found in boards.values():
            value, low, high = _apart(found, other)
            sign = 1.0 if found.metric.direction == "maximize" else -1.0
            text = f"{value:+.3f} ({low:+.3f} to {high:+.3f})"
            cells.append(f"**{text}**" if min(sign * low, sign * high) > 0 else text)
        rows.append([other, *cells])
    return rows


def _apart(found: Leaderboard, other: str) -> tuple[float, float, float]:
    """Return tuned minus another system, with its confidence interval."""
    (pair,) = [pair for pair in found.pairs if {pair.first, pair.second} == {TUNED, other}]
    if pair.first == TUNED:
        return pair.difference.value, pair.difference.low, pair.difference.high
    return -pair.difference.value, -pair.difference.high, -pair.difference.low


def verdict(boards: dict[str, Leaderboard]) -> str:
    """Say whether what was expected came true."""
    sure = []
    for name, found in boards.items():
        _, low, high = _apart(found, WORDS)
        sign = 1.0 if found.metric.direction == "maximize" else -1.0
        if min(sign * low, sign * high) > 0:
            sure.append(METRICS[name])
    short = [name for name in METRICS.values() if name not in sure]
    met = f"Met for {', '.join(sure)}." if sure else "Met for no metric."
    missed = f" **Missed** for {', '.join(short)}." if short else ""
    return (
        "Expected in advance: the tuned model is significantly better than TF-IDF of words with "
        f"logistic regression. {met}{missed}"
    )


def chosen(runs: list[Run]) -> Table:
    """Return what won, fold by fold."""
    return [
        [str(one.seed), str(number), winner]
        for one in runs
        for number, winner in enumerate(one.winners, 1)
    ]


def main() -> None:
    """Run everything, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure what tuning gains on learner essays.")
    parser.add_argument("file", type=Path, help="CSV with the columns id, cefr, text")
    parser.add_argument("--quick", action="store_true", help="one fold of one seed, few trials")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    essays = read(options.file)
    settings = replace(SETTINGS, trials=2) if options.quick else SETTINGS
    seeds, parts = (SEEDS[:1], 1) if options.quick else (SEEDS, FOLDS)
    text = page(essays, [run(essays, seed, settings, parts) for seed in seeds])
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
