"""Small results of every class, made of data that need no files, and of searches."""

from pathlib import Path

import numpy as np

import ordinate
from ordinate.meta import evaluate_metrics
from ordinate.meta.property_verdicts import PropertyExplanation, PropertyVerdicts
from ordinate.metrics import find_metric
from ordinate.metrics.known_properties import FORMAL_PROPERTIES
from ordinate.postprocess import Decoder
from ordinate.results.base import Result
from ordinate.results.calibration import Calibration
from ordinate.results.decoding import Decoding
from ordinate.results.distribution_shift import evaluate_shift
from ordinate.results.metric_catalogue import MetricCatalogue
from ordinate.results.residuals import analyse_residuals
from ordinate.summaries import Panel
from ordinate.tuning.experiment.check import CheckReport, Finding
from ordinate.tuning.features.extraction_report import ExtractedDataset, ExtractionResult
from ordinate.tuning.features.feature_listing import FeatureSetEntry, FeatureSetListing

TAG = "<b>low</b>"  # a label, or the name of a system, that must be shown and never be markup
LABELS = [TAG, "mid", "high"]
SCALE = ordinate.Scale(LABELS)
FOLDER = Path("somewhere")
RNG = np.random.default_rng(3)
GOLD = RNG.integers(0, 3, 60)
CLOSE = np.clip(GOLD + RNG.integers(-1, 2, 60) * (RNG.random(60) < 0.3), 0, 2)
ROWS = RNG.dirichlet([1.0, 1.0, 1.0], 60)
TARGETS = RNG.normal(size=60)
MODELS = {TAG: TARGETS + RNG.normal(0, 0.2, 60), "far": TARGETS + RNG.normal(0, 0.5, 60)}


def name_levels(codes):
    return [LABELS[code] for code in codes]


SYSTEMS = {TAG: name_levels(CLOSE), "flat": ["mid"] * 60, "mixed": name_levels(GOLD[::-1])}


def decoding():
    decoder = Decoder("mae", SCALE, columns=LABELS).fit(ROWS)
    compared = {"argmax": name_levels(ROWS.argmax(axis=1)), "decoded": decoder.predict(ROWS)}
    return Decoding(
        metric="mae",
        decoder=decoder,
        argmax=ROWS.argmax(axis=1),
        decoded=np.array([LABELS.index(label) for label in compared["decoded"]]),
        comparison=ordinate.compare(
            name_levels(GOLD), compared, SCALE, metrics="mae", resamples=200
        ),
        source=TAG,
        fitted_on="the same rows",
        scored_on="them",
    )


def shift():
    inside = ordinate.evaluate_regression(TARGETS[:30], MODELS["far"][:30], unit=TAG)
    shifted = ordinate.evaluate_regression(TARGETS[30:], MODELS["far"][30:], unit=TAG)
    return evaluate_shift(inside, shifted)


def meta_evaluation():
    panel = Panel.of(name_levels(GOLD), SYSTEMS, SCALE)
    return evaluate_metrics(panel, "mae,accuracy", "kendall_tau_a", cases=3, resamples=100)


MAKERS = {
    "evaluation": lambda: ordinate.evaluate(
        name_levels(GOLD),
        SYSTEMS[TAG],
        SCALE,
        by=[TAG, "other"] * 30,
        error_attribution="mae",
        second_rater=SYSTEMS["mixed"],
        probabilities=ROWS,
        columns="scale",
    ),
    "case averages": lambda: ordinate.evaluate_cases(
        name_levels(GOLD),
        SYSTEMS[TAG],
        [TAG, "other", "third"] * 20,
        dict.fromkeys([TAG, "other", "third"], SCALE),
    ),
    "comparison": lambda: ordinate.compare(
        name_levels(GOLD), SYSTEMS, SCALE, metrics="mae,accuracy", resamples=200
    ),
    "calibration": lambda: Calibration.of(name_levels(GOLD), ROWS, scale=SCALE, columns="scale"),
    "recalibration": lambda: ordinate.RecalibrationEvaluation.of(
        name_levels(GOLD), ROWS, (ROWS + 1 / 3) / 2, scale=SCALE, columns="scale"
    ),
    "regression": lambda: ordinate.evaluate_regression(
        TARGETS, MODELS[TAG], unit=TAG, by=[TAG, "other"] * 30, lower=TARGETS - 1, upper=TARGETS + 1
    ),
    "regression comparison": lambda: ordinate.compare(target=TARGETS, systems=MODELS, unit=TAG),
    "residuals": lambda: analyse_residuals(TARGETS, MODELS[TAG], {TAG: CLOSE}, unit=TAG),
    "sample size": lambda: ordinate.power(
        name_levels(GOLD), {k: SYSTEMS[k] for k in (TAG, "flat")}, "mae", 0.1, scale=SCALE
    ),
    "decoding": decoding,
    "shift": shift,
    "catalogue": lambda: MetricCatalogue((find_metric("mae"), find_metric("bias"))),
    "meta-evaluation": meta_evaluation,
    "advice": lambda: ordinate.advise(
        "order", equal_distances=False, rare_levels=True, ties="count", reader="shares", scale=SCALE
    ),
    "properties": lambda: PropertyVerdicts.of([find_metric("mae")]),
    "check": lambda: CheckReport(TAG, SCALE, (), (), (), (Finding("error", TAG, "is missing"),)),
    "extraction": lambda: ExtractionResult(
        TAG, FOLDER, (ExtractedDataset("a", 2, 3, 4, {"zero_rows": 0}, new=True),), "make"
    ),
    "feature sets": lambda: FeatureSetListing(
        FOLDER, (FeatureSetEntry(TAG, "a", 2, 3, 0.5, "as made", "make"),), ()
    ),
}
FURTHER_REPORTS = {
    "property": lambda: PropertyExplanation(
        find_metric("mae"), FORMAL_PROPERTIES[0], PropertyVerdicts.of([find_metric("mae")])
    ),
    "metric": lambda: MetricCatalogue((find_metric("weighted_kappa"),)),
    "all metrics": MetricCatalogue.list_all,
    "evaluation over cases": lambda: ordinate.evaluate(
        name_levels(GOLD), SYSTEMS[TAG], SCALE, average_over=[TAG, "other", "third"] * 20
    ),
    "undefined values": lambda: ordinate.evaluate(["mid"], ["mid"], SCALE),
    "many levels": lambda: ordinate.evaluate(np.arange(60), np.arange(60)[::-1], "0..59"),
    "no interval": lambda: ordinate.evaluate_regression(TARGETS, MODELS[TAG], interval=None),
}


def make_search_results(root: Path) -> dict[str, Result]:
    """Return what searches of both tasks report, and models on test sets; files go to a folder."""
    from experiments import lay_out
    from saved_models import save_model
    from search_cases import CASES

    from ordinate.tuning.classify.batch_prediction import predict_datasets
    from ordinate.tuning.classify.trained_model import load_model
    from ordinate.tuning.experiment.folder import Experiment
    from ordinate.tuning.search.analysis import analyze_search

    found: dict[str, Result] = {}
    for case in CASES:
        folder = case.lay_out(root / case.name)
        found[f"plan of a {case.name}"] = case.plan(folder, case.make_settings())
        found[f"tuned {case.name}"] = case.tune(folder)
        found[f"search of a {case.name}"] = analyze_search(folder)
    study = lay_out(root / "study", tests={"test": 36, "other": 24})
    names = [save_model(study, name) for name in ("strong", "weak")]
    experiment = Experiment.open(study)
    found["ranking"] = ordinate.rank(experiment, metric="mae")
    found["predictions"] = predict_datasets(
        experiment, load_model(experiment, names[0]), ["test", "other"]
    )
    return found
