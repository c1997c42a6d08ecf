"""The cases of the Python package: public names on the shipped examples, and random tables.

Arguments are given by name, so that `renames.json` can rename them and their order does not matter.
"""

import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import inputs
import numpy as np
from reading import find_numbers, make_plain
from renaming import call, read_attribute, resolve

TABLES, FORECASTS, QUANTITIES = 40, 12, 14
EXPRESSIONS = (
    "weighted_kappa(power=1.5)",
    "accuracy_within(n=2)",
    "oci(beta1=0.5)",
    "cem_nom(ties=half)",
    "gwet_ac2",
)
PUBLIC = """
ordinate: Calibration Comparison Confusion Estimate Evaluation Intervals Metric Normalization
ordinate: OrdinateError Plan Recalibrated Scale Values calibration_report cefr_calibration_report
ordinate: cefr_classification_report classification_report compare compare_values evaluate
ordinate: evaluate_values metric metrics power regression_report score
ordinate.decide: CumulativeIsotonic CutPoints Decoder LevelSets OrdinalSets SetEvaluation
ordinate.decide: TemperatureScaling VectorScaling evaluate_sets recalibration
ordinate.meta: check judge
ordinate.summary: Confusion Paired Panel
"""  # what the four modules export
Case = Callable[[], Any]


# --- public names --------------------------------------------------------------------------------


def load_example(name: str) -> dict[str, list[str]]:
    """Return the columns of a shipped example."""
    return inputs.read_columns(call("ordinate.examples.path", name))


def load_systems() -> tuple[list[str], dict[str, list[str]], list[str]]:
    """Return gold, the systems and the writers of the shipped example."""
    columns = load_example("systems")
    names = ("rater_2", "tfidf", "forest", "transformer", "ensemble")
    return columns["gold"], {name: columns[name] for name in names}, columns["writer"]


def make_rows(n: int = 150, seed: int = 51, size: int = 6) -> tuple[list[str], np.ndarray]:
    """Return gold levels of CEFR, and probabilities."""
    rng = np.random.default_rng(seed)
    gold = inputs.draw_levels(rng, n, size)
    return [inputs.CEFR[k] for k in gold], inputs.draw_probabilities(rng, gold, size, 1.5)


def find_names() -> Any:
    """Look up every public name that there was before: `renames.json` says where it went."""
    lines = [line.partition(": ") for line in PUBLIC.strip().splitlines()]
    names = [f"{module}.{name}" for module, _, names in lines for name in names.split()]
    return {name: resolve(name) is not None for name in names}


def evaluate_examples() -> Any:
    """Evaluate the shipped labels in several ways."""
    gold, systems, writers = load_systems()
    columns = load_example("cefr")
    common = {"gold": gold, "predicted": systems["forest"], "scale": "cefr"}
    few = call("ordinate.Intervals", level=0.9, method="bca", draws=300, seed=1)
    found = {
        "default": call("ordinate.evaluate", **common),
        "by": call(
            "ordinate.evaluate",
            gold=columns["gold"],
            predicted=columns["predicted"],
            scale="cefr",
            by=columns["task"],
        ),
        "groups": call(
            "ordinate.evaluate",
            **common,
            groups=writers,
            second_gold=systems["rater_2"],
            losses="cem_ord",
            seed=3,
        ),
        "bca": call("ordinate.evaluate", **common, interval=few),
        "plain": call("ordinate.evaluate", **common, interval=None, metrics="all"),
    }
    return make_plain(found)


def score_examples() -> Any:
    """Score expressions."""
    gold, systems, _ = load_systems()
    return {
        name: float(
            call("ordinate.score", name, gold=gold, predicted=systems["tfidf"], scale="cefr")
        )
        for name in (*EXPRESSIONS, "mae", "quadratic_kappa")
    }


def compare_examples() -> Any:
    """Compare the shipped systems in several ways."""
    gold, systems, writers = load_systems()
    common = {"gold": gold, "systems": systems, "scale": "cefr", "draws": 300}
    names = "cem_ord,f1_macro,bias"
    return make_plain(
        {
            "default": call("ordinate.compare", **common),
            "groups": call("ordinate.compare", **common, metrics=names, groups=writers, seed=2),
            "against": call(
                "ordinate.compare",
                **common,
                metrics=names,
                against="tfidf",
                correction="holm",
                margins={"cem_ord": 0.02},
                pairs=[("ensemble", "forest")],
            ),
        }
    )


def plan_examples() -> Any:
    """Plan from the shipped systems."""
    gold, systems, writers = load_systems()
    two = {name: systems[name] for name in ("transformer", "ensemble")}
    return make_plain(
        [
            call("ordinate.power", gold=gold, systems=two, scale="cefr", difference=0.02),
            call(
                "ordinate.power",
                gold=gold,
                systems=two,
                scale="cefr",
                metric="f1_macro",
                groups=writers,
                draws=300,
            ),
        ]
    )


def report_examples() -> Any:
    """Print the reports that stand in for those of scikit-learn, and results as texts."""
    columns = load_example("cefr")
    gold, rows = make_rows()
    labels = {"y_true": columns["gold"], "y_pred": columns["predicted"]}
    probabilities = {"y_true": gold, "y_pred_proba": rows}
    texts = {
        "labels": call("ordinate.classification_report", **labels, labels="cefr", digits=3),
        "cefr": call("ordinate.cefr_classification_report", **labels),
        "rows": call(
            "ordinate.calibration_report", **probabilities, labels="cefr", n_bins=5, digits=3
        ),
        "cefr_rows": call("ordinate.cefr_calibration_report", **probabilities),
        "values": str(_evaluate_quantities(60, 1, metrics="all")),
        "calibration": str(_calibrate(rows, gold)),
    }
    return {name: {"numbers": find_numbers(text)} for name, text in texts.items()}


def _calibrate(rows: np.ndarray, gold: list[str], **options: Any) -> Any:
    return call("ordinate.Calibration.of", gold=gold, probabilities=rows, scale="cefr", **options)


def calibrate_examples() -> Any:
    """Judge probabilities, before and after recalibration by each method."""
    gold, rows = make_rows(200, 52)
    found = {"plain": _calibrate(rows, gold, metrics="all", bins=8)}
    found["decompositions"] = call("ordinate.Calibration.decompositions", found["plain"])
    for method in ("temperature", "vector", "isotonic"):
        scaling = call("ordinate.decide.recalibration", method, scale="cefr", columns=inputs.CEFR)
        call("ordinate.decide.VectorScaling.fit", scaling, probabilities=rows, gold=gold)
        after = scaling.predict_proba(rows[:50])
        found[method] = {
            "learned": read_learned(scaling),
            "after": after,
            "judged": call(
                "ordinate.Recalibrated.of",
                gold=gold[:50],
                before=rows[:50],
                after=after,
                scale="cefr",
            ),
        }
    return make_plain(found)


def read_learned(estimator: Any) -> dict[str, Any]:
    """Return what an estimator learned: as scikit-learn has it, names that end in _."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }


def decode_examples() -> Any:
    """Decode probabilities for metrics, class weights and costs of our own."""
    gold, rows = make_rows(160, 53)
    _, new = make_rows(40, 54)
    found = {}
    metrics = ("accuracy", "mae", "cem_ord", "macro_mae", "quadratic_kappa", "f1_macro", "max_mae")
    options: list[tuple[str, dict[str, Any]]] = [(name, {"metric": name}) for name in metrics]
    cost = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) ** 1.5
    options += [
        ("balanced", {"metric": "macro_accuracy", "class_weights": "balanced"}),
        ("cost", {"cost": cost.tolist()}),
    ]
    for name, given in options:
        decoder = call("ordinate.decide.Decoder", **given, scale="cefr", columns=inputs.CEFR)
        call("ordinate.decide.Decoder.fit", decoder, probabilities=rows, gold=gold)
        levels = call("ordinate.decide.Decoder.predict", decoder, probabilities=new)
        found[name] = {"learned": read_learned(decoder), "levels": levels}
    return make_plain(found)


def cut_examples() -> Any:
    """Find cut points on scores."""
    rng = np.random.default_rng(55)
    gold = inputs.draw_levels(rng, 120, 6)
    scores, labels = gold + rng.normal(0.0, 0.8, 120), [inputs.CEFR[k] for k in gold]
    found = {}
    for name in ("accuracy", "mae", "quadratic_kappa", "f1_macro", "min_sensitivity", "cem_ord"):
        cuts = call("ordinate.decide.CutPoints", metric=name, scale="cefr")
        call("ordinate.decide.CutPoints.fit", cuts, scores=scores, gold=labels)
        levels = call("ordinate.decide.CutPoints.predict", cuts, scores=scores[:30] + 0.3)
        found[name] = {"learned": read_learned(cuts), "levels": levels}
    return make_plain(found)


def make_set_examples() -> Any:
    """Make conformal sets of levels and intervals of quantities, and judge them."""
    gold, rows = make_rows(200, 56)
    fresh_gold, fresh = make_rows(80, 57)
    groups = [f"g{k % 2}" for k in range(200)]
    found = {}
    for name, given, fitted in (
        ("plain", {"alpha": 0.1}, {}),
        ("per_level", {"alpha": 0.2, "per_level": True}, {}),
        ("groups", {"alpha": 0.15}, {"groups": groups}),
    ):
        sets = call("ordinate.decide.OrdinalSets", **given, scale="cefr", columns=inputs.CEFR)
        call("ordinate.decide.OrdinalSets.fit", sets, probabilities=rows, gold=gold, **fitted)
        asked = {"groups": groups[:80]} if fitted else {}
        made = call("ordinate.decide.OrdinalSets.predict", sets, probabilities=fresh, **asked)
        found[name] = {
            "learned": read_learned(sets),
            "ends": [read_attribute(made, f"ordinate.decide.LevelSets.{end}") for end in ENDS],
            "judged": call("ordinate.decide.evaluate_sets", made, gold=fresh_gold),
        }
    return make_plain(found | {"residuals": _make_intervals()})


ENDS = ("low_positions", "high_positions")


def _make_intervals() -> Any:
    rng = np.random.default_rng(58)
    spread = rng.uniform(0.5, 3.0, 120)
    predicted = rng.normal(10.0, 3.0, 120)
    target = predicted + spread * rng.normal(size=120)
    name = "ordinate.decide.residuals.SplitConformal"
    found = []
    for given, told in (
        ({"alpha": 0.1}, {}),
        ({"alpha": 0.2, "normalize": True}, {"spread": spread}),
        ({"alpha": 0.2, "symmetric": False}, {}),
    ):
        intervals = call(name, **given)
        call(f"{name}.fit", intervals, targets=target, predictions=predicted, **told)
        asked = {key: value[:20] for key, value in told.items()}
        made = call(f"{name}.predict", intervals, predictions=predicted[:20], **asked)
        found.append({"learned": read_learned(intervals), "made": made})
    return found


def judge_examples() -> Any:
    """Judge metrics on the shipped systems, and search properties in very small cases."""
    gold, systems, _ = load_systems()
    panel = call("ordinate.summary.Panel.of", scale="cefr", gold=gold, systems=systems)
    judged = call("ordinate.meta.judge", panel=panel, metrics="cem_ord,mae", cases=6, draws=200)
    checked = call("ordinate.meta.check", metrics=["mae", "cohen_kappa"], most_items=3)
    return make_plain({"judged": judged, "checked": checked})


def merge_examples() -> Any:
    """Count summaries, merge them, and read them back."""
    gold, systems, _ = load_systems()
    of = partial(call, "ordinate.Confusion.of", scale="cefr")
    first = of(gold=gold[:100], predicted=systems["forest"][:100])
    second = of(gold=gold[100:], predicted=systems["forest"][100:])
    panel = call("ordinate.summary.Panel.of", scale="cefr", gold=gold, systems=systems)
    pair = call("ordinate.summary.Panel.paired", panel, "forest", "tfidf")
    merged = first + second
    plain = call("ordinate.Confusion.to_dict", merged)
    scale = call("ordinate.Scale", labels=["a", "b", "c"], positions=[0.0, 1.0, 4.0])
    counts = [[5, 1, 0], [2, 6, 1], [0, 2, 4]]
    table = call("ordinate.Confusion.from_counts", scale=scale, counts=counts)
    names = ("share", "gold_share", "predicted_share", "by_chance", "total", "n")
    training = call("ordinate.Normalization.fit", [600.0, 650.0, 720.0, 690.5])
    return make_plain(
        {
            "merged": merged,
            "same": call("ordinate.Confusion.from_dict", plain) == merged,
            "panel": panel,
            "pair": pair,
            "spaced": {name: read_attribute(table, f"ordinate.Confusion.{name}") for name in names},
            "gaps": read_attribute(scale, "ordinate.Scale.gaps"),
            "normalization": [
                training,
                call("ordinate.Normalization.normalize", training, 700.0),
                call("ordinate.Normalization.denormalize", training, 0.4),
                call("ordinate.Normalization.denormalize_errors", training, 0.4),
            ],
        }
    )


# --- random tables of labels ---------------------------------------------------------------------


def measure_table(index: int) -> Any:
    """Measure all metrics on a random table, with their intervals."""
    drawn = draw_table(index)
    counted = {key: drawn[key] for key in ("scale", "gold", "predicted", "weights", "missing")}
    table = call("ordinate.Confusion.of", **counted)
    how = call("ordinate.Intervals", draws=200, seed=index, level=0.9 + index % 2 / 20)
    given = drawn | {"interval": how}
    found = {
        "values": measure_all(call("ordinate.metrics"), table),
        "evaluated": call("ordinate.evaluate", **given, metrics="all"),
    }
    if index % 4 == 0:
        found["expressions"] = call("ordinate.evaluate", **given, metrics=EXPRESSIONS)
    return make_plain(found)


def measure_all(metrics: list[Any], table: Any) -> dict[str, Any]:
    """Return the value of each metric, or that it refuses such a table."""
    refusal = resolve("ordinate.OrdinateError")
    found: dict[str, Any] = {}
    for metric in metrics:
        try:
            found[read_attribute(metric, "ordinate.Metric.name")] = make_plain(metric(table))
        except refusal:
            found[read_attribute(metric, "ordinate.Metric.name")] = "refused"
    return found


def draw_table(index: int) -> dict[str, Any]:
    """Draw labels of 2 to 9 levels: in turn plain, with weights, with holes, with groups."""
    rng = np.random.default_rng([61, index])
    size, n = 2 + index % 8, int(rng.integers(10, 501))
    gold = inputs.draw_levels(rng, n, size)
    answers = inputs.draw_answers(rng, gold, size, rng.uniform(0.2, 2.0))
    labels = [f"L{k}" for k in range(size)]
    positions = np.cumsum(rng.uniform(0.5, 2.0, size)).tolist() if index % 7 == 3 else None
    predicted: list[str | None] = [labels[k] for k in answers]
    kind = index % 5
    if kind == 3:
        missing = rng.random(n) < 0.1
        predicted = [None if missing[k] else label for k, label in enumerate(predicted)]
    weights = {1: rng.integers(0, 4, n), 2: rng.uniform(0.1, 3.0, n)}.get(kind)
    groups = [f"g{k}" for k in rng.integers(0, 4 + n // 8, n)] if kind == 4 else None
    return {
        "scale": call("ordinate.Scale", labels=labels, positions=positions),
        "gold": [labels[k] for k in gold],
        "predicted": predicted,
        "weights": weights,
        "groups": groups,
        "missing": "worst" if kind == 3 else "error",
    }


def compare_table(index: int) -> Any:
    """Compare three random systems."""
    rng = np.random.default_rng([62, index])
    drawn = draw_table(index)
    labels = list(read_attribute(drawn["scale"], "ordinate.Scale.labels"))
    gold = np.array([labels.index(label) for label in drawn["gold"]])
    drawn["systems"] = {"first": drawn.pop("predicted")} | {
        name: [labels[k] for k in inputs.draw_answers(rng, gold, len(labels), noise)]
        for name, noise in (("second", 0.5), ("third", 1.0))
    }
    options = {"draws": 200, "seed": index, "metrics": "cem_ord,f1_macro,mae,min_sensitivity"}
    return make_plain(call("ordinate.compare", **drawn, **options))


# --- random probabilities ------------------------------------------------------------------------


def judge_forecast(index: int) -> Any:
    """Judge random probabilities by all metrics."""
    rng = np.random.default_rng([71, index])
    size, n = 2 + index % 8, int(rng.integers(10, 401))
    gold = inputs.draw_levels(rng, n, size)
    rows = inputs.draw_probabilities(rng, gold, size, rng.uniform(0.3, 3.0))
    labels = [f"L{k}" for k in range(size)]
    common = {"gold": [labels[k] for k in gold], "scale": labels, "probabilities": rows}
    weights = {1: rng.integers(0, 4, n), 2: rng.uniform(0.1, 3.0, n)}.get(index % 3)
    how = call("ordinate.Intervals", draws=200, seed=index)
    judged = call(
        "ordinate.Calibration.of",
        **common,
        metrics="all",
        weights=weights,
        bins=5 + index,
        interval=how,
    )
    found = {"judged": judged}
    if index % 4 == 0:
        found["both"] = call("ordinate.evaluate", **common, weights=weights, interval=how)
    return make_plain(found)


# --- random quantities ---------------------------------------------------------------------------


def _evaluate_quantities(n: int, index: int, **options: Any) -> Any:
    columns = inputs.make_quantities(n, 80 + index)
    common = {"targets": columns["density"], "predictions": columns["predicted"]}
    return call("ordinate.evaluate_values", **common, **options)


def evaluate_quantity(index: int) -> Any:
    """Evaluate random quantities by all metrics, each time with other options."""
    n = int(np.random.default_rng([81, index]).integers(8, 400))
    columns = inputs.make_quantities(n, 80 + index)
    training = call("ordinate.Normalization", mean=640.0, std=75.0)
    few = call("ordinate.Intervals", level=0.9, draws=150, seed=index)
    options: list[Mapping[str, Any]] = [
        {},
        {"weights": columns["w"]},
        {"weights": columns["times"]},
        {"groups": columns["lab"], "by": columns["family"]},
        {"normalization": training, "order": columns["t"], "unit": "kg/m³"},
        {"lower": columns["lo"], "upper": columns["hi"], "alpha": 0.2},
        {"poisson": True, "interval": few},
    ]
    given = options[index % len(options)]
    models = {name: columns[name] for name in ("predicted", "linear", "forest")}
    shared = {key: given[key] for key in ("weights", "groups") if key in given}
    return make_plain(
        {
            "evaluated": _evaluate_quantities(n, index, metrics="all", **given),
            "compared": call(
                "ordinate.compare_values", targets=columns["density"], models=models, **shared
            ),
        }
    )


def look_at_residuals() -> Any:
    """Look at residuals, and put a shifted set beside another."""
    columns, far = inputs.make_quantities(150, 91), inputs.make_quantities(70, 92, shift=90.0)
    features = {name: columns[name] for name in ("family", "depth")}
    common = {"targets": columns["density"], "predictions": columns["predicted"]}
    looked = call("ordinate.evaluate.residuals.residuals", **common, features=features, bins=5)
    inside, shifted = (
        call("ordinate.evaluate_values", targets=one["density"], predictions=one["predicted"])
        for one in (columns, far)
    )
    both = {"targets": (columns["density"], far["density"])}
    beside = call("ordinate.evaluate.beside.beside", inside=inside, shifted=shifted, columns=both)
    report = call("ordinate.regression_report", **common)
    return make_plain({"residuals": looked, "beside": beside}) | {
        "report": {"numbers": find_numbers(str(report))}
    }


def judge_intervals() -> Any:
    """Judge predictive intervals and ensembles by all metrics of theirs."""
    rng = np.random.default_rng(93)
    columns = inputs.make_quantities(120, 94)
    bounds = resolve("ordinate.summary.bounds.Bounds")
    members = np.array(columns["predicted"])[:, None] + 12.0 * rng.normal(size=(120, 39))
    ensemble = resolve("ordinate.summary.ensemble.Ensemble")
    found = {}
    for name, weights in (("plain", None), ("real", columns["w"]), ("whole", columns["times"])):
        common = {"targets": columns["density"], "weights": weights}
        ends = {"lower": columns["lo"], "upper": columns["hi"]}
        told = {"predictions": columns["predicted"]} if name == "plain" else {}
        table = call("ordinate.summary.bounds.Bounds.of", **common, **ends, **told)
        cloud = call("ordinate.summary.ensemble.Ensemble.of", **common, members=members)
        found[name] = {
            "bounds": _estimate_all("ordinate.inference.predictive.bounds_estimate", bounds, table),
            "ensemble": _estimate_all(
                "ordinate.inference.predictive.ensemble_estimate", ensemble, cloud
            ),
            "pit": call("ordinate.metrics.predictive.pit", cloud, bins=7),
        }
    return make_plain(found)


def _estimate_all(function: str, summary: type, table: Any) -> dict[str, Any]:
    return {
        read_attribute(metric, "ordinate.Metric.name"): call(function, metric, table)
        for metric in call("ordinate.metrics", summary=summary)
    }


# --- running -------------------------------------------------------------------------------------


def _number(prefix: str, case: Callable[[int], Any], count: int, step: int = 1) -> dict[str, Case]:
    return {f"{prefix}-{index:02}": partial(case, index) for index in range(0, count, step)}


GROUPS: dict[str, dict[str, Case]] = {
    "public names": {
        "python/names": find_names,
        "python/evaluate": evaluate_examples,
        "python/score": score_examples,
        "python/compare": compare_examples,
        "python/power": plan_examples,
        "python/reports": report_examples,
        "python/calibration": calibrate_examples,
        "python/decoder": decode_examples,
        "python/cuts": cut_examples,
        "python/sets": make_set_examples,
        "python/meta": judge_examples,
        "python/summaries": merge_examples,
        "python/residuals": look_at_residuals,
        "python/intervals": judge_intervals,
    },
    "random tables": _number("tables/labels", measure_table, TABLES)
    | _number("tables/compare", compare_table, TABLES, 4),
    "random rows": _number("tables/probabilities", judge_forecast, FORECASTS)
    | _number("tables/values", evaluate_quantity, QUANTITIES),
}


def run_group(group: str) -> Iterator[tuple[str, Any, str]]:
    """Run the cases of a group; yield the name, the record and the complaint of each."""
    warnings.simplefilter("ignore")  # of data that are meant to be odd
    for name, case in GROUPS[group].items():
        try:
            yield name, case(), ""
        except Exception:  # noqa: BLE001 - whatever it is, the others go on and it is reported
            yield name, None, traceback.format_exc()
