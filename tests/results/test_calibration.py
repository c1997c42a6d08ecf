"""The calibration of a system as a result and as a report: what the items say, laid out."""

import csv
import functools
import io
import json
import math
import re
import tracemalloc

import naive_probabilities as naive
import numpy as np
import pandas as pd
import pytest
from naive_probabilities import sample

from ordinate.errors import BadOption, BadProbabilities, MissingLabels, OrdinateError, UnknownMetric
from ordinate.inference import ConfidenceIntervals
from ordinate.metrics import find_metric, list_metrics
from ordinate.render import RENDERERS, render
from ordinate.results.calibration import DEFAULT_METRICS, NOT_CLUSTERED_NOTE, Calibration
from ordinate.results.label_evaluation import evaluate
from ordinate.results.text_reports import calibration_report
from ordinate.scale import Scale
from ordinate.summaries import reliability
from ordinate.summaries.regression import Moments
from ordinate.summaries.reliability import Reliability, ReliabilityAccumulator, ReliabilityParts

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
GOLD, ROWS = sample(400, seed=1, sharpness=1.4)
LABELS = np.array(CEFR)[GOLD]


def judged(gold=LABELS, rows=ROWS, **options):
    if gold is LABELS and rows is ROWS and not options:
        return usual()
    return Calibration.of(gold, rows, **{"scale": "cefr"} | options)


@functools.cache
def usual():
    """What most tests ask of, made once."""
    return Calibration.of(LABELS, ROWS, scale="cefr")


# --- the result ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["ece", "mce", "classwise_ece", "cumulative_ece", "brier", "log_loss", "rps"]
)
def test_a_metric_of_the_report_is_that_of_a_loop_over_the_items(name):
    wanted = getattr(naive, name)(GOLD.tolist(), ROWS.tolist())
    assert judged().metrics[name].value == pytest.approx(wanted, abs=1e-12)
    weights = np.random.default_rng(2).exponential(size=400)
    wanted = getattr(naive, name)(GOLD.tolist(), ROWS.tolist(), weights.tolist())
    found = judged(weights=weights).metrics[name]
    assert found.value == float(found) == pytest.approx(wanted, abs=1e-12)


def test_the_usual_metrics_and_all():
    assert tuple(judged().metrics) == DEFAULT_METRICS
    every = judged(metrics="all").metrics
    assert set(every) == {metric.name for metric in list_metrics(Reliability)}
    assert list(judged(metrics="brier,ece(bins=5)").metrics) == ["brier", "ece(bins=5)"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", ["array", "frame"])
def test_each_subgroup_has_the_calibration_that_it_has_alone(given, weighted):
    by = np.random.default_rng(3).choice(["north", "south"], 400)
    weights = np.random.default_rng(4).integers(0, 3, 400) if weighted else None
    order = [*reversed(CEFR)]
    frame = pd.DataFrame(ROWS[:, ::-1], columns=order)
    rows = frame if given == "frame" else ROWS
    result = evaluate(LABELS, probabilities=rows, by=by, scale="cefr", weights=weights)
    assert set(result.by) == {"north", "south"}
    for name, part in result.by.items():
        own = by == name
        alone = judged(LABELS[own], ROWS[own], weights=None if weights is None else weights[own])
        assert part.probabilities == alone
        assert part.confusion_matrix.n == part.probabilities.summary.n
    table = result.list_tables()["metrics"]
    assert {row["group"] for row in table if row["metric"] == "brier"} == {"", "north", "south"}
    assert f"{result.by['north'].probabilities.metrics['brier'].value:.3f}" in render(result)


def test_a_subgroup_without_probabilities_has_no_calibration():
    rows = ROWS.copy()
    by = np.where(np.arange(400) < 40, "empty", "full")
    rows[by == "empty"] = np.nan
    options = {"by": by, "scale": "cefr", "missing": "drop"}
    result = evaluate(LABELS, LABELS, probabilities=rows, **options)
    assert result.by["empty"].probabilities is None
    assert result.by["full"].probabilities.summary.n == 360
    render(result)


def test_a_seed_is_that_of_the_simulation_and_may_not_contradict_the_intervals():
    few = ConfidenceIntervals(resamples=200, seed=5)
    assert judged(interval=few, seed=5) == judged(interval=few)
    assert judged(seed=5).interval == ConfidenceIntervals(seed=5)
    with pytest.raises(BadOption, match="seed=6 contradicts the seed=5"):
        judged(interval=few, seed=6)


def test_no_metric_and_a_metric_of_labels_are_refused():
    with pytest.raises(BadOption, match="No metric was named"):
        judged(metrics=[])
    with pytest.raises(BadOption, match="mae is a metric of labels, and a metric of probabilities"):
        judged(metrics=[find_metric("mae")])
    with pytest.raises(BadOption, match="rmse is a metric of regression, and a metric of labels"):
        evaluate(LABELS, LABELS, "cefr", [find_metric("rmse", Moments)])
    with pytest.raises(BadOption, match="accuracy is a metric of labels: it takes a ConfusionMat"):
        find_metric("accuracy")(judged().summary)


def test_the_bins_of_the_report_are_those_of_its_metrics():
    found = judged(bins=7)
    assert len(found.list_bins()) == 7
    assert found.metrics["ece(bins=7)"].value == pytest.approx(
        naive.ece(GOLD.tolist(), ROWS.tolist(), bins=7)
    )
    mixed = judged(bins=7, metrics="ece(bins=3),brier")
    assert list(mixed.metrics) == ["ece(bins=3)", "brier"]


@pytest.mark.parametrize("bins", [0, -1, 1001, 2.5])
def test_so_many_bins_are_refused(bins):
    with pytest.raises(BadOption, match="an integer"):
        judged(bins=bins)


def test_bins_hold_count_accuracy_confidence_and_gap():
    weights = np.random.default_rng(3).integers(0, 3, 400) / 2
    sums = naive.binned(naive.top(GOLD.tolist(), ROWS.tolist()), weights.tolist(), 10)
    for k, row in enumerate(judged(weights=weights).list_bins()):
        assert (row["low"], row["high"]) == pytest.approx((k / 10, (k + 1) / 10))
        if k not in sums:
            assert row["count"] == 0
            assert all(math.isnan(row[key]) for key in ("accuracy", "confidence", "gap"))
            continue
        items, weight, f, o, *_ = sums[k]
        assert row["count"] == items
        assert row["accuracy"] == pytest.approx(o / weight)
        assert row["confidence"] == pytest.approx(f / weight)
        assert row["gap"] == pytest.approx(f / weight - o / weight)


def test_too_sure_is_a_positive_gap():
    rows = judged(["A1", "A2"], [[0.9, 0.02, 0.02, 0.02, 0.02, 0.02]] * 2).list_bins()
    assert rows[8]["gap"] == pytest.approx(0.4)


def test_levels_when_predicted_and_over_all_items():
    for k, row in enumerate(judged().list_levels()):
        answers = [naive.best(r) for r in ROWS.tolist()]
        mine = [(p, g == k) for (a, p), g in zip(answers, GOLD, strict=True) if a == k]
        assert [row[key] for key in ("level", "name", "count")] == [CEFR[k], CEFR[k], len(mine)]
        assert row["average_probability"] == pytest.approx(np.mean([p for p, _ in mine]))
        assert row["accuracy"] == pytest.approx(np.mean([right for _, right in mine]))
        assert row["mean_probability"] == pytest.approx(ROWS[:, k].mean())
        assert row["gold_share"] == pytest.approx((k == GOLD).mean())


def test_a_level_that_nobody_predicted_has_no_average():
    found = judged(["A1", "A2"], [[0.9, 0.1, 0, 0, 0, 0]] * 2)
    assert found.list_levels()[1]["count"] == 0
    assert math.isnan(found.list_levels()[1]["accuracy"])
    assert found.to_dict()["per_level"][1]["accuracy"] is None


def test_five_terms_sum_to_the_scores():
    for bins in (1, 4, 10, 33):
        found = judged(bins=bins)
        terms = found.decompose_scores()
        for name in ("brier", "rps"):
            parts = terms[name]
            total = parts["reliability"] - parts["resolution"] + parts["uncertainty"]
            total += parts["within_variance"] - parts["within_covariance"]
            assert total == pytest.approx(found.metrics[name].value, abs=1e-12)
            assert parts["score"] == pytest.approx(total, abs=1e-12)


def test_the_terms_of_the_events_sum_to_their_scores_and_on_average_to_the_rps():
    found = judged(interval=None)
    plain = found.to_dict()["calibration_curves"]
    assert (plain["resamples"], plain["rps"]["if_calibrated"]) == (None, None)
    assert [event["at_most"] for event in plain["events"]] == list(CEFR[:-1])
    for event, pairs in zip(plain["events"], naive.cumulative(GOLD, ROWS.tolist()), strict=True):
        assert event["score"] == pytest.approx(np.mean([(f - o) ** 2 for f, o in pairs]), abs=1e-12)
        share = np.mean([o for _, o in pairs])
        assert event["uncertainty"] == pytest.approx(share * (1 - share))
    for part in (plain["rps"], *plain["events"]):
        total = part["miscalibration"] - part["discrimination"] + part["uncertainty"]
        total += part["within_variance"] - part["within_covariance"]
        assert total == pytest.approx(part["score"], abs=1e-12)
        assert part["miscalibration"] >= 0 <= part["discrimination"]
    assert plain["rps"]["score"] == pytest.approx(found.metrics["rps"].value, abs=1e-12)
    assert plain["approximate"]


def test_probabilities_of_three_decimals_have_exact_curves():
    below = ROWS.cumsum(axis=1).round(3)
    rows = np.diff(np.clip(below, 0, 1), axis=1, prepend=0.0)
    found = judged(rows=rows)
    assert not found.to_dict()["calibration_curves"]["approximate"]
    assert "approximate" not in str(found)
    assert "Calibration curves are approximate" in " ".join(str(judged()).split())


def test_curves_stand_beside_those_of_calibrated_systems():
    plain = judged().to_dict()["calibration_curves"]
    assert plain["resamples"] == 499
    means = [event["if_calibrated"]["mean"] for event in plain["events"]]
    assert plain["rps"]["if_calibrated"] == {"mean": np.mean(means), "high": None, "p": None}
    for event in plain["events"]:
        assert 1 / 500 <= event["if_calibrated"]["p"] <= 1
        assert sum(point["count"] for point in event["points"]) == 400
        assert all(point["low"] <= point["high"] for point in event["points"])
    fewer = judged(interval=ConfidenceIntervals(resamples=150)).to_dict()["calibration_curves"]
    assert fewer["resamples"] == 150
    tables = judged().list_tables()
    assert len(tables["events"]) == 5
    assert len(tables["calibration_curves"]) == sum(len(e["points"]) for e in plain["events"])


def test_clusters_leave_curves_without_bands_and_p_and_weights_are_told():
    groups = np.arange(400) // 4
    found = evaluate(LABELS, scale="cefr", probabilities=ROWS, groups=groups).probabilities
    plain = found.to_dict()["calibration_curves"]
    assert plain["resamples"] is None
    for event in plain["events"]:
        assert event["if_calibrated"] is None
        assert all(point["low"] is point["high"] is None for point in event["points"])
        assert event["points"][0]["frequency"] is not None
    assert "no bands and no p here" in " ".join(str(found).split())
    assert "MCB if calibrated" not in str(found)
    weighted = " ".join(str(judged(weights=np.arange(400) % 3 + 0.5)).split())
    assert "take the 400 items for 308 of equal weight" in weighted
    assert "of equal weight" not in str(judged())


def test_the_verdict_is_of_all_tests_of_calibration_together():
    gold, rows = sample(400, seed=7, sharpness=1.0)
    right = judged(np.array(CEFR)[gold], rows).document().verdict
    assert "There is no sign of miscalibration" in right
    assert "by Holm over 6 tests" in right
    assert "The probabilities are overconfident (ece " in judged().document().verdict
    lean = 0.6 * rows + 0.4 * np.eye(6)[0]  # whatever the item, rather the lowest level
    found = judged(np.array(CEFR)[gold], lean, metrics="brier").document().verdict
    assert re.search(r'\(MCB of "at most \w\d" .* by Holm over 5 tests\)', found)
    assert judged(interval=None).document().verdict.startswith("On average the probabilities are ")


def test_the_least_p_of_the_verdict_is_multiplied_by_the_number_of_tests():
    gold, rows = sample(150, seed=3, sharpness=1.15)
    verdict = judged(np.array(CEFR)[gold], rows).document().verdict
    p, adjusted, tests = re.search(r"p (\S+), (\S+) by Holm over (\d+) tests", verdict).groups()
    assert float(adjusted) == pytest.approx(min(1.0, int(tests) * float(p)), abs=1e-3)
    assert float(adjusted) > float(p) > 0


def test_so_many_events_that_none_can_be_significant_are_told():
    rng = np.random.default_rng(1)
    gold, rows = rng.integers(0, 30, 60), rng.dirichlet(np.ones(30), 60)
    found = Calibration.of(gold, rows, scale="0..29", metrics="brier")
    assert "With 29 events, no p from so few simulations" in " ".join(str(found).split())
    assert "no p from so few" not in str(judged())


def test_confidence_bins_stand_before_any_decomposition():
    found = judged()
    titles = [block.title for block in found.document().blocks]
    assert titles[1:3] == [
        "Confidence bins",
        "Calibration of the events",
    ]
    details = [block.title for block in found.document().details]
    assert details == ["Where the scores come from"]
    assert all(len(line) <= 80 for line in render(found, width=80).splitlines())


def test_gold_shares_are_what_the_same_row_for_everybody_reaches():
    shares = np.bincount(GOLD, minlength=6) / 400
    same = judged(rows=np.tile(shares, (400, 1)), metrics="brier,log_loss,rps,rps_sum,ece")
    found = judged(metrics="brier,log_loss,rps,rps_sum,ece").metrics
    for name in ("brier", "log_loss", "rps", "rps_sum"):
        assert found[name].base_rate == pytest.approx(same.metrics[name].value, abs=1e-12)
    assert math.isnan(found["ece"].base_rate)
    one = judged(["A1"] * 3, [[1.0, 0, 0, 0, 0, 0]] * 3).metrics["log_loss"].base_rate
    assert math.copysign(1, one) == 1  # and not -0


def test_calibration_errors_stand_beside_chance_and_scores_have_intervals():
    found = judged()
    for name, worth in found.metrics.items():
        if name in {"brier", "log_loss", "rps", "c_index"}:
            assert worth.estimate.low < worth.value < worth.estimate.high
            assert worth.perfect_calibration is None
        else:
            assert math.isnan(worth.estimate.low)
            assert "no valid interval" in worth.estimate.note
            several = name in {"classwise_ece", "cumulative_ece"}
            assert (
                math.isnan(worth.perfect_calibration.p)
                if several
                else 0 < worth.perfect_calibration.p <= 1
            )
    plain = judged(interval=None)
    assert all(worth.perfect_calibration is None for worth in plain.metrics.values())
    assert "interval" not in str(plain).split("'Gold shares'")[0]


def test_errors_of_several_events_have_no_p_and_the_report_says_why():
    found = judged(metrics="cumulative_ece,ece")
    assert found.to_dict()["metrics"]["cumulative_ece"]["if_calibrated"]["p"] is None
    assert math.isnan(found.rows()[0]["p"])
    line = next(line for line in str(found).splitlines() if line.startswith("cumulative_ece"))
    assert "nan" not in line
    assert "have no p" in str(found)
    assert "have no p" not in str(judged(metrics="ece"))


def test_what_is_approximate_says_so():
    plain = judged(metrics="all").to_dict()["metrics"]
    assert {name for name, worth in plain.items() if worth["approximate"]} == {"ace"}
    exact = naive.c_index(GOLD.tolist(), ROWS.tolist())
    assert plain["c_index"]["value"] == pytest.approx(exact, abs=1e-12)
    assert plain["c_index"]["error_bound"] is None
    assert plain["ace"]["error_bound"] is plain["ece"]["error_bound"] is None


def test_parts_that_nobody_asked_for_take_no_memory():
    tracemalloc.start()
    counter = ReliabilityAccumulator(Scale.of("0..199"), ReliabilityParts(scores=True), blocks=64)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counter.confusion_matrix is counter.ranking is None
    assert size < 1.1 * counter.cells.nbytes


def test_the_seed_decides():
    one, two, other = (
        judged(interval=ConfidenceIntervals(0.95, seed=seed)).to_dict() for seed in (1, 1, 2)
    )
    assert one == two != other


def test_plain_values_are_json():
    found = judged(["A1", "A2", "A2"], np.eye(6)[[0, 2, 1]].tolist(), metrics="all")
    text = json.dumps(found.to_dict(), allow_nan=False)
    plain = json.loads(text)
    assert (plain["n"], plain["clipped"], plain["dropped"]) == (3, 1, 0)
    assert plain["bins"][0]["accuracy"] is None
    assert len(found.rows()) == len(plain["metrics"])


@pytest.mark.parametrize("format_", sorted(RENDERERS))
def test_every_format_shows_it(format_):
    text = render(judged(), format_)
    for word in ("brier", "ece"):
        assert word in text


def test_the_text_tells_of_clipped_items_and_of_the_bound_of_c_index(monkeypatch):
    monkeypatch.setattr(reliability, "MOST_ORDERED_ITEMS", 20)
    rows = ROWS.copy()
    rows[:3] = np.eye(6)[(GOLD[:3] + 1) % 6]
    text = " ".join(str(judged(rows=rows)).split())
    assert "3 items had next to no probability at their gold level" in text
    bound = float(re.search(r"c_index is at most (\S+) away", text)[1])
    exact = naive.c_index(GOLD.tolist(), rows.tolist())
    assert abs(judged(rows=rows).metrics["c_index"].value - exact) <= bound


def test_label_metrics_are_no_metrics_of_probabilities():
    with pytest.raises(
        UnknownMetric, match="cem_ord is a metric of labels, and a metric of probabilities"
    ):
        judged(metrics="cem_ord")


# --- as a part of evaluate -----------------------------------------------------------------------


def test_without_predictions_the_most_probable_level_is_taken():
    found = evaluate(LABELS, scale="cefr", probabilities=ROWS)
    answers = np.array(CEFR)[[naive.best(row)[0] for row in ROWS.tolist()]]
    assert found.confusion_matrix == evaluate(LABELS, answers, scale="cefr").confusion_matrix
    assert found.confusion_matrix == found.probabilities.summary.argmax
    assert found.to_dict()["probabilities"]["n"] == 400


def test_with_predictions_both_are_judged():
    found = evaluate(LABELS, ["B1"] * 400, scale="cefr", probabilities=ROWS)
    assert found.confusion_matrix.predicted[2] == 400
    assert found.probabilities.metrics["brier"].value == judged().metrics["brier"].value


def test_without_probabilities_there_is_no_such_section():
    found = evaluate(LABELS, LABELS, scale="cefr")
    assert found.probabilities is None
    assert found.to_dict()["probabilities"] is None
    assert "Confidence bins" not in str(found)


def test_metrics_go_where_they_belong():
    found = evaluate(LABELS, scale="cefr", probabilities=ROWS, metrics="mae,brier")
    assert (list(found.metrics), list(found.probabilities.metrics)) == (["mae"], ["brier"])
    with pytest.raises(BadOption, match="no predicted levels"):
        evaluate(LABELS, scale="cefr")
    for predicted in (None, LABELS):
        with pytest.raises(BadOption, match="no probabilities, which metrics need"):
            evaluate(LABELS, predicted, scale="cefr", metrics="brier")


def test_missing_gold_is_dropped_from_both():
    gold = [None, *LABELS[1:]]
    with pytest.raises(MissingLabels, match="row 1"):
        evaluate(gold, scale="cefr", probabilities=ROWS)
    found = evaluate(gold, scale="cefr", probabilities=ROWS, missing="drop")
    assert (found.confusion_matrix.n, found.confusion_matrix.dropped) == (399, 1)
    assert (found.probabilities.summary.n, found.probabilities.summary.dropped) == (399, 1)


def test_items_without_probabilities_are_dropped_from_both():
    rows = ROWS.copy()
    rows[5] = math.nan
    with pytest.raises(BadProbabilities, match="row 6"):
        evaluate(LABELS, scale="cefr", probabilities=rows)
    found = evaluate(LABELS, scale="cefr", probabilities=rows, missing="drop")
    assert found.confusion_matrix.n == found.probabilities.summary.n == 399
    assert found.confusion_matrix == found.probabilities.summary.argmax


@pytest.mark.parametrize("gone", ["gold", "row"])
def test_items_are_dropped_also_where_columns_are_named_and_rows_renormalized(gone):
    order, gold, rows = [5, 3, 1, 0, 2, 4], LABELS.astype(object), ROWS * 1.005
    if gone == "gold":
        gold[5] = None
    rows[5] = math.nan
    named = iter([CEFR[k] for k in order])
    found = evaluate(
        gold,
        scale="cefr",
        probabilities=rows[:, order],
        columns=named,
        renormalize=True,
        missing="drop",
    )
    assert found.confusion_matrix.n == found.probabilities.summary.n == 399
    assert found.confusion_matrix == found.probabilities.summary.argmax
    kept = np.arange(400) != 5
    alone = judged(LABELS[kept], ROWS[kept]).metrics["brier"].value
    assert found.probabilities.metrics["brier"].value == pytest.approx(alone)


def test_groups_are_no_units_of_probabilities_and_the_report_says_so():
    groups = np.arange(400) // 4
    found = evaluate(LABELS, scale="cefr", probabilities=ROWS, groups=groups)
    assert found.probabilities.notes == (NOT_CLUSTERED_NOTE,)
    assert NOT_CLUSTERED_NOTE in " ".join(str(found).split())
    for options in ({"groups": None}, {"groups": groups, "interval": None}):
        plain = evaluate(LABELS, scale="cefr", probabilities=ROWS, **options)
        assert plain.probabilities.notes == ()


def test_records_of_both_kinds_have_all_columns():
    found = evaluate(LABELS, scale="cefr", probabilities=ROWS)
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(render(found, "csv")))}
    worth = found.probabilities.metrics
    assert float(rows["brier"]["base_rate"]) == worth["brier"].base_rate
    assert float(rows["ece"]["if_calibrated"]) == worth["ece"].perfect_calibration.mean
    assert float(rows["ece"]["p"]) == worth["ece"].perfect_calibration.p
    assert rows["cumulative_ece"]["p"] == rows["mae"]["p"] == rows["ece"]["chance"] == ""


def test_frames_are_found_by_name():
    frame = pd.DataFrame({f"p_{CEFR[k]}": ROWS[:, k] for k in (5, 3, 1, 0, 2, 4)})
    found = evaluate(LABELS, scale="cefr", probabilities=frame)
    assert found.to_dict() == evaluate(LABELS, scale="cefr", probabilities=ROWS).to_dict()


# --- the text report -----------------------------------------------------------------------------

# The bins of the source document, a hundred times as large: its rounded accuracies are exact then.
BINS = [
    (2, 0.50, 0.18, -0.32),
    (5, 0.60, 0.25, -0.35),
    (8, 0.75, 0.35, -0.40),
    (12, 0.67, 0.45, -0.22),
    (10, 0.80, 0.55, -0.25),
    (8, 0.88, 0.65, -0.23),
    (7, 0.86, 0.75, -0.11),
    (5, 0.80, 0.85, 0.05),
    (3, 1.00, 0.95, -0.05),
]


def of_document():
    gold, rows = [], []
    for place, (count, accuracy, confidence, _) in enumerate(BINS):
        level = place % 6
        rest = (1 - confidence) / 5
        for number in range(100 * count):
            right = number < round(100 * count * accuracy)
            gold.append(CEFR[level if right else (level + 1) % 6])
            rows.append([confidence if k == level else rest for k in range(6)])
    return gold, rows


def test_the_example_of_the_document_has_the_error_of_its_own_bins():
    gold, rows = of_document()
    found = judged(gold, rows)
    assert found.metrics["ece"].value == pytest.approx(0.229, abs=5e-4)
    for row, (count, accuracy, confidence, gap) in zip(found.list_bins()[1:], BINS, strict=True):
        assert row["count"] == 100 * count
        shown = [round(row[key], 2) for key in ("accuracy", "confidence", "gap")]
        assert shown == [accuracy, confidence, gap]


LAYOUT = """\
================================================================================
CALIBRATION REPORT (Soft Probabilities)
================================================================================

Expected Calibration Error (ECE): 0.23

Confidence Bins:
Range                     Count     Accuracy   Confidence          Gap
--------------------------------------------------------------------------------
(0.00, 0.10]                  0          n/a          n/a          n/a
(0.10, 0.20]                200         0.50         0.18        -0.32
(0.20, 0.30]                500         0.60         0.25        -0.35
(0.30, 0.40]                800         0.75         0.35        -0.40
(0.40, 0.50]               1200         0.67         0.45        -0.22
(0.50, 0.60]               1000         0.80         0.55        -0.25
(0.60, 0.70]                800         0.88         0.65        -0.23
(0.70, 0.80]                700         0.86         0.75        -0.11
(0.80, 0.90]                500         0.80         0.85         0.05
(0.90, 1.00]                300         1.00         0.95        -0.05

Per-Class Calibration:
Class           Avg Prob     Accuracy      Count
--------------------------------------------------------------------------------
A1                  0.62         0.78        900
A2                  0.55         0.70       1000
B1                  0.51         0.82       1100
B2                  0.45         0.67       1200
C1                  0.55         0.80       1000
C2                  0.65         0.88        800
"""


def test_the_report_has_the_layout_of_the_document():
    assert calibration_report(*of_document()) == LAYOUT


def test_names_digits_and_bins():
    names = [f"Level {k}" for k in range(6)]
    gold, rows = of_document()
    text = calibration_report(gold, rows, list(CEFR), names, n_bins=4, digits=3)
    assert "Expected Calibration Error (ECE): 0.2" in text
    assert text.count("(0.") == 4
    assert "(0.25, 0.50]" in text
    assert re.search(r"^Level 0 +0\.623 +0\.780 +900$", text, re.MULTILINE) is not None
    for given in (np.array(names), tuple(names)):
        assert calibration_report(gold, rows, CEFR, given, 4, 3) == text


def test_long_and_wide_names_keep_the_columns_straight():
    lines = calibration_report(
        ["低", "高" * 9], [[0.9, 0.1], [0.2, 0.8]], labels=["低", "高" * 9]
    ).splitlines()
    assert [line for line in lines if line.startswith("低")] == [
        "低" + " " * 16 + "         0.90         1.00          1"
    ]


def test_any_scale_has_a_report():
    text = calibration_report([1, 3, 2], np.eye(3)[[0, 2, 2]].tolist(), labels="1..3")
    assert text.splitlines()[1] == "CALIBRATION REPORT (Soft Probabilities)"
    assert "Expected Calibration Error (ECE): 0.33" in text
    assert calibration_report([1, 3, 2], np.eye(3)[[0, 2, 2]], Scale.of("1..3")) == text
    assert re.search(r"^2 +n/a +n/a +0$", text, re.MULTILINE) is not None
    with pytest.raises(OrdinateError, match="scale"):
        calibration_report(["x", "y"], [[0.5, 0.5]] * 2)


def test_ranges_can_be_told_apart_in_many_bins():
    text = calibration_report([1, 2], [[0.9, 0.1], [0.2, 0.8]], "1..2", n_bins=500)
    ranges = re.findall(r"^\(.*?\]", text, re.MULTILINE)
    assert len(ranges) == len(set(ranges)) == 500


def test_the_levels_of_the_language_test_are_the_usual_ones():
    with pytest.raises(BadProbabilities, match="3 columns of probabilities for the 6 levels A1 <"):
        calibration_report(["A1"], [[0.2, 0.3, 0.5]])
    for bins in (0, 5000):
        with pytest.raises(BadOption, match="an integer"):
            calibration_report(["A1"], [[1.0, 0, 0, 0, 0, 0]], n_bins=bins)
