"""Large errors: each figure against its definition, and the laws that it obeys."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from ordinate.inference import ConfidenceIntervals
from ordinate.render import RENDERERS, render
from ordinate.results.comparison import compare
from ordinate.results.regression import RegressionEvaluation
from ordinate.results.regression_sources import evaluate_regression
from ordinate.results.regression_tails import (
    MEASURED_COVERAGE,
    NO_COUNT_NOTE,
    NO_ERROR_NOTE,
    NO_HISTOGRAM_NOTE,
    compute_hill_index,
    compute_tails,
)
from ordinate.summaries.regression import BIN_PRECISION, Moments

BIN = 2.1 * BIN_PRECISION  # of a squared size, relative
ERRORS = arrays.arrays(float, st.integers(2, 400), elements=st.floats(0.01, 100.0))


def tails_of(errors, weights=None, **options):
    y = np.zeros(len(errors))
    return compute_tails(Moments.of(y, errors, weights, **({"histogram": True} | options)))


def assert_alike(found, wanted):
    """Compare figures; a difference of sums of squares has the digits of these sums."""
    without = [figures["rmse_without_worst"] ** 2 for figures in (found, wanted)]
    assert without[0] == pytest.approx(
        without[1], rel=1e-9, abs=1e-12 * wanted["rmse"] ** 2, nan_ok=True
    )
    names = found.keys() - {"rmse_without_worst"}
    assert {x: found[x] for x in names} == pytest.approx(
        {x: wanted[x] for x in names}, rel=1e-9, nan_ok=True
    )


def by_hand(errors):
    """Return all figures from the errors themselves."""
    n, sizes = len(errors), np.sort(np.abs(errors))[::-1]
    squares = sizes**2
    worst, tail = math.ceil(n / 100), int(0.05 * n + 1e-9)
    return {
        "worst_item_share": squares[0] / squares.sum(),
        "worst_percent_share": squares[:worst].sum() / squares.sum(),
        "rmse": math.sqrt(squares.mean()),
        "rmse_without_worst": math.sqrt(squares[1:].mean()),
        "mae": sizes.mean(),
        "kurtosis": n * (errors**4).sum() / squares.sum() ** 2,
        "hill_index": 1.0 / np.log(sizes[:tail] / sizes[tail]).mean() if n >= 1_000 else math.nan,
    }


@pytest.mark.parametrize("n", [2, 50, 100, 101, 999, 1_000, 5_000])
@pytest.mark.parametrize("freedom", [2, 3, 30])
def test_figures_are_those_of_the_errors(n, freedom):
    errors = 0.3 + np.random.default_rng([n, freedom]).standard_t(freedom, n)
    found, wanted = tails_of(errors).figures, by_hand(errors)
    for name in ("worst_item_share", "rmse", "rmse_without_worst", "mae", "kurtosis"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-9), name
    assert found["worst_percent_share"] == pytest.approx(wanted["worst_percent_share"], rel=BIN)
    assert found["hill_index"] == pytest.approx(wanted["hill_index"], rel=0.06, nan_ok=True)


@given(ERRORS, st.integers(1, 399))
def test_merged_summaries_have_the_figures_of_all_items(errors, cut):
    first, second = errors[: cut % len(errors)], errors[cut % len(errors) :]
    parts = [
        Moments.of(np.zeros(len(part)), part, histogram=True)
        for part in (first, second)
        if len(part)
    ]
    assert_alike(compute_tails(sum(parts[1:], parts[0])).figures, tails_of(errors).figures)


@given(ERRORS, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_the_unit_does_not_matter_to_shares(errors, factor, shift):
    moments = Moments.of(np.zeros(len(errors)), errors, histogram=True)
    found, other = compute_tails(moments), compute_tails(moments.scaled(factor, shift))
    for name in ("worst_item_share", "worst_percent_share", "kurtosis"):
        assert other.figures[name] == pytest.approx(found.figures[name], rel=1e-6)
    for name in ("rmse", "mae", "rmse_without_worst"):
        wanted = factor * found.figures[name]
        assert other.figures[name] == pytest.approx(wanted, rel=1e-6, abs=1e-7 * factor)


@given(ERRORS, st.integers(0, 2**32 - 1))
def test_weights_that_are_counts_equal_repeated_items(errors, seed):
    counts = np.random.default_rng(seed).integers(1, 5, len(errors))
    found = tails_of(errors, counts.astype(float))
    wanted = tails_of(np.repeat(errors, counts))
    assert found.undefined == wanted.undefined
    assert_alike(found.figures, wanted.figures)


@given(ERRORS)
def test_shares_are_in_order(errors):
    found = tails_of(errors)
    assert 0.0 < found.worst_item_share <= found.worst_percent_share <= 1.0
    assert found.rmse_without_worst <= found.rmse * (1 + 1e-12)
    assert found.mae <= found.rmse * (1 + 1e-12)
    assert found.kurtosis >= 1.0 - 1e-9


def test_of_real_weights_the_worst_percent_is_that_of_the_weight():
    rng = np.random.default_rng(4)
    errors, weights = rng.standard_t(3, 2_000), rng.gamma(1.0, 1.0, 2_000)
    found = tails_of(errors, weights)
    order = np.argsort(-np.abs(errors))
    own = np.minimum(np.cumsum(weights[order]), 0.01 * weights.sum())
    own = np.diff(own, prepend=0.0)
    wanted = (own * errors[order] ** 2).sum() / (weights * errors**2).sum()
    assert found.worst_percent_share == pytest.approx(wanted, rel=BIN)
    fourth, second = (weights @ errors**k for k in (4, 2))
    assert found.kurtosis == pytest.approx(weights.sum() * fourth / second**2, rel=1e-9)
    assert math.isnan(found.worst_item_share)
    assert found.undefined["rmse_without_worst"] == NO_COUNT_NOTE
    scaled = tails_of(errors, 7.5 * weights).figures
    for name in ("worst_percent_share", "kurtosis", "hill_index", "rmse", "mae"):
        assert scaled[name] == pytest.approx(found.figures[name], rel=1e-9), name


def test_a_hill_index_is_the_power_of_a_pareto_tail():
    sizes = (1.0 - np.random.default_rng(1).random(200_000)) ** (-1.0 / 2.5)
    moments = Moments.of(np.zeros(len(sizes)), sizes, histogram=True)
    assert compute_hill_index(moments) == pytest.approx(2.5, rel=0.05)
    assert compute_tails(moments).is_heavy


def test_the_tail_of_a_hill_index_is_five_percent_of_the_items_rounded_down():
    errors = np.zeros(1_019)  # of which 50 are the tail
    errors[:50], errors[50] = 2.0, 1.0
    assert tails_of(errors).hill_index == pytest.approx(1.0 / math.log(2.0), rel=0.06)


def test_what_is_undefined_has_a_reason():
    errors = np.random.default_rng(1).normal(size=2_000)
    assert tails_of(errors).undefined == {}
    coarse = tails_of(errors, histogram=False)
    assert coarse.undefined == dict.fromkeys(
        ("worst_percent_share", "hill_index"), NO_HISTOGRAM_NOTE
    )
    assert tails_of(errors, order=2).undefined == {"kurtosis": "moments of order 2 were summed"}
    assert tails_of(errors[:5]).undefined == {"hill_index": "there are fewer than 1,000 items"}
    assert tails_of(errors[:1]).undefined["rmse_without_worst"] == "there is one item only"
    perfect = tails_of(np.zeros(2_000))
    assert {name for name, why in perfect.undefined.items() if why == NO_ERROR_NOTE} == {
        "worst_item_share",
        "worst_percent_share",
        "kurtosis",
        "hill_index",
    }
    assert perfect.rmse == perfect.rmse_without_worst == 0.0
    rare = np.where(np.arange(2_000) < 60, 1.0, 0.0)
    assert tails_of(rare).undefined == {"hill_index": "95% of the errors are 0"}
    for found in (coarse, perfect, tails_of(errors, np.full(2_000, 0.5))):
        values = found.figures
        assert {name for name in values if math.isnan(values[name])} == found.undefined.keys()


# --- reports -------------------------------------------------------------------------------------


def heavy(n=1_500, freedom=2.2):
    rng = np.random.default_rng(1)
    y = rng.normal(670, 104, n)
    return y, y + 40 * rng.standard_t(freedom, n)


@pytest.mark.parametrize("form", sorted(RENDERERS))
def test_every_format_has_the_figures(form):
    y, p = heavy()
    result = evaluate_regression(y, p, "mae", unit="kg")
    share = result.tails.worst_item_share
    name = "worst_item_share" if form in {"json", "csv"} else "worst item"
    shown = repr(share) if form in {"json", "csv"} else f"{100 * share:.1f}"
    report = result.to_csv("tails") if form == "csv" else render(result, form)
    assert name in report
    assert shown in report
    compared = compare(target=y, systems={"one": p, "two": y + 1.0})
    systems = compared.to_csv("tails") if form == "csv" else render(compared, form)
    assert name in systems
    assert shown in systems


def test_reports_say_what_intervals_assume_and_where_that_is_doubtful():
    y, p = heavy()
    result = evaluate_regression(y, p, ["rmse", "mae", "skill"])
    text = " ".join(str(result).split())
    assert "- Studentised intervals of squared errors (rmse, r2 and their like) assume" in text
    assert "Hill index below 3" in text
    assert (
        "95 % studentised intervals covered 93 to 97 % with normal errors, 77 to 97 % with a"
        in text
    )
    assumption = result.to_dict()["tails"]["assumption"]
    assert assumption in " ".join(result.document().notes)
    student = " ".join(str(evaluate_regression(y, p, "rmse", interval=STUDENT)).split())
    assert "Student's t intervals of squared errors (rmse, r2 and their like) assume" in student
    assert "95 % Student's t intervals covered 93 to 96 % with normal errors" in student
    assert "(the default for 20 to 100,000 of them, without clusters, in up to 20" in student
    clustered = evaluate_regression(y, p, "r2", groups=np.arange(len(y)) % 50)
    told = " ".join(str(clustered).split())
    assert "Jackknife intervals of squared errors (rmse, r2 and their like) assume" in told
    assert "assume independent clusters and a sample" in told
    assert "nominal 95 % jackknife intervals of rmse covered 82 to 89 %." in told
    light = evaluate_regression(*heavy(freedom=50), interval=FEW)
    assert "Warning" not in str(light)
    assert "covered 93 to 97 % with normal errors" in " ".join(str(light).split())
    for options in ({"metrics": "mae"}, {"interval": None}):
        assert evaluate_regression(y, p, **options).to_dict()["tails"]["assumption"] is None


FEW, STUDENT = ConfidenceIntervals(resamples=100), ConfidenceIntervals(method="t")


def test_reports_quote_the_coverage_of_the_published_study():
    page = (Path(__file__).parents[2] / "docs/studies/heavy-tails.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    found = {row[0]: row[1:] for row in cells if len(row) == 3}
    assert found["errors"] == ["student", "m-out-of-n"]
    for column, method in enumerate(("t", "studentized")):
        kinds = ("normal", "contaminated", "t5", "t3")
        for errors, quoted in zip(kinds, MEASURED_COVERAGE[method], strict=True):
            low, high = (float(x) for x in found[errors][column].split(" to "))
            least, most = (float(x) for x in quoted.split(" to "))
            assert least == math.floor(low)
            assert most == pytest.approx(high, abs=0.55)


def test_comparisons_warn_of_the_models_whose_errors_are_heavy():
    y, p = heavy()
    light = y + np.random.default_rng(2).normal(0, 40, len(y))
    result = compare(target=y, systems={"heavy": p, "light": light}, metrics="rmse,r2")
    text = " ".join(str(result).split())
    assert "the largest errors of heavy fall off so slowly" in text
    stored = json.loads(result.to_json())
    assert stored["tails"]["light"]["kurtosis"] == pytest.approx(3.0, abs=0.5)
    assert stored["tails_assumption"] in " ".join(result.document().notes)
    by_mae = compare(target=y, systems={"a": p, "b": light}, metrics="mae")
    assert by_mae.to_dict()["tails_assumption"] is None
    names = {row["metric"] for row in result.list_tables()["tails"]}
    assert names == {*result.tails["light"].figures}
    assert {row["metric"] for row in result.list_tables()["metrics"]} == {"rmse", "r2"}


def test_subgroups_have_their_own_figures():
    y, p = heavy()
    result = evaluate_regression(y, p, by=np.arange(len(y)) % 2)
    found, alone = result.by[0].tails, tails_of_items(y[::2], p[::2])
    numbers = [x for x in vars(alone) if isinstance(getattr(alone, x), float)]
    assert {x: getattr(found, x) for x in numbers} == pytest.approx(
        {x: getattr(alone, x) for x in numbers}, rel=1e-12, nan_ok=True
    )
    stored = result.to_dict()["by"]["1"]["tails"]
    assert stored["mae"] == pytest.approx(np.abs(p - y)[1::2].mean())
    rows = result.list_tables()["tails"]
    assert {row["group"] for row in rows} == {"", "0", "1"}


def tails_of_items(y, p):
    return compute_tails(Moments.of(y, p, histogram=True))


# --- verdicts where a few items carry the squared error ------------------------------------------


def miss_one_row(n=563):
    rng = np.random.default_rng(0)
    y, e = rng.normal(600.0, 90.0, n), rng.normal(0.0, 5.0, n)
    e[3] = 500.0
    return y, y + e


OPEN = ("mse", "rmse", "r2", "explained_variance", "relative_accuracy", "nrmse", "skill")


@pytest.mark.parametrize(("n", "names"), [(563, OPEN), (6, ("mae", "mse", "rmse", "nrmse"))])
def test_no_bound_asks_for_errors_larger_than_any_of_the_sample(n, names):
    """The interval of RMSE was 9.4 to 11171340, and that of R² -4179537 to 0.99."""
    found = evaluate_regression(*miss_one_row(n), [*OPEN, "mae"])
    for name in names:
        one, lower_is_better = found.metrics[name], name in {"mae", "mse", "rmse", "nrmse"}
        assert math.isinf(one.high) == lower_is_better, name
        assert math.isinf(one.low) != lower_is_better, name
        assert re.search(rf"one of {n} rows carries \d+ % of the squared error", one.note)
        assert found.to_dict()["metrics"][name]["high" if lower_is_better else "low"] is None
    assert found.metrics["mae"].is_open == ("mae" in names)
    y, p = miss_one_row()
    board = compare(target=y, systems={"a": p, "b": y + 1.0}).leaderboards["rmse"]
    assert board.get_standing("a").estimate.is_open
    assert not board.get_standing("b").estimate.is_open


def test_no_bound_of_mae_is_above_the_largest_error():
    errors = np.tan(np.pi * (np.random.default_rng(0).random(60) - 0.5))  # Cauchy's
    targets = np.arange(60.0)
    found = evaluate_regression(targets, targets + errors, metrics="mae")
    mae = found.metrics["mae"]
    assert (mae.low > 0, mae.high) == (True, math.inf)
    assert "one of 60 rows" in mae.note
    assert "mae 6.135 (95 % CI ≥ 2.633" in str(found)
    assert found.to_dict()["metrics"]["mae"]["high"] is None


def test_a_good_model_that_misses_one_row_is_better_than_the_constant():
    """It was "not significantly different from always predicting the mean"."""
    y, p = miss_one_row()
    found = evaluate_regression(y, p, unit="kg/m³")
    tests = found.against_constant
    assert (tests.absolute.verdict, tests.squared.verdict) == ("better", "better")
    verdict = found.document().verdict
    assert verdict.startswith("mae 4.672 kg/m³")
    assert "rmse 21.61 kg/m³ (95 % CI ≥ " in verdict
    assert "on these items 76.1 % less than always predicting the mean of the targets" in verdict
    assert "not significantly" not in verdict


def test_a_model_as_good_as_the_constant_is_not_called_better():
    rng = np.random.default_rng(2)
    y = rng.normal(0.0, 1.0, 300)
    found = evaluate_regression(y, rng.normal(0.0, 0.05, 300))
    assert found.against_constant.absolute.verdict == "inconclusive"
    assert "not significantly better than always predicting" in found.document().verdict
    far = evaluate_regression(y, rng.normal(0.0, 1.0, 300)).against_constant
    assert (far.absolute.verdict, far.squared.verdict) == ("worse", "worse")


def test_moments_decide_by_squares_alone_and_clusters_by_both():
    y, p = miss_one_row()
    constants = {"mean": float(y.mean())}
    alone = RegressionEvaluation.from_summary(Moments.of(y, p, constants=constants))
    assert alone.against_constant.absolute is None
    gains = (y - y.mean()) ** 2 - (p - y) ** 2
    t = stats.ttest_1samp(gains, 0.0, alternative="greater")
    assert alone.against_constant.squared.method == "t"
    assert alone.against_constant.squared.p == pytest.approx(t.pvalue, rel=1e-6)
    groups = np.arange(563) % 8
    of_clusters = evaluate_regression(y, p, groups=groups).against_constant
    assert of_clusters.absolute.p == of_clusters.squared.p == 2**-8
    assert evaluate_regression(y, p, interval=None).against_constant is None


def test_integer_weights_are_repeated_rows_in_the_tests():
    y, p = miss_one_row(60)
    counts = np.arange(60) % 3
    repeated = evaluate_regression(np.repeat(y, counts), np.repeat(p, counts)).against_constant
    weighted = evaluate_regression(y, p, weights=counts).against_constant
    assert weighted.absolute.p == pytest.approx(repeated.absolute.p, abs=0.002)
    assert weighted.constant == pytest.approx(repeated.constant)
