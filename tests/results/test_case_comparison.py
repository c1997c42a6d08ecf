"""Systems compared by their means over cases."""

import json
import math

import numpy as np
import pytest
from panels import labels, sampled
from rendered_reports import words
from scipy import stats
from strategies import scale_of

from ordinate.errors import BadOption
from ordinate.metrics import find_metric
from ordinate.render import render
from ordinate.results.comparison import compare
from ordinate.results.label_evaluation import evaluate

SIZE, N = 4, 240
SCALE = scale_of(SIZE)
GOLD, SYSTEMS = sampled(SIZE, N, 5, [0.5, 0.9, 0.55])
NAMED = {name: labels(column) for name, column in SYSTEMS.items()}
TOPICS = [f"t{k % 16}" for k in range(N)]
METRICS = "cem_ord,kendall_tau_b,mae,bias"


def compared(topics=TOPICS, gold=GOLD, systems=NAMED, metrics=METRICS, **options):
    options = {"resamples": 500} | options
    return compare(labels(gold), systems, SCALE, metrics, average_over=topics, **options)


RESULT = compared()
FOUND = RESULT.case_averages


def test_each_system_has_the_mean_and_the_interval_that_it_has_alone():
    for system, answers in NAMED.items():
        alone = evaluate(labels(GOLD), answers, SCALE, METRICS, average_over=TOPICS).case_averages
        for name, board in FOUND.leaderboards.items():
            own = board.get_standing(system).estimate
            assert own == alone.metrics[name].estimate


def test_pairs_differ_by_their_means_and_are_tested_by_case():
    result = compared([f"t{k % 10}" for k in range(N)])
    for name, board in result.case_averages.leaderboards.items():
        metric, values = find_metric(name), result.case_averages.values[name]
        by_system = dict(zip(result.panel.systems, values, strict=True))
        for pair in board.pairs:
            first, second = by_system[pair.first], by_system[pair.second]
            difference = metric.size(first.mean()) - metric.size(second.mean())
            assert pair.difference.value == pytest.approx(difference)
            assert pair.p_adjusted >= pair.p
            if metric.direction != "zero":
                exact = stats.permutation_test(
                    (first - second,),
                    np.mean,
                    permutation_type="samples",
                    n_resamples=np.inf,
                ).pvalue
                assert pair.p == pytest.approx(exact)


def test_everything_else_is_as_with_the_cases_for_clusters():
    one = RESULT.to_dict()
    other = compare(labels(GOLD), NAMED, SCALE, METRICS, groups=TOPICS, resamples=500).to_dict()
    assert one.pop("average_over")["cases"] == 16
    assert other.pop("average_over") is None
    assert one == other


def test_only_cases_in_which_all_systems_have_a_value_count():
    answers = {name: list(column) for name, column in NAMED.items()}
    first = next(iter(answers))
    for place, topic in enumerate(TOPICS):
        if topic in {"t2", "t5"}:
            answers[first][place] = SCALE.labels[1]
    found = compared(systems=answers)
    values = found.case_averages.values["kendall_tau_b"]
    shared = ~np.isnan(values).any(axis=0)
    assert shared.sum() == 14
    board = found.case_averages.leaderboards["kendall_tau_b"]
    for place, system in enumerate(found.panel.systems):
        expected = values[place, shared].mean()
        assert board.get_standing(system).estimate.value == pytest.approx(expected)
    assert found.case_averages.to_dict()["metrics"]["kendall_tau_b"]["cases_compared"] == 14
    said = words(found)
    assert "The means of kendall_tau_b are over the 14 of 16 cases in which all systems" in said


@pytest.mark.parametrize("cases", [2, 5])
def test_fewer_than_six_cases_give_no_verdict_and_that_is_said(cases):
    topics = [f"t{k % cases}" for k in range(N)]
    answers = {"good": labels(GOLD), "bad": labels((np.asarray(GOLD) + 2) % SIZE)}
    found = compared(topics, systems=answers, metrics="cem_ord,mae")
    for board in found.case_averages.leaderboards.values():
        assert [pair.verdict for pair in board.pairs] == ["inconclusive"]
        assert board.pairs[0].p == pytest.approx(2.0 ** (1 - cases))
    assert "Too few cases differ for a verdict on good - bad: with fewer than 6" in words(found)
    six = compared([f"t{k % 6}" for k in range(N)], systems=answers, metrics="cem_ord")
    assert six.case_averages.leaderboards["cem_ord"].pairs[0].verdict == "better"


def test_one_case_is_nothing_to_compare():
    found = compared(["only"] * N, metrics="cem_ord")
    board = found.case_averages.leaderboards["cem_ord"]
    assert board.pairs == ()
    assert {standing.rank for standing in board.standings} == {None}


def test_equal_systems_are_identical():
    answers = {"one": next(iter(NAMED.values())), "two": next(iter(NAMED.values()))}
    board = compared(systems=answers, metrics="mae").case_averages.leaderboards["mae"]
    assert [pair.verdict for pair in board.pairs] == ["identical"]


def test_a_system_that_has_no_value_does_not_silence_the_others():
    answers = NAMED | {"flat": [SCALE.labels[0]] * N}
    board = compared(systems=answers, metrics="kendall_tau_b").case_averages.leaderboards[
        "kendall_tau_b"
    ]
    assert len(board.pairs) == 3
    assert math.isnan(board.get_standing("flat").estimate.value)


def test_json_has_every_case_and_the_report_fits_the_terminal():
    plain = json.loads(RESULT.to_json())["average_over"]
    assert [one["case"] for one in plain["by_case"]] == list(RESULT.panel.group_values)
    system = RESULT.panel.systems[1]
    each = [one["metrics"]["mae"][system] for one in plain["by_case"]]
    assert plain["metrics"]["mae"]["systems"][system]["value"] == pytest.approx(np.mean(each))
    assert plain["metrics"]["mae"]["baselines"] is None
    assert "Mean over 16 cases: s0 leads on cem_ord" in RESULT.document().verdict
    assert max(map(len, render(RESULT, width=80).splitlines())) <= 80


def test_tables_and_flat_records_have_the_means():
    tables = RESULT.list_tables()
    assert len(tables["case_averages"]) == len(tables["metrics"]) == 12
    assert len(tables["case_average_pairs"]) == len(tables["pairs"])
    assert len(tables["cases"]) == 4 * 3 * 16


def test_the_same_seed_gives_the_same_digits():
    assert compared().to_dict() == RESULT.to_dict()


def test_cases_are_the_clusters():
    with pytest.raises(BadOption, match="are the clusters of the items"):
        compared(groups=TOPICS)
