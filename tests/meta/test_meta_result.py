"""Meta-evaluations of undefined and infinite metrics, refused options, and reports."""

import json
import math
from itertools import permutations

import numpy as np
import pytest
from meta_cases import NOISES, panel_with_cases, rank_correlation
from panels import panel_of, sampled
from rendered_reports import words

import ordinate
from ordinate.errors import BadOption, NotApplicable, UnknownMetric
from ordinate.meta.coverage import compute_coverage
from ordinate.meta.meta_evaluation import (
    EVALUATED_METRICS,
    REFERENCE_METRICS,
    check_pair_count,
    compute_merits,
    evaluate_metrics,
)
from ordinate.meta.robustness import average_merits
from ordinate.meta.system_resampling import (
    compute_resampled_coverage,
)
from ordinate.metrics import find_metric
from ordinate.render import render

# --- what is undefined ---------------------------------------------------------------------------


def test_a_metric_that_refuses_has_a_row_with_the_reason():
    gold, systems = sampled(4, 200, 1, NOISES)
    systems["s0"] = [None, *systems["s0"][1:]]
    panel = panel_of(gold, systems, 4, groups=[i // 20 for i in range(200)])
    found = evaluate_metrics(panel, "cem_ord,pearson,mae", "accuracy,cem_ord", resamples=100)
    last = found.ranked[-1]
    assert last.metric.name == "pearson"
    assert last.reason == "it has no meaning for items without a prediction"
    plain = found.to_dict()["metrics"]["pearson"]
    values = (plain["coverage"]["value"], plain["stability"]["value"], plain["undefined"])
    assert values == (None,) * 3
    assert plain["ranked"] is False
    assert plain["reason"] in render(found)
    assert found.to_dict()["agreement"]["pearson"]["mae"]["value"] is None
    with pytest.raises(NotApplicable, match="reference kendall_tau_a cannot be computed: it has"):
        evaluate_metrics(panel, resamples=100)
    with pytest.raises(
        NotApplicable, match=r"None of the metrics can be computed\. pearson: it has no"
    ):
        evaluate_metrics(panel, "pearson", "accuracy", resamples=100)


def test_a_metric_that_is_constant_is_nan_with_reasons_and_last():
    gold, systems = sampled(4, 200, 1, NOISES)
    panel = panel_of(gold, systems, 4, groups=[i // 20 for i in range(200)])
    found = evaluate_metrics(panel, ["accuracy_within(n=3)", "mae"], resamples=100)
    last = found.ranked[-1]
    assert last.metric.expression == "accuracy_within(n=3)"
    assert last.reason.count(";") == 2
    assert math.isnan(last.coverage.value)
    assert last.discriminative_power == 0.0
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["metrics"]["accuracy_within(n=3)"]["robustness"]["value"] is None
    assert "undefined" in render(found)


def test_values_that_are_undefined_in_a_test_case_are_counted():
    gold = [0, 1, 2] * 40
    systems = {
        "a": [1] * 12 + gold[12:],  # constant in the first two test cases
        "b": [(g + (i % 5 == 0)) % 3 for i, g in enumerate(gold)],
        "c": [(g + (i % 3 == 0)) % 3 for i, g in enumerate(gold)],
    }
    panel = panel_of(gold, systems, 3, groups=[i // 6 for i in range(120)])
    found = evaluate_metrics(panel, "kendall_tau_b,accuracy", resamples=100)
    assert found.metrics[0].undefined_share == pytest.approx(2 / 60)
    assert found.metrics[1].undefined_share == 0.0
    silent = evaluate_metrics(panel, "accuracy", "kendall_tau_b", resamples=100)
    assert any("A reference is undefined in 3.3 %" in note for note in silent.to_dict()["notes"])


def partial_panel():
    """Four systems; two of them answer always the same, and so have no correlation."""
    gold, systems = sampled(4, 240, 3, (0.5, 0.9))
    systems |= {"s2": [1] * 240, "s3": [2] * 240}
    return panel_of(gold, systems, 4, groups=[i // 20 for i in range(240)])


def test_a_metric_that_is_undefined_for_systems_is_listed_apart_and_leads_nobody():
    found = evaluate_metrics(partial_panel(), "kendall_tau_b,mae,accuracy", resamples=200)
    partial, whole, _ = found.metrics
    assert partial.coverage.value == 1.0 >= whole.coverage.value  # over two systems it is 1 or -1
    assert found.best is not partial
    assert found.ranked[-1] is partial
    assert partial.unranked_reason == "it is defined for 2 of 4 systems"
    assert partial.behind_best is None
    plain = found.to_dict()["metrics"]["kendall_tau_b"]
    assert plain["ranked"] is False
    assert "it is defined for 2 of 4 systems" in plain["reason"]
    assert found.to_dict()["metrics"]["mae"]["ranked"] is True
    text = " ".join(str(found).split())
    apart = text.partition("Metrics that are not ranked")[2].partition("Rankings of systems")[0]
    assert "kendall_tau_b 1.000" in apart
    assert "it is defined for 2 of 4 systems" in apart
    assert "mae" not in apart
    alike = text.partition("JSON has all pairs")[2].partition("Unanimous improvement")[0]
    assert "mae accuracy" in alike
    assert "mae kendall_tau_b" not in alike  # over two systems
    assert text.partition("captures most")[0].endswith(
        f"{found.best.metric.expression}, one of them, "
    )


def test_the_best_metric_is_the_one_that_others_are_behind():
    found = evaluate_metrics(partial_panel(), "kendall_tau_b,mae,accuracy,pearson", resamples=200)
    behind = [one for one in found.metrics if one.behind_best is not None]
    assert len(behind) == 1
    for one in behind:
        gap = one.coverage.value - found.best.coverage.value
        assert one.behind_best.value == pytest.approx(gap)


def test_where_no_metric_knows_the_systems_of_all_others_none_is_best():
    gold, systems = sampled(4, 240, 3, (0.5, 0.9, 1.3))
    panel = panel_of(gold, systems | {"s3": [1] * 240}, 4, groups=[i // 20 for i in range(240)])
    found = evaluate_metrics(panel, "kendall_tau_b", resamples=100)
    assert found.best is found.metrics[0]  # nobody knows the fourth system
    assert evaluate_metrics(panel, "kendall_tau_b,mae", resamples=100).best.metric.name == "mae"


def test_without_limits_nothing_is_best_and_the_reason_is_said():
    """The reference is defined for two systems, and most resamples lack one of them."""
    found = evaluate_metrics(partial_panel(), "mae,accuracy", "kendall_tau_b", resamples=200)
    assert found.best is None
    assert [one.behind_best for one in found.metrics] == [None, None]
    most = "it is undefined in most of the resamples"
    for one in found.metrics:
        assert (math.isnan(one.coverage.value), one.coverage.note) == (False, most)
        assert one.reason == f"its coverage has no interval: {most}"
    plain = found.to_dict()
    assert most in plain["metrics"]["mae"]["reason"]
    assert f"mae and accuracy: its coverage has no interval: {most}." in plain["notes"]
    text = " ".join(str(found).split())
    assert f"Of no metric can be said that it captures most of kendall_tau_b: {most}." in text


def test_the_note_on_draws_without_coverage_names_the_metrics():
    gold, systems = sampled(4, 240, 3, (0.5, 0.9, 1.2, 1.5))
    panel = panel_of(gold, systems | {"s4": [1] * 240}, 4, groups=[i // 20 for i in range(240)])
    notes = evaluate_metrics(panel, "mae,kendall_tau_b,bias", resamples=300).to_dict()["notes"]
    (note,) = [note for note in notes if "have no coverage" in note]
    assert note.endswith("left out, of mae, kendall_tau_b and bias.")


# --- infinite values -----------------------------------------------------------------------------


def test_nobody_gains_by_being_infinitely_bad(panel):
    """Without its worst test case the worst system would be the best one."""

    @ordinate.metric(direction="minimize")
    def endless(table):
        """Mean error, infinite where fewer than a third of the items are right."""
        right = np.trace(table.counts, axis1=-2, axis2=-1) / table.total
        error = (table.counts * table.scale.gaps).sum(axis=(-2, -1)) / table.total
        return np.where(right < 0.34, np.inf, np.where(right < 0.5, 0.0, error))

    tables = [panel.count_by_group(system) for system in panel.systems]
    merits = compute_merits(endless, tables)
    worst = np.isneginf(merits).any(axis=1)
    assert worst.any()
    assert not worst.all()
    assert not np.isnan(merits).any()
    means = average_merits(merits[None])[0]
    assert np.isneginf(means[worst]).all()
    assert np.isfinite(means[~worst]).all()
    found = evaluate_metrics(panel, [endless, "mae"], resamples=100)
    own = found.metrics[0]
    assert own.undefined_share == 0.0
    assert own.infinite_share == pytest.approx(np.isinf(merits).mean())
    assert own.discriminative_power == 0.0
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["metrics"]["endless"]["coverage"]["value"] == pytest.approx(own.coverage.value)
    assert any("Infinite for a system in a test case, endless" in n for n in plain["notes"])


def test_infinite_means_are_ranked_and_two_of_them_have_no_difference():
    merits = np.array([[0.9, -math.inf, 0.5, -math.inf], [0.4, 0.3, 0.2, 0.1]])
    ratios = np.array([[0, 1, 0.5, 1], [-1, 0, 0, 0], [-0.5, 0, 0, 0.5], [-1, 0, -0.5, 0]])
    gains, wanted = [], []
    for one, other in permutations(range(4), 2):
        if {one, other} != {1, 3}:
            high = {0: 0.9, 1: -99.0, 2: 0.5, 3: -99.0}
            gap = high[one] - high[other]
            gains.append(math.copysign(99.0, gap) if abs(gap) > 9 else gap)
            wanted.append(ratios[one, other])
    expected = rank_correlation(gains, wanted)
    assert compute_coverage(merits, ratios)[0] == pytest.approx(expected)
    gained = np.repeat(ratios[np.triu_indices(4, 1)][:, None], 3, axis=1)
    drawn = compute_resampled_coverage(merits, gained, np.ones(4), np.ones(3))
    assert drawn == pytest.approx(compute_coverage(merits, ratios))


# --- too little, and bad options -----------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
def test_few_systems_have_values_and_nothing_that_needs_pairs(count):
    gold, systems = sampled(3, 60, 0, NOISES[:count])
    panel = panel_of(gold, systems, 3, groups=[k % 6 for k in range(60)])
    found = evaluate_metrics(panel, "cem_ord,bias", "accuracy", resamples=100)
    assert found.best is None
    plain = json.loads(render(found, "json"))
    for name, one in plain["metrics"].items():
        assert one["coverage"]["value"] is one["robustness"]["value"] is None
        assert one["stability"]["value"] is one["discriminative_power"] is None
        assert one["reason"] == "pairs of 3 systems or more are needed"
        for system, own in one["values"].items():
            each = np.asarray(find_metric(name)(panel.count_by_group(system)))
            assert own["by_case"] == pytest.approx(each.tolist())
            assert own["value"] == pytest.approx(each.mean())
            assert own["low"] < own["value"] < own["high"]
    text = words(found)
    assert "Mean cem_ord over 6 test cases, with 95 % CI: s0 0." in text
    assert "pairs of 3 systems or more are needed" in text
    assert max(map(len, render(found, width=80).splitlines())) <= 80


def test_no_system_is_too_few():
    with pytest.raises(BadOption, match="takes one system or more"):
        check_pair_count(0, 10)


def test_values_are_those_of_each_system_and_test_case(panel, result):
    plain = result.to_dict()
    assert plain["test_case_names"] == list(panel.group_values)
    for one in result.metrics:
        for place, system in enumerate(panel.systems):
            each = np.asarray(one.metric(panel.count_by_group(system)))
            assert one.values[place].tolist() == each.tolist()
            own = plain["metrics"][one.metric.expression]["values"][system]
            assert len(own["by_case"]) == 12
            assert own["cases_with_value"] == np.isfinite(each).sum()
    rows = result.list_tables()["values"]
    assert len(rows) == len(result.metrics) * len(panel.systems) * 12
    assert "Mean over 12 test cases with 95 % CI; JSON has every metric and test case" in str(
        result
    )


def test_a_single_test_case_is_split_at_random_like_none():
    gold, systems = sampled(3, 60, 0, NOISES[:3])
    one = evaluate_metrics(
        panel_of(gold, systems, 3, groups=["only"] * 60), "mae", resamples=100, cases=6
    )
    none = evaluate_metrics(panel_of(gold, systems, 3), "mae", resamples=100, cases=6)
    assert one.panel == none.panel
    assert one.to_dict()["metrics"] == none.to_dict()["metrics"]
    assert one.cases_at_random
    note = "only is the only test case: the items were split at random into 6 parts"
    assert any(text.startswith(note) for text in one.to_dict()["notes"])


def test_few_systems_or_test_cases_are_said_to_be_rough(result):
    assert "5 systems are few: all confidence intervals are rough." in result.to_dict()["notes"]
    few = evaluate_metrics(panel_with_cases(cases=3), "mae", resamples=100).to_dict()["notes"]
    assert "5 systems and 3 test cases are few: all confidence intervals are rough." in few


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"level": 1.0}, BadOption, "level of intervals is 0.5 to below 1"),
        ({"resamples": 10}, BadOption, "10 resamples are too few"),
        ({"seed": -1}, BadOption, "seed must be an integer"),
        ({"alpha": 0.0}, BadOption, "alpha is the level of tests"),
        ({"alpha": 0.001, "resamples": 100}, BadOption, "from 1 / \\(resamples \\+ 1\\)"),
        ({"unanimity": "loose"}, BadOption, "not one of weak, strict"),
        ({"metrics": "nothing"}, UnknownMetric, "no metric 'nothing'"),
        ({"references": ()}, BadOption, "No metric was named"),
    ],
)
def test_options_that_make_no_sense_are_refused(panel, options, error, message):
    with pytest.raises(error, match=message):
        evaluate_metrics(panel, **options)


# --- reports -------------------------------------------------------------------------------------


def test_the_json_report_has_everything_under_its_name(panel, result):
    found = json.loads(render(result, "json"))
    assert (found["schema"], found["task"], found["test_cases"]) == (1, "meta", 12)
    assert found["systems"] == list(panel.systems)
    assert found["references"] == list(REFERENCE_METRICS)
    assert list(found["metrics"]) == list(EVALUATED_METRICS)
    one = found["metrics"]["cem_ord"]
    for measure in (one["coverage"], one["robustness"], one["stability"]):
        assert {"value", "low", "high"} <= set(measure)
        assert measure["low"] <= measure["value"] <= measure["high"]
    assert one["coverage"]["low"] <= one["coverage"]["value"] <= one["coverage"]["high"]
    assert 0 <= one["discriminative_power"] <= 1
    assert one["reason"] is None
    assert found["agreement"]["mae"]["mae"]["value"] == 1.0
    alike = found["agreement"]["mae"]["bias"]
    assert alike["low"] <= alike["value"] <= alike["high"]
    ratios = found["unanimous_improvement"]
    assert ratios["s0"]["s4"] == -ratios["s4"]["s0"] > 0
    best = [name for name, row in found["metrics"].items() if row["behind_best"] is None]
    assert best == [result.best.metric.expression]


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "latex"])
def test_every_form_names_every_metric(result, form):
    text = render(result, form).replace("\\_", "_")
    assert all(name in text for name in EVALUATED_METRICS)


def test_the_text_says_what_leads_and_whether_that_is_sure(result):
    text = " ".join(str(result).split())
    best = result.best
    assert f"{best.metric.expression}" in text
    assert "captures most of accuracy, kendall_tau_a and mutual_information: coverage 0." in text
    assert "is not significantly different from" in text
    assert "never of pairs" in text
    assert result._repr_html_().startswith("<")


def test_many_systems_are_ranked_instead_of_shown_in_pairs():
    gold, systems = sampled(4, 240, 1, np.linspace(0.3, 2.0, 33))
    panel = panel_of(gold, systems, 4, groups=[i // 20 for i in range(240)])
    text = str(evaluate_metrics(panel, "mae", resamples=100))
    assert "3 more systems are in the JSON report" in text
    assert "is improved by" in text


def test_a_reference_that_leads_is_called_one_and_the_best_other_is_named(panel):
    found = evaluate_metrics(panel, "mae,bias", "mae", resamples=100)
    text = " ".join(str(found).split())
    assert "mae, one of them, captures most of mae: coverage" in text
    assert "Of the metrics that are no references, bias does: coverage" in text


def test_a_metric_without_coverage_is_no_leader():
    gold = [0, 1, 2] * 20
    systems = dict.fromkeys(("a", "b", "c"), gold)  # all perfect
    panel = panel_of(gold, systems, 3, groups=[i // 6 for i in range(60)])
    found = evaluate_metrics(panel, "mae", resamples=100)
    text = " ".join(str(found).split())
    assert "Of no metric can be said that it captures most of accuracy, kendall_tau_a and" in text
    assert "mutual_information: the metric, or the unanimous improvement, is the same for" in text
    assert found.unanimous_improvement.tolist() == [[0.0] * 3] * 3
    assert found.best is None
    assert found.metrics[0].discriminative_power == 0.0
