"""Results of a search: every trial in full, with its reason, its sign, and interim values."""

import json
import math
from dataclasses import replace

from ordinate.search.trials import Trial
from ordinate.search.tuning_result import StudyResult
from ordinate.search.tuning_text import describe_winner


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
