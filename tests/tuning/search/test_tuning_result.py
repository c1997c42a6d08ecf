"""Results of a search: every trial in full, with its reason, its sign, and interim values."""

import json
import math
from dataclasses import replace

from ordinate.tuning.search.studies import Trial
from ordinate.tuning.search.tuning_result import OPTIMISM_NOTE, StudyResult, describe_winner


def test_every_trial_is_told_of_with_its_reason_and_its_sign():
    trials = (
        Trial(0, "failed", None, {"C": 1.0}, {}, {}, "it cannot be fitted"),
        Trial(1, "complete", 0.25, {"C": 2.0}, {1: 0.5}, {"signed_value": -0.25}),
        Trial(2, "pruned", None, {"C": 3.0}, {1: math.inf}, {}),
    )
    study = StudyResult("strong", "logistic", 3, trials, None)
    failed, complete, pruned = study.list_trials()["trials"]
    assert (failed["state"], failed["reason"]) == ("failed", "it cannot be fitted")
    assert (complete["value"], complete["signed_value"]) == (0.25, -0.25)
    assert complete["reason"] is None
    assert complete["after_folds"] == {"1": 0.5}
    assert pruned["after_folds"] == {"1": None}  # which JSON has no number for
    assert json.dumps(study.list_trials(), allow_nan=False)
    assert study.counts == {"complete": 1, "pruned": 1, "failed": 1}
    assert study.title == "strong/logistic"


def test_a_test_that_comes_out_as_cross_validation_is_neither_better_nor_worse(finished):
    _, result = finished
    report = result.report
    gap = " ".join(filter(None, (report.format_value(0.25), report.unit)))
    for optimism, said in (
        (0.0, f"the same as {report.basis}."),
        (0.25, f"{gap} worse than {report.basis}."),
        (-0.25, f"{gap} better than {report.basis}."),
    ):
        tested = replace(result.tests[0], optimism=optimism)
        assert describe_winner(replace(result, tests=(tested,))).endswith(said)


def test_a_value_without_an_interval_is_not_compared(finished, monkeypatch):
    """As of a test of one item, which comes out better or worse by chance alone."""
    _, result = finished
    alone = replace(result.report.get_estimate(result.winner.evaluation), low=math.nan)
    monkeypatch.setattr(type(result.report), "get_estimate", lambda *_: alone)
    said = describe_winner(result)
    assert said.endswith(", which has no confidence interval.")
    assert " than by cross-validation" not in said


def test_a_test_that_was_learned_from_is_no_test(finished, monkeypatch):
    _, result = finished
    assert result.report.count_seen_items(result, result.tests[0]) == 0
    for seen, share in ((2, "2 of"), (result.tests[0].n, "all")):
        monkeypatch.setattr(type(result.report), "count_seen_items", lambda *_, x=seen: x)
        verdict = describe_winner(result)
        n = result.tests[0].n
        assert verdict.endswith(
            f", which is optimistically biased: it has learned from {share} its {n} items."
        )
        assert "by which nothing was selected" not in verdict
        with monkeypatch.context() as patch:
            patch.setattr(type(result.report), "describe_weakness", lambda *_: "no better")
            assert describe_winner(result).endswith(f"its {n} items. Even so it is no better.")
        text = " ".join(str(result).split())
        assert f"{OPTIMISM_NOTE}." in text
        assert "selected nothing" not in text


def test_the_verdict_says_how_far_the_timeout_let_the_search_come(finished):
    _, result = finished
    first, second = result.studies
    assert "timeout" not in describe_winner(result)
    cut = replace(first, trials=first.trials[:1])
    begun = replace(result, studies=(cut, second))
    assert ". The timeout ended the search after 4 of 6 trials. " in describe_winner(begun)
    idle = replace(result, studies=(first, replace(second, trials=())))
    assert (
        f". The timeout ended the search after 3 of 6 trials: {second.model_type} was not tried. "
        in describe_winner(idle)
    )
