"""`ordinate evaluate-regression`."""

import csv
import json
import math

import numpy as np
import pytest
from command import run

from ordinate.inference import ConfidenceIntervals, regression
from ordinate.inference.prediction_intervals import (
    estimate_clustered_interval_metric,
    estimate_interval_metric,
)
from ordinate.results import evaluate
from ordinate.results.regression_sources import evaluate_regression
from ordinate.results.residuals import analyse_residuals
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.prediction_intervals import PredictionIntervals

N = 400
DEFAULT = {"rmse", "mae", "r2", "relative_accuracy", "skill", "bias", "max_error"}


def _columns(n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(673, 104, n)
    p = y + 20 * rng.standard_t(5, n) + 2
    return {
        "density": y,
        "predicted": p,
        "other": y + rng.normal(0, 15, n),
        "lo": p - 40,
        "hi": p + 40,
        "family": np.where(rng.random(n) < 0.5, "a", "b"),
        "t": rng.permutation(n),
        "lab": rng.integers(0, 12, n),
        "w": rng.integers(1, 4, n) / 2,
    }


def _write(path, columns):
    names = list(columns)
    rows = zip(*(columns[name] for name in names), strict=True)
    lines = [",".join(str(cell) for cell in row) for row in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "dens.csv", _columns())
    shifted = _columns(100, 1)
    _write(tmp_path / "hot.csv", shifted | {"density": shifted["density"] + 150})
    return tmp_path


ASKED = ("evaluate-regression", "dens.csv", "--target", "density")


def test_json_has_the_numbers_of_python():
    columns = _columns()
    ran = run(*ASKED, "--unit", "kg/m³", "--by", "family", "--format", "json")
    found = json.loads(ran.out)
    expected = evaluate_regression(
        columns["density"], columns["predicted"], unit="kg/m³", by=columns["family"]
    ).to_dict()
    assert found["task"] == "regression"
    assert set(found["metrics"]) >= DEFAULT
    for name, cell in found["metrics"].items():
        if name != "median_absolute_error":  # exact for data in memory
            assert cell["value"] == pytest.approx(expected["metrics"][name]["value"], rel=1e-9)
            if cell["low"] is not None:
                limits = [expected["metrics"][name][key] for key in ("low", "high")]
                assert [cell["low"], cell["high"]] == pytest.approx(limits, rel=1e-6)
        assert cell["unit"] == expected["metrics"][name]["unit"]
    assert set(found["by"]) == {"a", "b"}


def test_both_scales_are_shown_and_normalised_columns_are_turned_back(here):
    training = Normalization(673.27, 104.26)
    plain = run(*ASKED, "--train-mean", 673.27, "--train-std", 104.26, "--format", "json")
    columns = _columns()
    for name in ("density", "predicted"):
        columns[name] = training.normalize(columns[name])
    _write(here / "dens.csv", columns)
    numbers = ("--train-mean", 673.27, "--train-std", 104.26)
    turned = run(*ASKED, *numbers, "--normalized", "--format", "json")
    first, second = json.loads(plain.out), json.loads(turned.out)
    for name in DEFAULT:
        assert first["metrics"][name]["value"] == pytest.approx(second["metrics"][name]["value"])
    rmse = first["metrics"]["rmse"]["value"]
    assert first["normalized"]["rmse"] == pytest.approx(rmse / 104.26)
    baselines = [[one["rmse"] for one in found["baselines"]] for found in (first, second)]
    assert baselines[0] == pytest.approx(baselines[1])
    text = run(*ASKED, *numbers, "--normalized").out
    assert "σ of the evaluated targets" in text
    assert "σ of the training targets is 104.3" in " ".join(text.split())


def test_one_number_has_one_interval_and_stands_in_the_verdict_once():
    ran = run(*ASKED, "--residuals", "family", "--format", "json")
    found = json.loads(ran.out)
    bias = {key: found["metrics"]["bias"][key] for key in found["residuals"]["bias"]}
    assert found["metrics"]["bias"]["method"] == "studentized"
    assert found["residuals"]["bias"] == bias
    verdict = run(*ASKED, "--residuals", "family").out.partition("\nMetrics\n")[0]
    assert verdict.count("rmse") == 1


def test_clusters_are_the_units_of_the_overall_bias_and_of_no_bin():
    found = _json("--residuals", "family", "--groups", "lab")
    assert found["residuals"]["bias"]["method"] == found["metrics"]["bias"]["method"]
    said = " ".join(run(*ASKED, "--residuals", "family", "--groups", "lab").out.split())
    assert "intervals of bins, features and the trend take items for units, not the clus" in said


def test_bounds_times_residuals_shifts_and_levels_join_the_report():
    further = ("--lower", "lo", "--upper", "hi", "--order", "t", "--residuals", "family")
    more = (
        "--shifted",
        "hot.csv",
        "--edges",
        "600,700",
        "--unit",
        "kg/m³",
    )
    found = json.loads(run(*ASKED, *further, *more, "--format", "json").out)
    columns = _columns()
    y, p = columns["density"], columns["predicted"]
    covered = float(((columns["lo"] <= y) & (y <= columns["hi"])).mean())
    assert found["prediction_intervals"]["interval_coverage"]["value"] == pytest.approx(covered)
    assert found["baselines"][-1]["name"] == "previous value"
    looked = analyse_residuals(y, p, {"family": columns["family"]}, unit="kg/m³").to_dict()
    assert found["residuals"]["largest"][0]["row"] == looked["largest"][0]["row"]
    assert found["shifted"]["differences"]["rmse"]["low"] > 0
    assert found["levels"]["scale"] == ["below 600", "600 to 700", "700 and above"]
    gold = np.searchsorted([600, 700], y, side="right")
    right = float((gold == np.searchsorted([600, 700], p, side="right")).mean())
    assert found["levels"]["metrics"]["accuracy"]["value"] == pytest.approx(right)
    text = run(*ASKED, *further, *more).out
    for title in ("Prediction intervals", "By prediction", "Largest errors", "Confusion matrix"):
        assert title in text
    verdict, _, rest = text.partition("\nMetrics\n")
    for answer in ("The predictions are ", "As levels: "):
        assert answer in " ".join(verdict.split())
        assert answer not in " ".join(rest.split())


def test_a_limit_fails_a_run():
    assert run(*ASKED, "--fail-under", "rmse=1").code == 3
    assert run(*ASKED, "--fail-under", "mse=1e6", "--fail-under", "r2=0.5").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--normalized"], "--normalized needs --train-mean"),
        (["--train-mean", "1"], "two numbers"),
        (["--train-mean", "1", "--train-std", "0"], "standard deviation above 0"),
        (["--lower", "lo"], "name both columns"),
        (["--edges", "700,600"], "rising numbers"),
        (["--edges", "x"], "rising numbers"),
        (["--missing", "worst"], "no worst prediction"),
        (["--metrics", "cem_ord"], "cem_ord is a metric of labels, and a metric of regression is"),
        (["--predicted", "nothing"], "has no column 'nothing'"),
        (["--residuals", "nothing"], "has no column 'nothing'"),
        (["--edges", "1,inf"], "rising numbers"),
        (["--edges", "nan"], "rising numbers"),
        (["--residuals", "--weights", "w"], "Leave out --residuals or --weights"),
        (["--lower", "lo", "--upper", "hi", "--alpha", "1.5"], "between 0 and 1, not 1.5"),
        (["--alpha", "0.2"], "--lower and --upper leave out"),
        (["--interval-method", "studentized", "--groups", "lab"], "Leave out --groups, or"),
        (["--residuals", "--gold-file", "g.csv", "--id", "t"], "in the file of the predictions"),
        (["--fail-under", "interval_coverage=0.9"], "needs the columns of --lower and --upper"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    ran = run(*ASKED, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


# --- items ---------------------------------------------------------------------------------------


def _json(*arguments):
    ran = run(*ASKED, *arguments, "--format", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def _limits(estimate):
    return [estimate[key] for key in ("value", "low", "high")]


def test_the_level_reaches_the_parts_and_so_does_no_interval():
    parts = (
        "--residuals",
        "--edges",
        "600",
        "--lower",
        "lo",
        "--upper",
        "hi",
    )
    found = _json(*parts, "--interval", "0.8")
    assert found["residuals"]["interval"] == 0.8
    none = _json(*parts, "--interval", "none")
    assert none["residuals"]["interval"] is None
    assert none["residuals"]["bias"]["low"] is None
    assert none["prediction_intervals"]["interval_coverage"]["low"] is None
    assert none["levels"]["metrics"]["accuracy"]["low"] is None
    text = run(*ASKED, *parts, "--shifted", "hot.csv", "--interval", "none").out
    assert "% CI" not in text
    assert "significantly different" not in text


def test_bounds_take_groups_for_units_and_subgroups_have_their_own():
    columns = _columns()
    bounds = ("--lower", "lo", "--upper", "hi")
    found = _json(*bounds, "--groups", "lab", "--by", "family")
    table = PredictionIntervals.of(
        columns["density"], columns["lo"], columns["hi"], groups=columns["lab"]
    )
    one = estimate_clustered_interval_metric("interval_coverage", table)
    assert _limits(found["prediction_intervals"]["interval_coverage"]) == pytest.approx(
        [one.value, one.low, one.high]
    )
    assert found["prediction_intervals"]["interval_coverage"]["method"] == "t"
    inside = (columns["lo"] <= columns["density"]) & (columns["density"] <= columns["hi"])
    for name in ("a", "b"):
        own = found["by"][name]["prediction_intervals"]["interval_coverage"]["value"]
        assert own == pytest.approx(inside[columns["family"] == name].mean())
    text = " ".join(run(*ASKED, *bounds, "--alpha", 0.2, "--unit", "kg/m³").out.split())
    assert "The intervals should hold 80 % of the targets, and hold" in text
    assert "No interval for mean_interval_width: it is the same for all items." in text
    grid = text[text.index("Prediction intervals") :]
    assert grid.index("kg/m³") > grid.index("mean_interval_width")


def test_bounds_of_groups_of_one_item_are_those_of_items():
    rng = np.random.default_rng(5)
    y, low = rng.normal(size=(2, 200))
    high = low + rng.exponential(size=200)
    weights = rng.uniform(1, 3, 200)
    table = PredictionIntervals.of(y, low, high, weights, np.arange(200))
    for name in ("mean_interval_width", "winkler(alpha=0.3)"):
        one, other = (
            estimate_clustered_interval_metric(name, table),
            estimate_interval_metric(name, table.pooled),
        )
        assert [one.value, one.low, one.high] == pytest.approx([other.value, other.low, other.high])
    few = estimate_clustered_interval_metric("winkler", table[:5])
    assert few.method == "t"
    assert (
        estimate_clustered_interval_metric("winkler", table[:1]).note == "there is one cluster only"
    )
    width = PredictionIntervals.of(y, y, y + 1, groups=np.arange(200))
    found = estimate_clustered_interval_metric("mean_interval_width", width)
    assert found.note == "it is the same in all clusters"


def test_bounds_on_the_normalised_scale_are_turned_back(here):
    training, columns = Normalization(673.27, 104.26), _columns()
    plain = _json("--lower", "lo", "--upper", "hi")["prediction_intervals"]
    for name in ("density", "predicted", "lo", "hi"):
        columns[name] = training.normalize(columns[name])
    _write(here / "dens.csv", columns)
    numbers = ("--train-mean", 673.27, "--train-std", 104.26, "--normalized")
    turned = _json("--lower", "lo", "--upper", "hi", *numbers)["prediction_intervals"]
    for name, one in plain.items():
        assert turned[name]["value"] == pytest.approx(one["value"])


def test_a_limit_of_predictive_intervals_fails_a_run():
    bounds = ("--lower", "lo", "--upper", "hi", "--alpha", 0.2)
    assert run(*ASKED, *bounds, "--fail-under", "interval_coverage=0.9").code == 0
    ran = run(*ASKED, *bounds, "--fail-under", "winkler=10", "--fail-under", "rmse=100")
    assert ran.code == 3
    assert "winkler(alpha=0.2) is" in ran.err


@pytest.fixture
def holes(here):
    """Return columns of which some have no target, some no prediction, some no rival."""
    columns = {name: list(column) for name, column in _columns().items()}
    worst = int(np.argmax(np.abs(np.subtract(columns["predicted"], columns["density"]))))
    for row, name in ((0, "density"), (3, "predicted"), (5, "other")):
        columns[name][row + (row == worst)] = ""
    _write(here / "dens.csv", columns)
    whole = ["" not in pair for pair in zip(columns["density"], columns["predicted"], strict=True)]
    return columns, np.array(whole), worst + 1


def test_what_is_missing_is_left_out_of_every_part(holes):
    columns, whole, worst = holes
    parts = ("--missing", "drop", "--residuals", "--edges", "600,700")
    found = _json(*parts)

    def some(name, rows):
        return np.array(columns[name], object)[rows].astype(float)

    assert found["n"] == found["residuals"]["n"] == found["levels"]["n"] == 398
    y, p = some("density", whole), some("predicted", whole)
    looked = analyse_residuals(y, p).to_dict()
    assert found["residuals"]["bias"]["value"] == pytest.approx(looked["bias"]["value"])
    assert found["residuals"]["largest"][0]["row"] == worst
    gold, guess = (np.searchsorted([600, 700], x, side="right") for x in (y, p))
    right = float((gold == guess).mean())
    assert found["levels"]["metrics"]["accuracy"]["value"] == pytest.approx(right)


def test_items_without_a_group_and_items_of_weight_0_are_left_out_too(here):
    columns = {name: list(column) for name, column in _columns().items()}
    columns["lab"][0], columns["w"][3] = "", 0
    columns["density"][3] = "no number"
    _write(here / "dens.csv", columns)
    further = ("--missing", "drop", "--groups", "lab", "--weights", "w")
    found = _json("--edges", "600", *further)
    assert found["n"] == found["levels"]["n"] == N - 2


def test_levels_take_weights_groups_and_subgroups():
    columns = _columns()
    further = ("--weights", "w", "--groups", "lab", "--by", "family")
    found = _json("--edges", "600.0001,600.0002,700", *further)["levels"]
    edges = [600.0001, 600.0002, 700]
    labels = ["below 600.0001", "600.0001 to 600.0002", "600.0002 to 700", "700 and above"]
    assert found["scale"] == labels
    gold, guess = (
        [labels[k] for k in np.searchsorted(edges, columns[name], side="right")]
        for name in ("density", "predicted")
    )
    more = {"weights": columns["w"], "groups": columns["lab"], "by": columns["family"]}
    expected = evaluate(gold, guess, labels, **more).to_dict()
    for name in ("accuracy", "mae"):
        one, other = found["metrics"][name], expected["metrics"][name]
        assert _limits(one) == pytest.approx(_limits(other))
    assert set(found["by"]) == {"a", "b"}
    text = run(*ASKED, "--edges", "600").out
    assert "Gold: density. Predicted: predicted." in text


@pytest.mark.parametrize("by", [(), ("--by", "family")])
def test_items_are_drawn_again(by):
    columns = _columns()
    found = _json("--resamples", 300, "--seed", 4, *by)
    expected = evaluate_regression(
        columns["density"],
        columns["predicted"],
        by=columns["family"] if by else None,
        interval=ConfidenceIntervals(resamples=300, seed=4),
    ).to_dict()
    pairs = [(found, expected), *((found["by"][x], expected["by"][x]) for x in expected["by"])]
    for one, other in pairs:
        for name in ("rmse", "mae", "r2", "bias"):
            assert one["metrics"][name]["method"] == "studentized"
            limits = _limits(other["metrics"][name])
            assert _limits(one["metrics"][name]) == pytest.approx(limits, rel=1e-9)


RESAMPLED = ("--interval-method", "studentized")


def test_items_that_are_many_or_grouped_or_read_once_have_students_t(here, monkeypatch):
    def method(*arguments):
        found = json.loads(run(*arguments, "--format", "json").out)
        return [x["metrics"]["rmse"]["method"] for x in (found, *found["by"].values())]

    assert method(*ASKED, "--by", "family") == ["studentized"] * 3
    assert method(*ASKED, "--by", "family", "--interval-method", "delta") == ["delta"] * 3
    assert method(*ASKED, "--by", "family", "--groups", "lab") == ["jackknife"] * 3
    grouped = (*ASKED, "--by", "family", "--groups", "lab", "--interval-method")
    assert [method(*grouped, x) for x in ("t", "jackknife")] == [["t"] * 3, ["jackknife"] * 3]
    columns = _columns() | {"id": range(N)}
    _write(here / "gold.csv", {name: columns[name] for name in ("id", "density")})
    _write(here / "predicted.csv", {name: columns[name] for name in ("id", "predicted")})
    joined = ("--gold-file", "gold.csv", "--id", "id", "--target", "density")
    assert method("evaluate-regression", "predicted.csv", *joined) == ["t"]
    monkeypatch.setattr(regression, "MOST_RESAMPLED_PARTS", 1)
    assert method(*ASKED, "--by", "family") == ["studentized", "t", "t"]
    assert method(*ASKED, "--by", "family", *RESAMPLED) == ["studentized"] * 3
    monkeypatch.setattr(regression, "MOST_RESAMPLED_ITEMS", N - 1)
    assert method(*ASKED) == ["t"]
    assert method(*ASKED, *RESAMPLED) == ["studentized"]


def test_parts_of_a_report_have_the_intervals_of_the_whole():
    found = _json("--shifted", "hot.csv", "--edges", "600", *RESAMPLED)
    shifted = _columns(100, 1)
    wanted = evaluate_regression(shifted["density"] + 150, shifted["predicted"], "rmse")
    rmse = found["shifted"]["shifted"]["metrics"]["rmse"]
    assert rmse["method"] == "studentized"
    assert _limits(rmse) == pytest.approx(_limits(wanted.to_dict()["metrics"]["rmse"]))


@pytest.mark.parametrize(
    "option",
    [("--residuals",), ("--edges", "600"), RESAMPLED],
)
def test_a_stream_is_read_once_so_items_need_a_file(option):
    ran = run("evaluate-regression", "-", *option)
    assert ran.code == 2
    assert "reads the items twice, so it needs a file" in ran.err


def test_the_largest_errors_name_their_file_and_its_row(here):
    columns = _columns(10)
    columns["predicted"] = columns["density"] + 1
    _write(here / "a.csv", columns)
    columns["predicted"][6] += 1000
    _write(here / "b.csv", columns)
    arguments = ("--target", "density", "--residuals")
    ran = run("evaluate-regression", "a.csv", "b.csv", *arguments, "--format", "json")
    first = json.loads(ran.out)["residuals"]["largest"][0]
    assert (first["row"], first["name"]) == (7, "b.csv:7")


def test_large_errors_of_a_file_are_those_of_its_columns():
    columns = _columns()
    found = _json("--by", "family")
    wanted = evaluate_regression(columns["density"], columns["predicted"], by=columns["family"])
    assert found["tails"].pop("assumption").startswith("Studentised intervals of squared errors")
    parts = [(found["tails"], wanted), (found["by"]["a"]["tails"], wanted.by["a"])]
    for one, other in parts:
        assert one["undefined"] == other.tails.undefined
        figures = {
            name: math.nan if one[name] is None else one[name] for name in other.tails.figures
        }
        assert figures == pytest.approx(other.tails.figures, rel=1e-9, nan_ok=True)


def test_csv_has_the_metrics_of_prediction_intervals_whatever_the_parts():
    parts = (
        "--residuals",
        "family",
        "--shifted",
        "hot.csv",
        "--edges",
        "600",
    )
    ran = run(*ASKED, *parts, "--lower", "lo", "--upper", "hi", "--format", "csv")
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(ran.out.splitlines()))
    (cover,) = [row for row in rows if row["metric"] == "interval_coverage"]
    assert 0 < float(cover["low"]) < float(cover["value"]) < float(cover["high"]) < 1


def test_a_report_says_which_ids_were_joined(here):
    columns = _columns(8) | {"id": np.arange(8)}
    _write(here / "gold.csv", {name: columns[name] for name in ("id", "density")})
    _write(here / "guess.csv", {"id": [*range(7), 99], "predicted": columns["predicted"]})
    arguments = ("--gold-file", "gold.csv", "--id", "id", "--target", "density")
    ran = run("evaluate-regression", "guess.csv", *arguments, "--missing", "drop")
    text = " ".join(ran.out.split())
    assert "Joined by id: 7 matched, 1 targets without a prediction, 1 predictions unknown" in text
    assert "Dropped for a missing value: 1 item." in text


def test_one_value_is_one_value(here):
    _write(here / "dens.csv", _columns(1))
    text = run(*ASKED, "--metrics", "rmse,nrmse").out
    assert text.startswith("1 item\n")
    assert "- nrmse is RMSE/σ." in text


def test_a_limit_on_another_metric_of_intervals_is_judged():
    bounds = ("--lower", "lo", "--upper", "hi")
    assert run(*ASKED, *bounds, "--fail-under", "weighted_interval_score=1e6").code == 0
    ran = run(*ASKED, *bounds, "--fail-under", "weighted_interval_score=0.001")
    assert ran.code == 3
    assert "weighted_interval_score(alpha=0.1) is" in ran.err
