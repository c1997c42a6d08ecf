"""Decisions: from answers to levels, probabilities and sets, frozen as plain numbers."""

import json

import numpy as np
import pytest

from ordinate.errors import BadInput, BadOption, BadProbabilities, BadStore
from ordinate.metrics import find_metric, get_summary_type
from ordinate.postprocess import (
    CutPoints,
    Decoder,
    OrdinalConformalSets,
    TemperatureScaling,
    VectorScaling,
)
from ordinate.scale import Scale
from ordinate.tuning.classify.decision_rules import (
    DECISION_RULES,
    CalibrationPlan,
    OutputCalibration,
    predict_rough_levels,
)
from ordinate.tuning.classify.proportional_odds import ProportionalOdds

SCALE = Scale.of("low,mid,high,top")  # an order that is not that of sorted labels
WIDE = Scale(SCALE.labels, positions=[0, 1, 2, 10])
WEIGHTS = np.array([0.5, 1.0, 2.0, 4.0])


def made(seed=0, n=400):
    """Return scores, probabilities that mean what they say, and levels drawn from them."""
    rng = np.random.default_rng(seed)
    scores = 2.0 * rng.normal(size=n)
    below = 1.0 / (1.0 + np.exp(-(np.array([-2.0, 0.5, 3.0]) - scores[:, None])))
    rows = np.diff(below, axis=1, prepend=0.0, append=1.0)
    gold = (rng.random(n)[:, None] > below).sum(axis=1)
    return scores, rows, gold


SCORES, ROWS, GOLD = made()
LABELS = np.array(SCALE.labels)[GOLD]
SHARES = np.bincount(GOLD) / len(GOLD)


def weighted(rows):
    """Return what a likelihood fit with WEIGHTS would have answered."""
    return rows * WEIGHTS / (rows * WEIGHTS).sum(axis=1, keepdims=True)


CASES = {
    "probabilities": (CalibrationPlan(SCALE, find_metric("quadratic_kappa")), ROWS, None),
    "undone": (CalibrationPlan(SCALE, find_metric("cem_ord")), ROWS, WEIGHTS),
    "recalibrated": (
        CalibrationPlan(SCALE, find_metric("f1_macro"), recalibration="vector"),
        weighted(ROWS),
        None,
    ),
    "scores": (CalibrationPlan(WIDE, find_metric("mae"), scores=True, cut=True), SCORES, None),
    "argmax": (CalibrationPlan(SCALE, find_metric("mae"), decode="argmax"), ROWS, None),
    "rounded_mean": (CalibrationPlan(WIDE, find_metric("mae"), decode="rounded_mean"), ROWS, None),
    "undecodable": (CalibrationPlan(SCALE, find_metric("kendall_tau_b")), ROWS, None),
    "weighted metric": (
        CalibrationPlan(SCALE, find_metric("mae"), weights=(0.5, 1.0, 2.0, 4.0)),
        ROWS,
        None,
    ),
    "one level": (
        CalibrationPlan(SCALE, find_metric("quadratic_kappa"), scores=True, cut=True),
        np.zeros(400),
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_plain_values_bring_back_the_same_decision(case):
    plan, answers, weights = CASES[case]
    gold = np.ones(400, np.intp) if case == "one level" else GOLD
    decision = plan.fit(answers, gold, weights)
    decision = decision.calibrate_sets(decision.probabilities(answers), gold)
    told = json.dumps(decision.to_dict(), allow_nan=False)
    again = OutputCalibration.from_dict(json.loads(told))
    asked = weighted(answers) if weights is not None else answers
    for way in DECISION_RULES:
        assert np.array_equal(decision.levels(asked, way), again.levels(asked, way))
    assert np.array_equal(decision.probabilities(asked), again.probabilities(asked))
    first, second = decision.sets(asked), again.sets(asked)
    assert np.array_equal(first.members, second.members)
    assert json.dumps(again.to_dict(), allow_nan=False) == told
    assert again.scale == plan.scale


# --- levels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["quadratic_kappa", "cem_ord", "mae", "f1_macro"])
def test_decoded_levels_are_those_of_a_decoder_for_the_metric(metric):
    decision = CalibrationPlan(WIDE, find_metric(metric)).fit(ROWS, GOLD)
    rows = TemperatureScaling(WIDE, columns=WIDE.labels).fit_transform(ROWS, LABELS)
    decoder = Decoder(metric, WIDE, columns=WIDE.labels).fit(rows, LABELS)
    assert np.array_equal(decision.levels(ROWS), decoder.predict_positions(rows))
    assert decision.decode == "metric"


def test_decoding_is_not_misled_by_a_model_that_is_held_back():
    timid = ROWS**0.2 / (ROWS**0.2).sum(axis=1, keepdims=True)
    decision = CalibrationPlan(SCALE, find_metric("mse")).fit(timid, GOLD)
    assert np.abs(decision.probabilities(timid) - ROWS).mean() < 0.03
    plain = Decoder("mse", SCALE, columns=SCALE.labels).fit(timid, LABELS)
    ends = [0, len(SCALE) - 1]
    assert not np.isin(plain.predict_positions(timid), ends).any()  # doubt keeps to the middle
    assert np.isin(decision.levels(timid), ends).mean() > 0.1


def test_scores_are_cut_where_the_metric_is_best():
    decision = CalibrationPlan(SCALE, find_metric("macro_mae"), scores=True, cut=True).fit(
        SCORES, GOLD
    )
    cuts = CutPoints("macro_mae", scale=SCALE).fit(SCORES, LABELS)
    assert np.array_equal(np.array(SCALE.labels)[decision.levels(SCORES)], cuts.predict(SCORES))


@pytest.mark.parametrize("metric", ["accuracy", "mae", "cem_ord"])
def test_a_weighted_metric_is_decoded_with_weighted_probabilities(metric):
    decision = CalibrationPlan(WIDE, find_metric(metric), weights=tuple(WEIGHTS)).fit(ROWS, GOLD)
    rows = weighted(decision.probabilities(ROWS))
    decoder = Decoder(metric, WIDE, columns=WIDE.labels).fit(rows, LABELS, WEIGHTS[GOLD])
    assert np.array_equal(decision.levels(ROWS), decoder.predict_positions(rows))
    plain = CalibrationPlan(WIDE, find_metric(metric)).fit(ROWS, GOLD)
    assert not np.array_equal(decision.levels(ROWS), plain.levels(ROWS))
    assert np.array_equal(decision.levels(ROWS, "argmax"), ROWS.argmax(axis=1))


def test_weights_of_levels_change_nothing_where_each_level_counts_alike():
    plain, heavy = (
        CalibrationPlan(SCALE, find_metric("macro_mae"), weights=w) for w in (None, tuple(WEIGHTS))
    )
    assert np.array_equal(plain.fit(ROWS, GOLD).levels(ROWS), heavy.fit(ROWS, GOLD).levels(ROWS))


def test_scores_are_cut_where_the_weighted_metric_is_best():
    plan = CalibrationPlan(SCALE, find_metric("mae"), scores=True, cut=True, weights=tuple(WEIGHTS))
    cuts = CutPoints("mae", scale=SCALE).fit(SCORES, LABELS, WEIGHTS[GOLD])
    assert np.array_equal(plan.fit(SCORES, GOLD).cuts, cuts.cuts_)
    assert not np.array_equal(cuts.cuts_, CutPoints("mae", scale=SCALE).fit(SCORES, LABELS).cuts_)


def test_argmax_takes_the_lowest_of_equals():
    decision = CalibrationPlan(SCALE, find_metric("mae")).fit(ROWS, GOLD)
    rows = [[0.1, 0.4, 0.4, 0.1], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 1.0]]
    assert decision.levels(rows, "argmax").tolist() == [1, 0, 3]


def test_the_average_goes_to_the_nearest_level_by_its_position():
    rows = [[0.5, 0.0, 0.0, 0.5], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.9, 0.1]]
    even = CalibrationPlan(SCALE, find_metric("mae")).fit(ROWS, GOLD).levels(rows, "rounded_mean")
    wide = CalibrationPlan(WIDE, find_metric("mae")).fit(ROWS, GOLD).levels(rows, "rounded_mean")
    assert even.tolist() == [1, 0, 2]  # 1.5 and 0.5 go to the lower of two
    assert wide.tolist() == [2, 0, 2]  # 5.0 is nearer to 2 than to 10


@pytest.mark.parametrize("decode", ["argmax", "rounded_mean"])
def test_decoded_means_another_way_where_that_is_asked_for(decode):
    decision = CalibrationPlan(SCALE, find_metric("quadratic_kappa"), decode=decode).fit(ROWS, GOLD)
    assert np.array_equal(decision.levels(ROWS), decision.levels(ROWS, decode))
    assert decision.notes == ()


@pytest.mark.parametrize(
    ("metric", "rows", "gold", "said"),
    [
        ("kendall_tau_b", ROWS, GOLD, "neither a sum"),
        ("bias", ROWS, GOLD, "best at 0"),
        ("quadratic_kappa", ROWS, np.ones(400, np.intp), "one level only"),
        ("quadratic_kappa", np.tile(SHARES, (400, 1)), GOLD, "no better than chance"),
    ],
    ids=["no way", "zero is best", "one level", "chance"],
)
def test_what_cannot_be_decoded_becomes_argmax_with_a_note(metric, rows, gold, said):
    decision = CalibrationPlan(SCALE, find_metric(metric)).fit(rows, gold)
    assert decision.decode == "argmax"
    assert any(said in note and "most probable" in note for note in decision.notes)
    assert np.array_equal(decision.levels(rows), rows.argmax(axis=1))


def test_rough_levels_need_no_decision():
    rows, any_gold = np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([0, 1])
    assert predict_rough_levels(rows, any_gold, 2).tolist() == [1, 0]
    levels = predict_rough_levels(7.0 + SCORES / 100.0, GOLD, len(SCALE))
    assert (levels == ROWS.argmax(axis=1)).mean() > 0.9  # wherever the scores lie


# --- probabilities -------------------------------------------------------------------------------


def test_class_weights_of_the_model_asked_about_are_undone():
    decision = CalibrationPlan(SCALE, find_metric("quadratic_kappa")).fit(ROWS, GOLD, WEIGHTS)
    plain = CalibrationPlan(SCALE, find_metric("quadratic_kappa")).fit(ROWS, GOLD)
    found = decision.probabilities(weighted(ROWS))
    assert np.allclose(found, plain.probabilities(ROWS), atol=1e-12)
    assert np.abs(found - ROWS).mean() < 0.03
    assert np.array_equal(decision.levels(weighted(ROWS)), plain.levels(ROWS))


def test_certain_answers_stay_certain_when_weights_are_undone():
    decision = CalibrationPlan(SCALE, find_metric("quadratic_kappa")).fit(
        np.eye(4)[GOLD], GOLD, WEIGHTS
    )
    sure = np.eye(4)
    assert np.allclose(decision.probabilities(sure), sure, atol=1e-12)
    assert decision.levels(sure).tolist() == [0, 1, 2, 3]


def test_recalibration_brings_weighted_answers_back():
    plan = CalibrationPlan(SCALE, find_metric("mae"), recalibration="vector")
    found = plan.fit(weighted(ROWS), GOLD).probabilities(weighted(ROWS))
    scaling = VectorScaling(SCALE, columns=SCALE.labels).fit(weighted(ROWS), LABELS)
    assert np.allclose(found, scaling.predict_proba(weighted(ROWS)), atol=1e-9)
    assert np.abs(found - ROWS).mean() < 0.3 * np.abs(weighted(ROWS) - ROWS).mean()


def test_scores_become_probabilities_by_proportional_odds():
    found = (
        CalibrationPlan(SCALE, find_metric("mae"), scores=True, cut=True)
        .fit(SCORES, GOLD)
        .probabilities(SCORES)
    )
    assert np.abs(found - ROWS).mean() < 0.03  # the odds that the levels were drawn with
    assert np.allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("recalibrated", ["temperature", "vector"])
def test_items_of_a_level_that_no_fit_had_seen_do_not_decide_how_sure_to_be(recalibrated):
    plan = CalibrationPlan(SCALE, find_metric("mae"), recalibration=recalibrated)
    there = np.flatnonzero(GOLD != 3)
    rows, gold = ROWS[there] * [1, 1, 1, 0], GOLD[there].copy()
    gold[7] = 3  # which its fit had never seen
    taught = np.arange(len(there)) != 7
    kept = plan.fit(rows, gold, seen=taught).probabilities(rows)
    alone = plan.fit(rows[taught], gold[taught]).probabilities(rows)
    wrecked = plan.fit(rows, gold).probabilities(rows)
    assert np.array_equal(kept, alone)
    assert np.abs(kept - wrecked).max() > 0.001


def test_where_no_item_was_taught_answers_stay_as_they_are():
    decision = CalibrationPlan(SCALE, find_metric("mae")).fit(
        ROWS, GOLD, seen=np.zeros(len(GOLD), bool)
    )
    assert decision.scaling is None
    assert np.allclose(decision.probabilities(ROWS), ROWS)


@pytest.mark.parametrize("factor", [1e-300, 1e-3, 1e6, 1e300])
def test_probabilities_do_not_depend_on_the_unit_of_the_scores(factor):
    usual = ProportionalOdds.fit(SCORES, GOLD, 4).probabilities(SCORES)
    other = ProportionalOdds.fit(SCORES * factor, GOLD, 4).probabilities(SCORES * factor)
    assert np.allclose(usual, other, atol=1e-6)


def test_scores_far_beyond_all_others_are_certain():
    found = ProportionalOdds.fit(SCORES * 1e-3, GOLD, 4).probabilities(np.array([-1e308, 1e308]))
    assert np.array_equal(found, [[1, 0, 0, 0], [0, 0, 0, 1]])


def test_equal_scores_give_the_shares_of_the_levels():
    found = ProportionalOdds.fit(np.full(400, 3.5), GOLD, 4).probabilities(
        np.array([3.5, -1e308, 1e308])
    )
    assert np.allclose(found, SHARES, atol=1e-4)


def test_levels_never_seen_get_no_probability_from_scores():
    gold = np.where(GOLD == 1, 0, GOLD)
    found = ProportionalOdds.fit(SCORES, gold, 5).probabilities(SCORES)
    assert (found[:, [1, 4]] == 0).all()
    assert (found[:, [0, 2, 3]] > 0).all()


def test_gold_of_one_level_is_certain_of_it():
    decision = CalibrationPlan(SCALE, find_metric("mae"), scores=True, cut=True).fit(
        SCORES, np.full(400, 2)
    )
    assert np.array_equal(decision.probabilities(SCORES[:3]), [[0, 0, 1, 0]] * 3)
    assert set(decision.levels(SCORES)) == {2}


def test_single_precision_rows_are_taken():
    decision = CalibrationPlan(SCALE, find_metric("quadratic_kappa")).fit(
        ROWS.astype(np.float32), GOLD
    )
    assert np.allclose(decision.probabilities(ROWS.astype(np.float32)).sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0.2, 0.8]], "each level needs a column"),
        ([[0.0, 0.0, 0.0, 0.0]], "item 1"),
        ([[0.2, 0.8, np.nan, 0.0]], "item 1"),
        ([[0.5, 0.5, 0.0, 0.0], [-0.2, 1.2, 0.0, 0.0]], "item 2"),
        ([0.1, 0.2], "each level needs a column"),
    ],
    ids=["columns", "nothing", "nan", "negative", "scores"],
)
def test_what_are_no_probabilities_is_refused(rows, said):
    decision = CalibrationPlan(SCALE, find_metric("mae")).fit(ROWS, GOLD)
    with pytest.raises(BadProbabilities, match=said):
        decision.levels(rows)


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(BadInput, match="row 1"):
        CalibrationPlan(SCALE, find_metric("mae"), scores=True, cut=True).fit(
            np.where(SCORES[0] == SCORES, np.inf, 0), GOLD
        )


# --- sets ----------------------------------------------------------------------------------------


def test_sets_are_those_of_ordinal_sets():
    decision = CalibrationPlan(SCALE, find_metric("mae")).fit(ROWS, GOLD)
    rows = decision.probabilities(ROWS)
    found = decision.calibrate_sets(rows, GOLD).sets(ROWS)
    sets = (
        OrdinalConformalSets(0.1, scale=SCALE, columns=SCALE.labels).fit(rows, LABELS).predict(rows)
    )
    assert np.array_equal(found.members, sets.members)
    assert found.sizes.min() < len(SCALE)


def test_without_learned_sets_every_level_is_in_them():
    assert set(CalibrationPlan(SCALE, find_metric("mae")).fit(ROWS, GOLD).sets(ROWS).sizes) == {
        len(SCALE)
    }


def test_too_few_items_put_every_level_into_each_set():
    decision = (
        CalibrationPlan(SCALE, find_metric("mae"))
        .fit(ROWS, GOLD)
        .calibrate_sets(ROWS[:8], GOLD[:8])
    )
    assert decision.sets(ROWS).sizes.tolist() == [4] * len(ROWS)
    assert any("needs 9 items" in note for note in decision.notes)


# --- stored decisions ----------------------------------------------------------------------------


def plain(case="probabilities"):
    plan, answers, weights = CASES[case]
    return plan.fit(answers, GOLD, weights).to_dict()


STORED_ODDS = {
    "size": 4,
    "seen": [0, 1, 2, 3],
    "center": 0.0,
    "spread": 1.0,
    "slope": 1.0,
    "cuts": [-1.0, 0.0, 1.0],
}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("gain", [[1.0, 0.0], [0.0, 1.0]], "'gain' of a calibration takes 4 x 4 numbers"),
        ("gain", [[1.0] * 4] * 3 + [[1.0] * 3], "'gain' of a calibration takes 4 x 4"),
        ("gain", [[None] * 4] * 4, "'gain' of a calibration takes 4 x 4"),
        ("gain", [["inf"] * 4] * 4, "'gain' of a calibration takes 4 x 4"),
        ("gain", None, "nothing leads to the levels of its metric"),
        ("scaling", [[1.0], [0.0]], "'scaling' of a calibration takes 2 x 4 numbers"),
        ("scaling", [[1.0, 1.0, 1.0, "nan"], [0.0] * 4], "'scaling' of a calibration takes"),
        ("scaling", 1.0, "'scaling' of a calibration takes 2 x 4"),
        ("decode", "evil", "decode 'evil' is not known"),
        ("decode", ["metric"], "is not known"),
        ("positions", [0, 1, 2], "cannot be read: .*4 numbers"),
        ("positions", [3, 2, 1, 0], "cannot be read"),
        ("positions", 5, "cannot be read"),
        ("scale", None, "cannot be read"),
        ("class_weights", [1.0, 1.0, 0.0, 1.0], "class weights are not above 0"),
        ("class_weights", [1.0], "'class_weights' of a calibration takes 4 numbers"),
        ("threshold", "nan", "'threshold' of a calibration takes one numbers"),
        ("threshold", None, "lacks 'threshold'"),
        ("threshold", -0.5, "threshold of prediction sets is below 0"),
        ("cuts", [0.0, 1.0], "'cuts' of a calibration takes 3 numbers"),
        ("cuts", [0.0, 2.0, 1.0], "cuts do not rise"),
        ("cuts", [0.0, 1.0, "inf"], "it has no odds"),
        ("notes", None, "cannot be read"),
        ("odds", 5, "lacks 'size'"),
        ("odds", STORED_ODDS | {"size": 5}, "odds are not of 4 levels"),
        ("odds", STORED_ODDS | {"seen": [0, 1, 2, 4]}, "some of their 4 levels"),
        ("odds", STORED_ODDS | {"seen": [0, 2, 1, 3]}, "some of their 4 levels"),
        ("odds", STORED_ODDS | {"seen": []}, "some of their 4 levels"),
        ("odds", STORED_ODDS | {"cuts": [0.0]}, "'cuts' of a calibration takes 3 numbers"),
        ("odds", STORED_ODDS | {"cuts": [0.0, 2.0, 1.0]}, "do not rise"),
        ("odds", STORED_ODDS | {"spread": 0.0}, "do not rise"),
        ("odds", STORED_ODDS | {"slope": "inf"}, "'slope' of a calibration takes one"),
    ],
)
def test_a_stored_calibration_that_cannot_work_is_refused(name, value, said):
    with pytest.raises(BadStore, match=said):
        OutputCalibration.from_dict(plain() | {name: value})


@pytest.mark.parametrize("name", plain())
def test_a_stored_calibration_that_lacks_something_is_refused(name):
    data = plain()
    del data[name]
    with pytest.raises(BadStore, match=f"lacks '{name}'"):
        OutputCalibration.from_dict(data)


@pytest.mark.parametrize("value", [None, [], "text", 5])
def test_what_is_no_calibration_is_refused(value):
    with pytest.raises(BadStore, match="A calibration cannot be read"):
        OutputCalibration.from_dict(value)


# --- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "weights", "scores", "recalibrated"),
    [
        ("logistic", False, False, "temperature"),
        ("logistic", True, False, "temperature"),
        ("forest", False, False, "temperature"),
        ("forest", True, False, "vector"),
        ("svm", False, False, "vector"),
        ("svm", True, False, "vector"),
        ("regression", False, True, "temperature"),
    ],
)
def test_a_plan_knows_what_a_kind_of_model_needs(kind, weights, scores, recalibrated):
    plan = CalibrationPlan.of(kind, SCALE, find_metric("mae"), weighted=weights)
    assert (plan.scores, plan.recalibration) == (scores, recalibrated)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda: CalibrationPlan(
                SCALE, find_metric("log_loss", get_summary_type("probabilities"))
            ),
            "no metric of labels",
        ),
        (
            lambda: CalibrationPlan(SCALE, find_metric("expected_cost")),
            r"write expected_cost\(matrix=…\)",
        ),
        (
            lambda: CalibrationPlan(SCALE, find_metric("mae"), decode="best"),
            "not one of metric, argmax, rounded_mean",
        ),
        (
            lambda: CalibrationPlan(SCALE, find_metric("mae")).fit(ROWS, GOLD).levels(ROWS, "best"),
            "rule='best'",
        ),
    ],
    ids=["probabilities", "option", "decode", "way"],
)
def test_what_cannot_be_planned_is_refused(made, said):
    with pytest.raises(BadOption, match=said):
        made()
