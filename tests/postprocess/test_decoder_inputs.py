"""What a decoder takes: class weights, missing levels, columns, scikit-learn; and refuses."""

import pickle

import numpy as np
import pytest
from decoding_cases import BY_SHARES, COSTS, KAPPAS, SHARES, SIX, THREE, rows_of, simulated, table
from hypothesis import given
from hypothesis import strategies as st

from ordinate import Scale
from ordinate.errors import (
    BadOption,
    BadProbabilities,
    MissingLabels,
    NoItems,
    NotFitted,
    UnequalLengths,
    UnknownMetric,
)
from ordinate.metrics import find_metric, list_metrics
from ordinate.postprocess.class_priors import undo_class_weights
from ordinate.postprocess.decoder import Decoder, make_label_array
from ordinate.postprocess.decoding_costs import (
    SEARCHED_METRICS,
    minimise_cost_ratio,
)

# --- class weights and shares --------------------------------------------------------------------


def tilted(p, weights):
    q = p * weights
    return q / q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("expression", ["accuracy", "mae", "quadratic_kappa", "cem_ord"])
def test_class_weights_are_undone(expression):
    p, gold = simulated(3000, 12)
    weights = np.array([8.0, 4.0, 1.0, 1.0, 2.0, 5.0])
    labels = make_label_array(SIX)[gold]
    plain = Decoder(expression, SIX).fit(p, labels)
    by_order = Decoder(expression, SIX, class_weights=weights).fit(tilted(p, weights), labels)
    by_level = Decoder(
        expression, SIX, class_weights=dict(zip(SIX.labels, weights.tolist(), strict=True))
    ).fit(tilted(p, weights), labels)
    assert (plain.predict(p) == by_order.predict(tilted(p, weights))).all()
    assert (plain.predict(p) == by_level.predict(tilted(p, weights))).all()
    assert by_order.notes_ == plain.notes_ == ()


def test_balanced_weights_are_one_over_the_shares_of_gold():
    p, gold = simulated(3000, 13)
    weights = 1.0 / (np.bincount(gold) / len(gold))
    labels = make_label_array(SIX)[gold]
    plain = Decoder("mae", SIX).fit(p, labels)
    balanced = Decoder("mae", SIX, class_weights="balanced").fit(tilted(p, weights), labels)
    assert (plain.predict(p) == balanced.predict(tilted(p, weights))).all()


def test_balanced_weights_leave_a_level_that_gold_lacks_at_nothing():
    p = np.array([[0.5, 0.5, 0.0], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]])
    decoder = Decoder("accuracy", THREE, class_weights="balanced", columns="scale").fit(
        p, ["low", "mid", "mid"]
    )
    assert decoder.predict(p).tolist() == ["mid", "mid", "high"]


def test_mean_probabilities_far_from_the_shares_of_gold_are_noted():
    p, gold = simulated(3000, 14)
    weights = np.array([8.0, 4.0, 1.0, 1.0, 2.0, 5.0])
    labels = make_label_array(SIX)[gold]
    notes = Decoder("mae", SIX).fit(tilted(p, weights), labels).notes_
    assert len(notes) == 1
    assert "away from the shares of gold" in notes[0]
    assert "fitted with class weights (pass them" in notes[0]
    wrong = Decoder("mae", SIX, class_weights=weights).fit(p, labels).notes_
    assert "not the ones of a weighted-likelihood fit" in wrong[0]


def test_a_shift_of_the_levels_is_warned_of_where_their_shares_decide():
    p, gold = simulated(3000, 15)
    other, _ = simulated(3000, 16, SHARES[::-1] * [1, 1, 1, 1, 1, 3] / 1.06)
    decoder = Decoder("quadratic_kappa", SIX).fit(p, make_label_array(SIX)[gold])
    assert decoder.describe_shift(p) is None
    with pytest.warns(UserWarning, match="away from the shares of the levels"):
        decoder.predict(other)
    assert "fit it on items like these" in decoder.describe_shift(other)
    assert Decoder("mae", SIX).fit(p, make_label_array(SIX)[gold]).describe_shift(other) is None


def test_a_few_rows_do_not_look_like_a_shift():
    p, gold = simulated(3000, 17)
    decoder = Decoder("quadratic_kappa", SIX).fit(p, make_label_array(SIX)[gold])
    assert all(decoder.describe_shift(row[None]) is None for row in p[:50])


@given(p=rows_of(3), weights=st.lists(st.floats(0.1, 10), min_size=3, max_size=3))
def test_undone_probabilities_sum_to_one_and_weighing_them_again_restores_them(p, weights):
    found = undo_class_weights(p, np.array(weights))
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert tilted(found, np.array(weights)) == pytest.approx(p)


# --- levels that gold lacks ----------------------------------------------------------------------


@pytest.mark.parametrize("expression", [*BY_SHARES, *KAPPAS, *SEARCHED_METRICS])
def test_a_level_that_gold_lacks_does_no_harm(expression):
    p, gold = simulated(600, 18, np.array([0.3, 0.4, 0.28, 0.02]))
    gold = np.minimum(gold, 2)
    scale = Scale.of("1..4")
    decoder = Decoder(expression, scale).fit(p, gold + 1)
    assert np.isfinite(decoder.gain_).all()
    assert any("no item of 4" in note for note in decoder.notes_)
    if expression not in KAPPAS:  # which go to the ends, where chance errs most
        assert (decoder.predict_positions(p) == 3).sum() <= (p[:, 3] > 0.2).sum()


def test_a_level_that_gold_lacks_is_still_an_answer_where_shares_play_no_part():
    p = [[0.0, 0.1, 0.9], [0.9, 0.1, 0.0], [0.1, 0.9, 0.0]]
    decoder = Decoder("mae", THREE, columns="scale").fit(p, ["mid", "low", "mid"])
    assert decoder.predict(p).tolist() == ["high", "low", "mid"]


# --- doors ---------------------------------------------------------------------------------------


def test_columns_are_found_by_name():
    import pandas as pd

    p, gold = simulated(300, 19)
    labels = make_label_array(SIX)[gold]
    order = [3, 0, 5, 1, 4, 2]
    names = [SIX.labels[k] for k in order]
    plain = Decoder("quadratic_kappa", SIX).fit(p, labels).predict(p)
    named = Decoder("quadratic_kappa", SIX, columns=names).fit(p[:, order], labels)
    framed = pd.DataFrame(p[:, order], columns=[f"p_{name}" for name in names])
    assert (named.predict(p[:, order]) == plain).all()
    assert (Decoder("quadratic_kappa", SIX).fit(framed, labels).predict(framed) == plain).all()


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["low", "mid", "high"], "U"),
        ([1, 2, 3], "i"),
        ([0.5, 1.0, 2.0], "f"),
        (["low", 2, "high"], "O"),
        ([(1, 2), (2, 3), (3, 4)], "O"),
    ],
)
def test_predictions_are_labels_of_the_scale(labels, kind):
    found = (
        Decoder("mae", Scale(labels), columns="scale")
        .fit()
        .predict([[0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])
    )
    assert found.dtype.kind == kind
    assert found.tolist() == [labels[1], labels[2]]


def test_the_scale_may_come_with_gold():
    p, gold = simulated(300, 20)
    assert Decoder("cem_ord").fit(p, make_label_array(SIX)[gold]).scale_.preset == "cefr"


def test_a_cost_matrix_of_ones_own_is_a_metric_too():
    p, _ = simulated(500, 21, np.full(4, 0.25))
    scale = Scale.of("1..4")
    named = Decoder(f"expected_cost(matrix={COSTS})", scale).fit().predict(p)
    assert (Decoder(cost=COSTS, scale=scale).fit().predict(p) == named).all()
    assert (Decoder(cost=np.array(COSTS), scale=scale).fit().predict(p) == named).all()
    brute = (p @ np.array(COSTS)).argmin(axis=1)
    assert (Decoder(cost=COSTS, scale=scale).fit().predict_positions(p) == brute).all()


def test_rows_that_nearly_sum_to_one_are_taken_where_asked_for():
    row = [[0.2, 0.5, 0.305]]
    with pytest.raises(BadProbabilities, match=r"sum to 1\.005"):
        Decoder("mae", THREE, columns="scale").fit().predict(row)
    assert Decoder("mae", THREE, renormalize=True, columns="scale").fit().predict(row).tolist() == [
        "mid"
    ]


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kendall_tau_b", "pearson", "oci", "gwet_ac2", "purity"])
def test_what_cannot_be_decoded_is_refused_with_the_reason(name):
    with pytest.raises(BadOption, match=f"{name} cannot be decoded: it is neither a sum"):
        Decoder(name, SIX).fit()


def test_every_metric_is_decoded_or_refused():
    p, gold = simulated(300, 22)
    labels = make_label_array(SIX)[gold]
    for metric in list_metrics():
        try:
            Decoder(metric, SIX).fit(p, labels)
        except BadOption as problem:
            assert "cannot be decoded" in str(problem) or metric.required  # noqa: PT017 - either


def test_bias_is_best_at_zero_and_so_refused():
    with pytest.raises(BadOption, match="bias cannot be decoded: it is best at 0"):
        Decoder("bias", SIX).fit()


def test_probabilities_that_say_nothing_are_refused_for_kappas():
    _, gold = simulated(1000, 23, sharpness=None)
    shares = np.bincount(gold, minlength=6) / len(gold)
    with pytest.raises(BadOption, match="which is no better than chance"):
        Decoder("quadratic_kappa", SIX).fit(np.tile(shares, (1000, 1)), make_label_array(SIX)[gold])


def test_a_kappa_that_is_not_above_zero_on_the_items_is_noted():
    p = np.tile([0.5, 0.2, 0.3], (60, 1))
    gold = ["low", "mid", "high"] * 20
    notes = Decoder("quadratic_kappa", THREE, columns="scale").fit(p, gold).notes_
    assert any("is not above 0 on the items fitted on" in note for note in notes)


def test_gold_of_one_level_is_refused_for_kappas():
    p = [[0.8, 0.1, 0.1]] * 5
    with pytest.raises(BadOption, match="gold has one level only"):
        Decoder("linear_kappa", THREE, columns="scale").fit(p, ["low"] * 5)
    with pytest.raises(BadOption, match="cem_nom cannot be decoded: it is undefined here"):
        Decoder("cem_nom", THREE, columns="scale").fit(p, ["low"] * 5)


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (Decoder(scale=THREE, columns="scale"), "Say what to decode for"),
        (Decoder("mae", cost=COSTS, scale=THREE, columns="scale"), "Say what to decode for"),
        (Decoder(cost=COSTS, scale=THREE, columns="scale"), "matrix must be 3 x 3"),
        (Decoder("mae", THREE, class_weights="heavy", columns="scale"), "'heavy' are no weights"),
        (
            Decoder("mae", THREE, class_weights=[1, 2], columns="scale"),
            r"\[1, 2\] are no weights for low < mid",
        ),
        (Decoder("mae", THREE, class_weights=[1, 0, 2], columns="scale"), "are no weights"),
        (Decoder("mae", THREE, class_weights=["a", 0, 2], columns="scale"), "are no weights"),
        (
            Decoder("mae", THREE, class_weights={"low": 1, "mid": 2}, columns="scale"),
            "no class weight for 'high'",
        ),
        (
            Decoder(
                "mae",
                THREE,
                class_weights={"low": 1, "mid": 2, "high": 1, "top": 1},
                columns="scale",
            ),
            "class weight for 'top', which is not on low < mid < high",
        ),
    ],
)
def test_bad_options_are_refused(decoder, message):
    with pytest.raises(BadOption, match=message):
        decoder.fit([[0.2, 0.5, 0.3]], ["mid"])


def test_gold_is_asked_for_where_it_decides():
    with pytest.raises(BadOption, match="cem_ord is learned from probabilities and gold labels"):
        Decoder("cem_ord", THREE, columns="scale").fit([[0.2, 0.5, 0.3]])
    with pytest.raises(BadOption, match="one over the shares of gold: pass gold"):
        Decoder("mae", THREE, class_weights="balanced", columns="scale").fit()
    with pytest.raises(UnknownMetric, match="There is no metric 'quadratic_kapa'"):
        Decoder("quadratic_kapa", THREE, columns="scale").fit()


def test_bad_items_are_refused():
    row = [[0.2, 0.5, 0.3]]
    with pytest.raises(UnequalLengths, match="2 gold labels and 1 rows of probabilities"):
        Decoder("mae", THREE, columns="scale").fit(row, ["low", "mid"])
    with pytest.raises(MissingLabels, match=r"1 of 2 gold labels are missing \(row 2\)"):
        Decoder("mae", THREE, columns="scale").fit(row * 2, ["low", None])
    with pytest.raises(NoItems, match="no items to learn decoding from"):
        Decoder("mae", THREE, columns="scale").fit(np.empty((0, 3)), [])
    with pytest.raises(NotFitted, match="call fit first"):
        Decoder("mae", THREE, columns="scale").predict(row)


def test_a_refused_fit_leaves_no_half_fitted_decoder():
    decoder = Decoder("quadratic_kappa", THREE, columns="scale")
    with pytest.raises(BadOption, match="no better than chance"):
        decoder.fit([[0.5, 0.25, 0.25]] * 4, ["low", "low", "mid", "high"])
    with pytest.raises(NotFitted, match="call fit first"):
        decoder.predict([[0.5, 0.25, 0.25]])


# --- as scikit-learn asks ------------------------------------------------------------------------


def test_a_decoder_is_cloned_by_its_parameters():
    from sklearn.base import clone

    decoder = Decoder("quadratic_kappa", SIX, class_weights=[1, 2, 3, 4, 5, 6])
    copy = clone(decoder)
    assert copy.get_params() == decoder.get_params()
    assert copy.set_params(metric="mae").metric == "mae"
    assert not hasattr(copy, "gain_")


def test_a_decoder_ends_a_pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    p, gold = simulated(300, 24)
    labels = make_label_array(SIX)[gold]
    line = make_pipeline(FunctionTransformer(np.exp), Decoder("cem_ord", SIX))
    line.fit(np.log(p), labels)
    assert (line.predict(np.log(p)) == Decoder("cem_ord", SIX).fit(p, labels).predict(p)).all()


def test_a_fitted_decoder_survives_a_pickle():
    p, gold = simulated(300, 25)
    decoder = Decoder("quadratic_kappa", SIX).fit(p, make_label_array(SIX)[gold])
    assert (pickle.loads(pickle.dumps(decoder)).predict(p) == decoder.predict(p)).all()  # noqa: S301 - our own


def test_dinkelbach_stops_at_the_ratio_of_its_own_answers():
    p, gold = simulated(2000, 26)
    shares = np.bincount(gold, minlength=6) / 2000
    found = minimise_cost_ratio(p, SIX.gaps**2, shares)
    worth = p @ found.gain
    assert worth.max(axis=1).mean() == pytest.approx(0.0, abs=1e-9)  # F(λ) = 0


def test_on_true_posteriors_no_other_decoder_does_better_on_a_metric():
    p, gold = simulated(8000, 27)
    fresh, truth = simulated(30_000, 28)
    names = ["quadratic_kappa", "mae", "cem_ord", "accuracy", "macro_mae", "f1_macro"]
    tables = {
        name: table(
            SIX,
            truth,
            Decoder(name, SIX).fit(p, make_label_array(SIX)[gold]).predict_positions(fresh),
        )
        for name in names
    }
    for name in names:
        merits = {
            other: float(find_metric(name).merit(find_metric(name)(tables[other])))
            for other in names
        }
        assert merits[name] >= max(merits.values()) - 0.002, name


def test_a_search_is_not_held_up_by_a_level_that_gold_lacks():
    p, gold = simulated(3000, 29, np.array([0.1, 0.5, 0.38, 0.02]))
    gold = np.minimum(gold, 2)
    scale, metric = Scale.of("1..4"), find_metric("min_sensitivity")
    decoder = Decoder(metric, scale).fit(p, gold + 1)
    argmax, decoded = (
        float(metric(table(scale, gold, answered)))
        for answered in (p.argmax(axis=1), decoder.predict_positions(p))
    )
    assert decoded > argmax + 0.05


# --- columns without names -----------------------------------------------------------------------


def test_columns_that_scikit_learn_would_sort_otherwise_are_refused():
    rows = [[0.2, 0.3, 0.5]]
    for probabilities in (rows, np.array(rows)):
        with pytest.raises(BadProbabilities, match=r"columns=model.classes_, or columns=\"scale\""):
            Decoder("mae", THREE).fit().predict(probabilities)


def test_a_level_without_a_column_is_warned_of():
    decoder = Decoder("mae", THREE, columns=["mid", "low"]).fit()
    with pytest.warns(UserWarning, match="No column is named like high") as told:
        assert decoder.predict([[0.3, 0.7]]).tolist() == ["low"]
    assert told[0].filename == __file__


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("scale", "columns"),
    [
        ("low,mid,high", ["low", "mid", "high"]),
        ("low,mid,high", ["high", "low", "mid"]),
        ("A1,A2,B1", None),
        ("8..10", None),
    ],
)
def test_named_or_sorted_columns_are_not_doubted(scale, columns):
    assert len(Decoder("mae", scale, columns=columns).fit().predict([[0.2, 0.3, 0.5]])) == 1


def test_names_of_columns_may_be_told_once_only():
    decoder = Decoder("mae", THREE, columns=iter(["high", "low", "mid"]))
    decoder.fit([[0.1, 0.8, 0.1]], ["low"])
    assert decoder.predict([[0.1, 0.8, 0.1]]).tolist() == ["low"]
