"""Benchmark of metric-optimal decoding on real data: argmax against each decoder.

    python benchmarks/decoding.py --write docs/studies/decoding-benchmark.md     some six minutes
    python benchmarks/decoding.py --quick                                a smoke test

The design was fixed before the first run: data sets, models, seeds, folds and metrics.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

import argparse
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate import Scale
from ordinate.errors import BadOption
from ordinate.metrics import find_metric
from ordinate.postprocess.decoder import Decoder
from ordinate.results.comparison_settings import ComparisonSettings, resolve_settings
from ordinate.results.leaderboard import Leaderboard, PanelLeaderboardBuilder
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from writing import Table, log, markdown, processor, wrapped

Array = NDArray[Any]
SEEDS, FOLDS, PROCESSES = (0, 1, 2), 5, 2
DECODED = ("quadratic_kappa", "mae", "cem_ord", "accuracy")
NAMES = {"quadratic_kappa": "QWK", "mae": "MAE", "cem_ord": "CEM", "accuracy": "accuracy"}
ARGMAX = "argmax"
EXPECTED = 0.8  # share of the pairs in which decoding for QWK should be better


# --- data ----------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Features, and levels as integers from 0."""

    features: Array
    levels: Array
    size: int


def _skordinal(name: str) -> Data:
    from skordinal import datasets

    found = getattr(datasets, f"load_{name}")()
    return Data(found.data, found.target, len(found.target_names))


def _fair() -> Data:
    from statsmodels.datasets import fair

    data = fair.load_pandas().data
    levels = data["rate_marriage"].to_numpy(int) - 1
    return Data(data.drop(columns="rate_marriage").to_numpy(float), levels, 5)


def _anes96() -> Data:
    from statsmodels.datasets import anes96

    found = anes96.load_pandas()
    return Data(found.exog.to_numpy(float), found.endog.to_numpy(int), 7)


def _diabetes() -> Data:
    from sklearn.datasets import load_diabetes

    features, target = load_diabetes(return_X_y=True)
    edges = np.linspace(target.min(), target.max(), 6)[1:-1]
    return Data(features, np.digitize(target, edges), 5)


DATA: dict[str, Callable[[], Data]] = {
    "balance scale": lambda: _skordinal("balance_scale"),
    "ERA": lambda: _skordinal("era"),
    "ESL": lambda: _skordinal("esl"),
    "LEV": lambda: _skordinal("lev"),
    "SWD": lambda: _skordinal("swd"),
    "fair": _fair,
    "anes96": _anes96,
    "diabetes": _diabetes,
}


# --- models --------------------------------------------------------------------------------------


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(random_state=seed))


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed, n_jobs=1)


def _boosting(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbosity=-1)


MODELS: dict[str, Callable[[int], Any]] = {
    "logistic regression": _logistic,
    "random forest": _forest,
    "LightGBM": _boosting,
}


def folds(levels: Array, seed: int) -> Iterator[tuple[Array, Array]]:
    """Return the rows to train and to test on, five times."""
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a level has fewer items than folds
        yield from StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(levels, levels)


def probabilities(model: Any, data: Data, train: Array, test: Array) -> Array:
    """Return the probabilities of all levels; one that training lacks has none."""
    model.fit(data.features[train], data.levels[train])
    found = np.zeros((len(test), data.size))
    found[:, model.classes_] = model.predict_proba(data.features[test])
    return found / found.sum(axis=1, keepdims=True)


# --- one run -------------------------------------------------------------------------------------


class Run(NamedTuple):
    """The predictions of one model in one seed: an array of positions for each decision rule."""

    data: str
    model: str
    seed: int
    predictions: dict[str, Array]
    refused: dict[str, int]  # folds in which a decoder could not be fitted, and argmax stands
    failed: str | None = None
    seconds: float = 0.0


def run(name: str, model: str, seed: int) -> Run:
    """Answer every item out of fold, by argmax and decoded."""
    start, data = time.perf_counter(), DATA[name]()
    predictions = {way: np.full(len(data.levels), -1) for way in (ARGMAX, *DECODED)}
    refused = dict.fromkeys(DECODED, 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of solvers that stop early, as they do by default
            for train, test in folds(data.levels, seed):
                _fold(data, model, seed, train, test, predictions, refused)
    except Exception as problem:  # noqa: BLE001 - whatever a model says is published
        return Run(name, model, seed, predictions, refused, f"{type(problem).__name__}: {problem}")
    return Run(name, model, seed, predictions, refused, seconds=time.perf_counter() - start)


def _fold(
    data: Data,
    model: str,
    seed: int,
    train: Array,
    test: Array,
    predictions: dict[str, Array],
    refused: dict[str, int],
) -> None:
    inner = np.zeros((len(train), data.size))
    for fitted, held in folds(data.levels[train], seed):
        inner[held] = probabilities(MODELS[model](seed), data, train[fitted], train[held])
    outer = probabilities(MODELS[model](seed), data, train, test)
    predictions[ARGMAX][test] = outer.argmax(axis=1)
    scale = Scale(range(data.size))
    for metric in DECODED:
        try:
            decoder = Decoder(metric, scale).fit(inner, data.levels[train])
            predictions[metric][test] = decoder.predict_positions(outer)
        except BadOption:
            predictions[metric][test] = predictions[ARGMAX][test]
            refused[metric] += 1


# --- what was found ------------------------------------------------------------------------------


class Found(NamedTuple):
    """Decoded minus argmax on one metric, over all seeds, with its interval."""

    argmax: float
    decoded: float
    low: float
    high: float
    gain: float  # the difference, above 0 where decoding is better

    @property
    def significant(self) -> bool:
        """Whether the confidence interval excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def difference(self) -> float:
        """Decoded minus argmax."""
        return self.decoded - self.argmax


def compared(runs: list[Run]) -> dict[tuple[str, str], Found]:
    """Return the difference for each decoder and each metric; an item comes once for each seed."""
    return {
        (decoder, name): difference(board)
        for decoder in DECODED
        for name, board in leaderboards(runs, decoder, DECODED).items()
    }


def leaderboards(runs: list[Run], rule: str, metrics: Sequence[str]) -> dict[str, Leaderboard]:
    """Return the leaderboard of argmax and another decision rule on each metric."""
    data = DATA[runs[0].data]()
    n, seeds = len(data.levels), len(runs)
    groups = Groups(list(range(n)), np.tile(np.arange(n), seeds))
    gold = np.tile(data.levels, seeds)
    systems = {
        way: np.concatenate([run.predictions[name] for run in runs])
        for way, name in ((ARGMAX, ARGMAX), ("decoded", rule))
    }
    panel = Panel.of(gold, systems, Scale(range(data.size)), groups=groups)
    how = resolve_settings(panel.systems, ComparisonSettings(against=ARGMAX))
    return PanelLeaderboardBuilder(panel, [find_metric(name) for name in metrics], how, None).all()


def difference(board: Leaderboard) -> Found:
    """Return decoded minus argmax with its interval."""
    values = {name: board.get_standing(name).estimate.value for name in (ARGMAX, "decoded")}
    sign = 1.0 if board.metric.direction == "maximize" else -1.0
    difference = values["decoded"] - values[ARGMAX]
    low = high = 0.0  # the same predictions throughout
    for pair in board.pairs:
        turned = -1.0 if pair.first == ARGMAX else 1.0
        interval = sorted((turned * pair.difference.low, turned * pair.difference.high))
        low, high = interval if np.isfinite(interval).all() else (low, high)
    return Found(values[ARGMAX], values["decoded"], low, high, sign * difference)


# --- the page ------------------------------------------------------------------------------------


def page(runs: list[Run]) -> str:
    """Return the whole page in Markdown."""
    by_pair: dict[tuple[str, str], list[Run]] = {}
    for one in runs:
        by_pair.setdefault((one.data, one.model), []).append(one)
    good = {pair: found for pair, found in by_pair.items() if all(x.failed is None for x in found)}
    differences = {}
    for pair, found in good.items():
        log(f"comparing {pair[0]}, {pair[1]}")
        differences[pair] = compared(found)
    seeds = sorted({one.seed for one in runs})
    used = ", ".join(
        f"{name} {version(name)}"
        for name in ("ordinate", "numpy", "scikit-learn", "lightgbm", "skordinal", "statsmodels")
    )
    parts = [
        "# Benchmark: metric-optimal decoding",
        wrapped(METHOD.format(seeds=", ".join(map(str, seeds)), folds=FOLDS)),
        wrapped(DATA_SETS),
        wrapped(f"Versions: Python {platform.python_version()}, {used}. {processor()}."),
        "## Result",
        *verdicts(differences),
        *failures(runs, by_pair),
        "## What each decoder gains on its own metric",
        wrapped(OWN),
    ]
    for metric in DECODED[:-1]:
        parts += [f"### {NAMES[metric]}", own_table(metric, differences)]
    parts += ["## What it costs on other metrics", wrapped(TRADES), trade_table(differences)]
    parts += ["### The best decoder for each metric", wrapped(BEST), best_table(differences)]
    parts += ["### Decoding for QWK, in full", full_table(differences)]
    return "\n\n".join(parts) + "\n"


METHOD = (
    "`python benchmarks/decoding.py --write docs/studies/decoding-benchmark.md` writes this page. "
    "The design was fixed before the first run, and every pair of data set and model is shown. "
    "Seeds {seeds}; in each, {folds} stratified folds: a model is fitted on the training set, and "
    "each decoder on out-of-fold probabilities of the training set ({folds} stratified folds "
    "inside it). The test set is then predicted by argmax (the most probable level) and by each "
    "decoder. Models have default hyperparameters, logistic regression on standardised features. "
    "A difference is decoded minus argmax on the confusion matrix of all test predictions of all "
    "seeds. Its 95 % confidence interval resamples items, each with its predictions in all seeds; "
    "it does not include the variance from other training items."
)
DATA_SETS = (
    "Data sets, all of which ship with packages: skordinal's balance scale, ERA, ESL, LEV and SWD; "
    "statsmodels' `fair` (target: `rate_marriage`, 1 to 5, all other columns are features) and "
    "`anes96` (target: `PID`, party identification, 0 to 6, with the features that statsmodels "
    "declares); scikit-learn's diabetes (the target in five bins of equal width)."
)
OWN = (
    "Values over all seeds, decoded minus argmax, and its confidence interval. For MAE lower is "
    "better. Decoding for accuracy is argmax, so it has no table."
)
TRADES = (
    "Mean over all pairs of decoded minus argmax (MAE: lower is better), and the number of pairs "
    "in which the decoder was better and worse than argmax."
)
BEST = (
    "In how many pairs each decoder was the best on a metric (a tie counts for each; accuracy is "
    "argmax). This table was added after the first run had shown that decoding for QWK often "
    "gains more on CEM than decoding for CEM. With true probabilities, the decoder for a metric "
    "is optimal for it in expectation; these models' probabilities are not true."
)


def verdicts(differences: dict[tuple[str, str], dict[tuple[str, str], Found]]) -> list[str]:
    """Return in how many pairs each decoder is better on its own metric."""
    rows: Table = []
    for metric in DECODED:
        found = [one[metric, metric] for one in differences.values()]
        better, worse = (sum(sign * one.gain > 1e-12 for one in found) for sign in (1, -1))
        significant = [
            sum(one.significant and sign * one.gain > 0 for one in found) for sign in (1, -1)
        ]
        share = f"{better / max(1, len(found)):.0%}"
        same = len(found) - better - worse
        counts = map(str, (worse, same, *significant))
        rows.append([NAMES[metric], f"{better} of {len(found)}", share, *counts])
    qwk = [one["quadratic_kappa", "quadratic_kappa"].gain > 0 for one in differences.values()]
    share = float(np.mean(qwk)) if qwk else 0.0
    met = "met" if share >= EXPECTED else "**missed**"
    text = (
        f"Expected in advance: decoding for QWK is better than argmax on QWK in at least "
        f"{EXPECTED:.0%} of the pairs. Measured: {share:.0%} ({sum(qwk)} of {len(qwk)}), {met}."
    )
    head = [
        "decoded for",
        "better",
        "share",
        "worse",
        "same",
        "significantly better",
        "significantly worse",
    ]
    note = "*Significantly*: the 95 % confidence interval of the difference excludes 0."
    return [wrapped(text), markdown(head, rows), note]


def failures(runs: list[Run], by_pair: dict[tuple[str, str], list[Run]]) -> list[str]:
    """Say what could not be fitted; nothing is dropped silently."""
    lines = [
        f"- {one.data}, {one.model}, seed {one.seed}: {one.failed}" for one in runs if one.failed
    ]
    for (data, model), found in by_pair.items():
        for metric in DECODED:
            count = sum(one.refused[metric] for one in found)
            if count:
                of = len(found) * FOLDS
                lines.append(
                    f"- {data}, {model}: {NAMES[metric]} could not be decoded in {count} of {of} "
                    "folds, because no predictions were expected to beat chance; argmax is used "
                    "there."
                )
    message = "Could not be fitted, or not decoded:" if lines else "All models and decoders fitted."
    return ["\n".join([message, "", *lines]) if lines else message]


def own_table(metric: str, differences: dict[tuple[str, str], dict[tuple[str, str], Found]]) -> str:
    """Return the table of one decoder on its own metric."""
    rows = [[*pair, *cells(found[metric, metric])] for pair, found in differences.items()]
    head = ["data", "model", "argmax", "decoded", "difference", "95 % interval", ""]
    return markdown(head, rows)


def cells(one: Found) -> list[str]:
    """Return the row of one difference."""
    word = "better" if one.gain > 1e-12 else "worse" if one.gain < -1e-12 else "same"
    sure = f"**{word}**" if one.significant else word
    interval = f"{one.low:+.3f} to {one.high:+.3f}"
    return [f"{one.argmax:.3f}", f"{one.decoded:.3f}", f"{one.difference:+.3f}", interval, sure]


def trade_table(differences: dict[tuple[str, str], dict[tuple[str, str], Found]]) -> str:
    """Return what each decoder does to every metric, on average."""
    rows: Table = []
    for decoder in DECODED:
        cells = []
        for metric in DECODED:
            found = [one[decoder, metric] for one in differences.values()]
            better, worse = (sum(sign * one.gain > 1e-12 for one in found) for sign in (1, -1))
            mean = float(np.mean([one.difference for one in found]))
            cells.append(f"{mean:+.4f} ({better} better, {worse} worse)")
        rows.append([NAMES[decoder], *cells])
    return markdown(["decoded for", *NAMES.values()], rows)


def best_table(differences: dict[tuple[str, str], dict[tuple[str, str], Found]]) -> str:
    """Return how often each decoder was the best on each metric."""
    rows: Table = []
    for metric in DECODED:
        wins = dict.fromkeys(DECODED, 0)
        for found in differences.values():
            most = max(found[decoder, metric].gain for decoder in DECODED)
            for decoder in DECODED:
                wins[decoder] += found[decoder, metric].gain >= most - 1e-12
        rows.append([NAMES[metric], *map(str, wins.values())])
    return markdown(["metric", *(f"decoded for {name}" for name in NAMES.values())], rows)


def full_table(differences: dict[tuple[str, str], dict[tuple[str, str], Found]]) -> str:
    """Return what decoding for QWK does to the other metrics, pair by pair."""
    rows = []
    for pair, found in differences.items():
        others = [found["quadratic_kappa", metric] for metric in DECODED]
        rows.append(
            [*pair, *(f"{x.difference:+.3f} ({x.low:+.3f} to {x.high:+.3f})" for x in others)]
        )
    return markdown(["data", "model", *NAMES.values()], rows)


def main() -> None:
    """Run everything, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure what decoding gains and costs.")
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
