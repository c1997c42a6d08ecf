"""Averages over cases beside the value of all items, and cases that have their own scales."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from interval_evaluations import ANSWERS, GOLD, QUICK, SCALE, SECOND, N, evaluated
from panels import labels
from rendered_reports import words

from ordinate.errors import BadOption, MissingLabels, OffScale
from ordinate.metrics import find_metric
from ordinate.render import render
from ordinate.results.case_averages import CaseAverages
from ordinate.results.case_scales import evaluate_cases
from ordinate.results.label_evaluation import evaluate
from ordinate.summaries import ConfusionMatrix

TOPICS = [f"t{k}" for k in np.random.default_rng(8).integers(0, 15, N)]
SOME = "cem_ord,kendall_tau_b,mae"


def choose(column, topic, topics=TOPICS):
    return [x for x, here in zip(column, topics, strict=True) if here == topic]


def score_alone(name, topic, gold=GOLD, answers=ANSWERS):
    matrix = ConfusionMatrix.of(labels(choose(gold, topic)), labels(choose(answers, topic)), SCALE)
    return float(find_metric(name)(matrix))


def test_the_mean_is_over_the_values_that_the_cases_have_alone():
    found = evaluated(metrics=SOME, average_over=TOPICS).case_averages
    assert set(found.names) == set(TOPICS)
    for name, score in found.metrics.items():
        alone = [score_alone(name, topic) for topic in found.names]
        assert score.values == pytest.approx(alone)
        assert score.value == pytest.approx(np.mean(alone))


def test_everything_else_is_as_with_the_cases_for_clusters():
    one = evaluated(metrics=SOME, average_over=TOPICS).to_dict()
    other = evaluated(metrics=SOME, groups=TOPICS).to_dict()
    assert one.pop("average_over")["cases"] == other["groups"] == 15
    assert other.pop("average_over") is None
    assert one == other


def test_fixed_cases_have_other_intervals_and_the_same_means():
    sampled, fixed = (
        evaluated(metrics=SOME, average_over=TOPICS, fixed_cases=x).case_averages
        for x in (False, True)
    )
    for name in sampled.metrics:
        one, other = sampled.metrics[name].estimate, fixed.metrics[name].estimate
        assert (one.value, one.method) == (other.value, "t_over_cases")
        assert other.method == "items_of_cases"
        assert one.low != other.low


def test_the_worst_cases_have_the_intervals_that_subgroups_have():
    found = evaluated(metrics=SOME, average_over=TOPICS).case_averages
    alone = evaluated(metrics=SOME, by=TOPICS).by
    for name, score in found.metrics.items():
        assert len(score.worst) == 5
        for place, own in score.worst.items():
            assert own == alone[found.names[place]].metrics[name].estimate
        merits = score.metric.merit(score.values)
        assert max(merits[list(score.worst)]) <= min(np.delete(merits, list(score.worst)))


def test_a_subgroup_has_averages_of_its_own():
    parts = [("de", "fr")[k % 2] for k in range(N)]
    found = evaluated(metrics="mae", by=parts, average_over=TOPICS)
    inside = [k for k in range(N) if parts[k] == "de"]
    alone = evaluated(
        [GOLD[k] for k in inside],
        [ANSWERS[k] for k in inside],
        metrics="mae",
        average_over=[TOPICS[k] for k in inside],
    )
    own = found.by["de"].case_averages
    assert own.metrics["mae"].estimate.value == pytest.approx(
        alone.case_averages.metrics["mae"].estimate.value
    )
    assert sorted(own.names) == sorted(alone.case_averages.names)


def test_a_case_without_a_value_is_counted_and_named_and_never_0():
    gold = [0 if topic in {"t3", "t4"} else x for x, topic in zip(GOLD, TOPICS, strict=True)]
    result = evaluated(gold, metrics=SOME, average_over=TOPICS)
    found = result.case_averages.metrics["kendall_tau_b"]
    others = [t for t in result.case_averages.names if t not in {"t3", "t4"}]
    expected = np.mean([score_alone("kendall_tau_b", topic, gold) for topic in others])
    assert (found.value, found.average.cases) == (pytest.approx(expected), 13)
    said = words(result)
    assert "kendall_tau_b has no value in 2 of 15 cases, which the mean leaves out (gold" in said
    by_case = {one["case"]: one["metrics"] for one in result.to_dict()["average_over"]["by_case"]}
    assert by_case["t3"]["kendall_tau_b"]["value"] is None
    assert by_case["t3"]["kendall_tau_b"]["undefined"] == found.metric.undefined_when


def test_a_metric_that_fits_no_case_says_why():
    answers = labels(ANSWERS)
    answers[5] = None
    result = evaluate(
        *(labels(GOLD), answers, SCALE, "quadratic_kappa,cem_ord"),
        average_over=TOPICS,
        missing="worst",
        interval=QUICK,
    )
    assert "no value in any case: it has no meaning for items without a prediction" in words(result)
    assert not math.isnan(result.case_averages.metrics["cem_ord"].value)


def test_json_has_every_case():
    found = json.loads(evaluated(metrics=SOME, average_over=TOPICS).to_json())["average_over"]
    assert (found["cases"], found["cases_fixed"], found["interval"]) == (15, False, 0.95)
    for name in SOME.split(","):
        values = [one["metrics"][name]["value"] for one in found["by_case"]]
        metric = found["metrics"][name]
        assert metric["value"] == pytest.approx(np.mean(values))
        assert metric["spread"] == pytest.approx(np.std(values, ddof=1))
        noise = np.mean([one["metrics"][name]["standard_error"] ** 2 for one in found["by_case"]])
        left = max(0.0, metric["spread"] ** 2 - noise)
        assert metric["spread_without_item_noise"] == pytest.approx(math.sqrt(left))
        assert metric["cases_with_value"] == 15
    assert sum(one["n"] for one in found["by_case"]) == N


def test_the_report_states_the_mean_first_and_fits_the_terminal():
    topics = pd.Series(TOPICS, name="topic")
    result = evaluated(metrics=None, average_over=topics)
    verdict = result.document().verdict
    assert "Mean over 15 cases of topic: cem_ord 0." in verdict
    assert "; pooled 0." in verdict
    text = render(result, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "Worst cases by cem_ord; JSON has all" in text
    assert "the pooled value weighs items, and its clusters are the cases" in words(text)


def test_without_intervals_there_are_the_means():
    found = evaluated(metrics=SOME, average_over=TOPICS, interval=None)
    assert found.case_averages.metrics["mae"].estimate.method is None
    assert found.case_averages.metrics["mae"].worst == {}
    assert "Mean over 15 cases" in words(found)


def test_tables_and_flat_records_have_the_averages():
    result = evaluated(metrics="mae", average_over=TOPICS)
    tables = result.list_tables()
    assert len(tables["cases"]) == 15
    assert tables["case_averages"][0]["value"] == result.case_averages.metrics["mae"].value
    means = [row for row in result.rows() if row["mean_over_cases"]]
    assert [row["value"] for row in means] == [result.case_averages.metrics["mae"].value]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"average_over": TOPICS, "groups": TOPICS}, "are the clusters of the items: leave out"),
        ({"fixed_cases": True}, "Which cases are fixed"),
        ({"scale": {"t1": "1..4"}}, "evaluate_cases"),
    ],
)
def test_what_makes_no_sense_is_refused(options, match):
    with pytest.raises(BadOption, match=match):
        evaluated(**options)


def test_an_item_without_a_case_is_an_error_or_dropped():
    topics = [None, *TOPICS[1:]]
    with pytest.raises(MissingLabels, match="have no group"):
        evaluated(average_over=topics)
    found = evaluated(metrics="mae", average_over=topics, missing="drop")
    assert found.case_averages.items.sum() == N - 1


# --- cases that have their own scales -------------------------------------------------------------


SCALES = {"essay": "2..12", "letter": "0..3", "report": "0..60"}


def make_prompts(seed: int = 3, n: int = 40):
    """Return gold, predicted and cases of prompts that have their own ranges."""
    rng = np.random.default_rng(seed)
    rows = []
    for case, scale in SCALES.items():
        low, high = map(int, scale.split(".."))
        gold = rng.integers(low, high + 1, n)
        near = np.clip(gold + rng.integers(-2, 3, n), low, high)
        rows += [(int(a), int(b), case) for a, b in zip(gold, near, strict=True)]
    rng.shuffle(rows)
    gold, predicted, cases = zip(*rows, strict=True)
    return list(map(int, gold)), list(map(int, predicted)), list(cases)


PROMPTS = make_prompts()


def test_each_case_is_evaluated_on_its_own_scale():
    gold, predicted, cases = PROMPTS
    found = evaluate_cases(*PROMPTS, SCALES, "quadratic_kappa,cem_ord,mae", interval=QUICK)
    for name, score in found.metrics.items():
        for case, value in zip(found.names, score.values, strict=True):
            columns = (choose(column, case, cases) for column in (gold, predicted))
            alone = ConfusionMatrix.of(*columns, SCALES[case])
            assert value == pytest.approx(float(find_metric(name)(alone)))
        assert score.value == pytest.approx(score.values.mean())


def test_cases_of_their_own_scales_are_fixed_unless_said_otherwise():
    fixed = evaluate_cases(*PROMPTS, SCALES, "quadratic_kappa", interval=QUICK)
    sampled = evaluate_cases(*PROMPTS, SCALES, "quadratic_kappa", fixed_cases=False)
    assert fixed.metrics["quadratic_kappa"].estimate.method == "items_of_cases"
    assert sampled.metrics["quadratic_kappa"].estimate.method == "t_over_cases"


def test_nothing_is_pooled_and_that_is_said():
    found = evaluate_cases(*PROMPTS, SCALES, interval=QUICK)
    assert isinstance(found, CaseAverages)
    said = words(found)
    assert "there is no pooled value" in said
    assert "the Fisher-z mean of kappas or correlations is another number" in said
    assert "mae, macro_mae and bias: in steps of each scale" in said
    assert max(map(len, render(found, width=80).splitlines())) <= 80
    plain = json.loads(found.to_json())
    assert {one["case"]: len(one["scale"]) for one in plain["by_case"]} == {
        "essay": 11,
        "letter": 4,
        "report": 61,
    }


def test_equal_scales_give_what_the_average_over_cases_gives():
    scales = dict.fromkeys(sorted(set(TOPICS)), SCALE)
    columns = labels(GOLD), labels(ANSWERS), TOPICS
    one = evaluate_cases(*columns, scales, SOME, fixed_cases=False, interval=QUICK)
    other = evaluated(metrics=SOME, average_over=TOPICS).case_averages
    assert one.describe()["metrics"] == other.describe()["metrics"]


def test_cases_are_known_however_they_are_spelled():
    gold, predicted, cases = PROMPTS
    numbers = [list(SCALES).index(case) + 1 for case in cases]
    scales = {str(k): scale for k, scale in enumerate(SCALES.values(), 1)}
    one = evaluate_cases(gold, predicted, numbers, scales, "cem_ord", interval=None)
    other = evaluate_cases(*PROMPTS, SCALES, "cem_ord", interval=None)
    assert one.metrics["cem_ord"].values.tolist() == (other.metrics["cem_ord"].values.tolist())


def test_labels_of_another_case_and_cases_without_a_scale_are_refused():
    gold, predicted, cases = (list(column) for column in PROMPTS)
    few = {case: scale for case, scale in SCALES.items() if case != "letter"}
    with pytest.raises(BadOption, match="Case 'letter' has no scale"):
        evaluate_cases(gold, predicted, cases, few)
    with pytest.raises(BadOption, match="Case 'note' has no scale"):  # before its labels
        evaluate_cases([*gold, "X"], [*predicted, "Y"], [*cases, "note"], SCALES)
    predicted[cases.index("letter")] = 40
    with pytest.raises(OffScale, match=r"40 \(predicted, in case 'letter'\) is not on the scale"):
        evaluate_cases(gold, predicted, cases, SCALES)
    predicted[cases.index("letter")] = 99
    with pytest.raises(OffScale, match=r"99 \(row .*labels of all scales of the cases together"):
        evaluate_cases(gold, predicted, cases, SCALES)
    with pytest.raises(BadOption, match="There are no scales"):
        evaluate_cases(gold, predicted, cases, {})


def test_a_scale_without_items_is_noted():
    found = evaluate_cases(*PROMPTS, SCALES | {"poem": "0..5"}, "mae", interval=None)
    assert "Case 'poem' has no items." in found.origin.notes


def test_the_second_rater_does_not_disturb_the_averages():
    one = evaluated(metrics=SOME, average_over=TOPICS, second_rater=labels(SECOND))
    other = evaluated(metrics=SOME, average_over=TOPICS)
    assert one.case_averages == other.case_averages
