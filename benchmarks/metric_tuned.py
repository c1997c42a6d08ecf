"""Benchmark of MetricTunedClassifierCV on real data: the same estimator's argmax against it.

    python benchmarks/metric_tuned.py --write docs/studies/metric-tuned-classifiers.md   ten minutes
    python benchmarks/metric_tuned.py --quick                                     a smoke test

The design was fixed before the first run: data sets, models, seeds and folds are those of the
decoding benchmark, the metric is QWK, and the classifier has its default options.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

import argparse
import platform
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.model_selection import StratifiedKFold

import decoding
from decoding import ARGMAX, DATA, FOLDS, MODELS, PROCESSES, SEEDS, Found, Run, cells, folds
from ordinate.integrations.sklearn import MetricTunedClassifierCV
from writing import Table, log, markdown, processor, wrapped

METRIC, TUNED = "quadratic_kappa", "tuned"
EXPECTED = 0.8  # share of the pairs in which the tuned classifier should not be worse
SAME = 1e-12


def run(name: str, model: str, seed: int) -> Run:
    """Predict every item out of fold, by the estimator and by the tuned classifier around it."""
    start, data = time.perf_counter(), DATA[name]()
    predictions = {rule: np.full(len(data.levels), -1) for rule in (ARGMAX, TUNED)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of solvers that stop early, and of rare levels
            for train, test in folds(data.levels, seed):
                tuned = MetricTunedClassifierCV(
                    MODELS[model](seed),
                    METRIC,
                    scale=range(data.size),
                    cv=StratifiedKFold(FOLDS, shuffle=True, random_state=seed),
                )
                tuned.fit(data.features[train], data.levels[train])
                predictions[TUNED][test] = tuned.predict(data.features[test])
                predictions[ARGMAX][test] = tuned.estimator_.predict(data.features[test])
    except Exception as problem:  # noqa: BLE001 - whatever a model says is published
        return Run(name, model, seed, predictions, {}, f"{type(problem).__name__}: {problem}")
    return Run(name, model, seed, predictions, {}, seconds=time.perf_counter() - start)


def page(runs: list[Run]) -> str:
    """Return the whole page in Markdown."""
    by_pair: dict[tuple[str, str], list[Run]] = {}
    for one in runs:
        by_pair.setdefault((one.data, one.model), []).append(one)
    differences = {
        pair: decoding.difference(decoding.leaderboards(found, TUNED, [METRIC])[METRIC])
        for pair, found in by_pair.items()
        if all(one.failed is None for one in found)
    }
    failed = [f"- {x.data}, {x.model}, seed {x.seed}: {x.failed}" for x in runs if x.failed]
    used = ", ".join(
        f"{name} {version(name)}"
        for name in ("ordinate", "numpy", "scikit-learn", "lightgbm", "skordinal", "statsmodels")
    )
    rows: Table = [[*pair, *cells(found)] for pair, found in differences.items()]
    head = ["data", "model", "argmax", "tuned", "difference", "95 % interval", ""]
    seeds = ", ".join(map(str, sorted({one.seed for one in runs})))
    return (
        "\n\n".join(
            [
                "# Benchmark: classifiers tuned for a metric",
                wrapped(METHOD.format(seeds=seeds, folds=FOLDS)),
                wrapped(decoding.DATA_SETS),
                wrapped(f"Versions: Python {platform.python_version()}, {used}. {processor()}."),
                "## Result",
                *verdicts(differences),
                "\n".join(
                    ["Could not be fitted:", "", *failed] if failed else ["All models fitted."]
                ),
                "## Every pair",
                markdown(head, rows),
            ]
        )
        + "\n"
    )


METHOD = (
    "`python benchmarks/metric_tuned.py --write docs/studies/metric-tuned-classifiers.md` writes "
    "this page. The design was fixed before the first run, and every pair of data set and model is "
    "shown: data sets, models, seeds ({seeds}) and {folds} outer stratified folds are those of the "
    "[decoding benchmark](decoding-benchmark.md). In each fold "
    '`MetricTunedClassifierCV(model, "quadratic_kappa", scale=…, cv=…)` is fitted to the '
    "training set, with {folds} inner shuffled stratified folds and default options otherwise "
    "(temperature scaling). Argmax is what the model inside it, fitted to the same training set, "
    "predicts for the test set. A difference is tuned minus argmax on the confusion matrix of all "
    "test predictions of all seeds. Its 95 % confidence interval resamples items, each with its "
    "predictions in all seeds; it does not include the variance from other training items."
)


def verdicts(differences: dict[tuple[str, str], Found]) -> list[str]:
    """Return in how many pairs the tuned classifier is not worse, and the mean gain."""
    gains = {pair: found.gain for pair, found in differences.items()}
    fine = [gain >= -SAME for gain in gains.values()]
    share = float(np.mean(fine)) if fine else 0.0
    met = "met" if share >= EXPECTED else "**missed**"
    significant = [
        sum(one.significant and sign * one.gain > 0 for one in differences.values())
        for sign in (1, -1)
    ]
    first = (
        f"Expected in advance: not worse than argmax on QWK in at least {EXPECTED:.0%} of the "
        f"pairs. Measured: {share:.0%} ({sum(fine)} of {len(fine)}), {met}. Significantly better "
        f"in {significant[0]}, significantly worse in {significant[1]}: the 95 % confidence "
        "interval of the difference excludes 0."
    )
    by_data = [
        np.mean([gain for pair, gain in gains.items() if pair[0] == name])
        for name in dict.fromkeys(pair[0] for pair in gains)
    ]
    mean, n = float(np.mean(by_data)), len(by_data)
    half = float(stats.t.ppf(0.975, n - 1) * np.std(by_data, ddof=1) / np.sqrt(n))
    second = (
        f"Mean gain in QWK: {mean:+.3f}, 95 % confidence interval {mean - half:+.3f} to "
        f"{mean + half:+.3f}: Student's t over the {n} data sets, each with the mean of its "
        "models, because models share the items of a data set."
    )
    return [wrapped(first), wrapped(second)]


def main() -> None:
    """Run everything, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure what tuning for a metric gains.")
    parser.add_argument("--quick", action="store_true", help="one seed, two data sets, one model")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    wanted = [(d, m, s) for d in DATA for m in MODELS for s in SEEDS]
    if options.quick:
        wanted = [("ESL", "logistic regression", 0), ("diabetes", "logistic regression", 0)]
    runs = []
    with ProcessPoolExecutor(PROCESSES) as pool:
        for done in pool.map(run, *zip(*wanted, strict=True)):
            runs.append(done)
            log(
                f"{len(runs)}/{len(wanted)} {done.data}, {done.model}, seed {done.seed}: "
                f"{done.failed or f'{done.seconds:.0f} s'}"
            )
    text = page(runs)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
