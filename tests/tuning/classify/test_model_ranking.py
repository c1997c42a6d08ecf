"""Rankings: as compare says, with baselines, shares of answers and warnings beside."""

import csv
import io
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ordinate import Scale, compare
from ordinate.errors import BadOption, MissingLabels
from ordinate.inference import Estimate
from ordinate.metrics import find_metric
from ordinate.postprocess.decoder import make_label_array
from ordinate.render import render
from ordinate.results.comparison_settings import ComparisonSettings
from ordinate.tuning.classify.external_systems import PredictionCoverage
from ordinate.tuning.classify.model_evaluation import _build_set_grid, describe_coverage
from ordinate.tuning.classify.model_ranking import ModelRanking
from ordinate.tuning.classify.scoring import NO_BETTER_THAN_CHANCE
from ordinate.tuning.classify.system_predictions import SystemPredictions, format_chance_flag

CEFR = Scale.of("cefr")
LABELS = make_label_array(CEFR)
NONE = len(CEFR)
N = 90
QUICK = ComparisonSettings(resamples=200)
RNG = np.random.default_rng(3)
GOLD = RNG.integers(0, 6, N)
IDS = tuple(f"e{k}" for k in range(N))


def noisy(rate):
    moved = np.where(RNG.random(N) < rate, RNG.integers(-2, 3, N), 0)
    return np.clip(GOLD + moved, 0, 5)


GOOD, FAIR, RANDOM = noisy(0.2), noisy(0.6), RNG.integers(0, 6, N)
PARTLY = np.where(np.arange(N) < 30, NONE, FAIR)


def contest(answers, **further):
    return SystemPredictions("essays", "essays.csv", CEFR, IDS, GOLD, answers, **further)


def ranked(answers, metric="cem_ord", unanswered="worst", how=QUICK, **further):
    return ModelRanking.of(
        [contest(answers, **further)], find_metric(metric), None, how, unanswered=unanswered
    )


def test_a_ranking_is_what_compare_says_of_the_same_answers():
    (found,) = ranked({"good": GOOD, "fair": FAIR, "random": RANDOM}).tests
    columns = {"good": LABELS[GOOD], "fair": LABELS[FAIR], "random": LABELS[RANDOM]}
    expected = compare(LABELS[GOLD], columns, "cefr", "cem_ord", resamples=200)
    assert found.leaderboard.to_dict() == expected.leaderboards["cem_ord"].to_dict()
    assert [one.system for one in found.leaderboard.standings] == ["good", "fair", "random"]


def test_each_test_set_has_its_views():
    tests = [contest({"good": GOOD, "fair": FAIR, "random": RANDOM}), contest({"good": GOOD})]
    tests[1] = replace(tests[1], name="letters")
    result = ModelRanking.of(tests, find_metric("cem_ord"), None, QUICK)
    for one in result.tests:
        chart = result.get_chart("leaderboard", one.test_set.name)
        assert chart.panels == one.comparison.get_chart("leaderboard").panels


def test_groups_are_drawn_whole():
    writers = np.array([f"w{k % 9}" for k in range(N)], object)
    (found,) = ranked({"good": GOOD, "fair": FAIR}, groups=writers).tests
    columns = {"good": LABELS[GOOD], "fair": LABELS[FAIR]}
    expected = compare(LABELS[GOLD], columns, "cefr", "cem_ord", groups=writers, resamples=200)
    assert found.leaderboard.to_dict() == expected.leaderboards["cem_ord"].to_dict()
    alone = ranked({"good": GOOD, "fair": FAIR}).tests[0]
    assert found.kappas["good"].low != alone.kappas["good"].low


def test_a_system_no_better_than_chance_is_flagged_and_only_that_one():
    result = ranked({"good": GOOD, "random": RANDOM, "constant": np.full(N, 2)})
    (found,) = result.tests
    flags = {name: found.flag(name) for name in found.kappas}
    assert flags == {
        "good": None,
        "random": "no better than chance",
        "constant": "no better than chance",
    }
    lines = str(result).splitlines()
    (line,) = [line for line in lines if " random " in line and "no better" in line]
    assert line.endswith("no better than chance")
    assert not any(" good " in line and "no better" in line for line in lines)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.01, 0.4, None),
        (-0.01, 0.4, NO_BETTER_THAN_CHANCE),
        (-0.4, -0.1, NO_BETTER_THAN_CHANCE),
        (np.nan, np.nan, NO_BETTER_THAN_CHANCE),
    ],
)
def test_the_flag_looks_at_the_interval(low, high, expected):
    assert format_chance_flag(Estimate(0.2, low, high, "delta")) == expected


def test_baselines_are_rows_of_the_leaderboard_and_of_the_flat_records():
    result = ranked({"good": GOOD, "fair": FAIR})
    assert "(always " in str(result)
    assert "(chance)" in str(result)
    rows = list(csv.DictReader(io.StringIO(render(result, "csv"))))
    assert [row["role"] for row in rows] == ["system", "system"] + ["baseline"] * 3
    assert rows[-1]["system"] == "chance"
    assert 0.0 < float(rows[-1]["value"]) < 0.6


# --- unanswered items ----------------------------------------------------------------------------


def test_unanswered_items_count_as_the_worst_answer_unless_said_otherwise():
    answered = {"partly": PredictionCoverage(60, N)}
    worst = ranked({"good": GOOD, "partly": PARTLY}, metric="mae", coverage=answered)
    dropped = ranked({"good": GOOD, "partly": PARTLY}, "mae", "drop", coverage=answered)
    kept = np.arange(N) >= 30
    mae = np.abs(FAIR - GOLD)[kept].mean()
    assert dropped.tests[0].leaderboard.get_standing("partly").estimate.value == pytest.approx(mae)
    assert worst.tests[0].leaderboard.get_standing("partly").estimate.value > mae
    assert (worst.tests[0].comparison.panel.n, dropped.tests[0].comparison.panel.n) == (N, 60)
    alone = ranked({"good": GOOD}, "mae").tests[0].leaderboard.get_standing("good").estimate.value
    assert worst.tests[0].leaderboard.get_standing("good").estimate.value == alone
    assert "left out for all of them" in str(dropped)
    assert "Unanswered items count as the worst prediction." in str(worst)
    assert "66.7 %" in str(worst)


def test_unanswered_items_can_be_refused_by_their_ids():
    message = r"30 of 90 predictions of partly are missing \(id e0, id e1, .*unanswered='worst'"
    with pytest.raises(MissingLabels, match=message):
        ranked({"good": GOOD, "partly": PARTLY}, unanswered="error")
    with pytest.raises(BadOption, match="unanswered='best' is not one of"):
        ranked({"good": GOOD, "partly": PARTLY}, unanswered="best")


def test_the_flag_of_a_system_with_gaps_comes_from_the_items_that_it_answers():
    result = ranked({"good": GOOD, "partly": PARTLY}, "quadratic_kappa")
    (found,) = result.tests
    assert np.isnan(found.leaderboard.get_standing("partly").estimate.value)
    assert found.kappas["partly"].low > 0
    assert found.flag("partly") is None
    assert "--unanswered drop takes the items out for all" in " ".join(str(result).split())
    silent = ranked({"good": GOOD, "silent": np.full(N, NONE)}, "mae").tests[0]
    assert silent.flag("silent") == "no better than chance"


# --- the report ----------------------------------------------------------------------------------


def test_json_has_what_every_system_answers_and_its_kappa():
    unknown = PredictionCoverage(60, N, ("zz",))
    result = ranked({"good": GOOD, "partly": PARTLY}, "mae", coverage={"partly": unknown})
    found = json.loads(render(result, "json"))
    systems = found["tests"]["essays"]["metrics"]["mae"]["systems"]
    assert systems["partly"]["coverage"]["unknown_ids"] == ["zz"]
    assert systems["partly"]["coverage"]["share"] == pytest.approx(2 / 3)
    assert systems["good"]["coverage"] is None
    assert systems["good"]["quadratic_kappa"]["low"] > 0
    assert (found["metric"], found["unanswered"]) == ("mae", "worst")


def test_items_without_gold_are_counted():
    assert "3 items have no gold level: left out." in str(ranked({"good": GOOD}, unlabelled=3))
    assert "1 item has no gold level: left out." in str(ranked({"good": GOOD}, unlabelled=1))


def test_one_system_alone_has_its_value_and_no_differences():
    text = str(ranked({"good": GOOD}, "mae"))
    assert "Leaderboard by mae" in text
    assert "Differences" not in text
    assert "nothing to compare" not in text


def test_every_test_set_has_its_own_board():
    half = np.arange(N) < 45
    other = SystemPredictions("letters", "l.csv", CEFR, IDS[:45], GOLD[half], {"good": FAIR[half]})
    result = ModelRanking.of(
        [contest({"good": GOOD, "fair": FAIR}), other], find_metric("mae"), None, QUICK
    )
    assert [row["test"] for row in result.rows()] == ["essays"] * 5 + ["letters"] * 4
    assert "essays: Leaderboard by mae" in str(result)
    assert "letters: Leaderboard by mae" in str(result)


@pytest.mark.parametrize(
    ("form", "sign"), [("markdown", "| rank | system |"), ("latex", r"\begin{tabular}")]
)
def test_papers_get_their_tables(form, sign):
    text = render(ranked({"good": GOOD, "under_score": FAIR}), form)
    assert sign in text
    assert {"markdown": r"under\_score", "latex": r"under\_score"}[form] in text


def test_coverage_stands_beside_what_it_should_be_and_is_told_of_where_it_is_not():
    def covering(name, *bounds):
        found = Estimate(sum(bounds) / 2, *bounds, "wilson")
        return SimpleNamespace(model=name, sets=SimpleNamespace(coverage=found, mean_size=2.0))

    models = [covering("a", 0.73, 0.89), covering("b", 0.85, 0.93), covering("c", 0.91, 0.97)]
    tests = [SimpleNamespace(name="test", models=models)]
    assert _build_set_grid(tests).header[2] == "coverage (nominal 90 %)"
    (below,) = describe_coverage(tests)
    assert "The coverage of a on test has a confidence interval wholly below the nominal" in below
    assert "significantly" not in below
    assert describe_coverage([SimpleNamespace(name="test", models=models[1:])]) == []
    unknown = covering("d", math.nan, math.nan)
    assert describe_coverage([SimpleNamespace(name="test", models=[unknown])]) == []
