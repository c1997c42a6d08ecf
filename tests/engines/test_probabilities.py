"""The same calibration over every engine."""

import numpy as np
import pandas as pd
import pytest

import ordinate
from ordinate.errors import BadInput, BadProbabilities, BadWeights, MissingLabels, NoItems, OffScale


def make_rows(levels, n=300):
    """Items whose probabilities are at edges of bins, equal to each other, or 0, now and then."""
    rng = np.random.default_rng(levels)
    rows = rng.dirichlet(np.ones(levels), n)
    rows[::3] = rng.multinomial(20, np.ones(levels) / levels, len(rows[::3])) / 20
    gold = (rows.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, levels - 1)
    gold[::20] = rng.integers(levels, size=len(gold[::20]))
    rows[5], gold[5] = np.eye(levels)[0], levels - 1  # impossible
    rows[7, :2], rows[7, 2:], gold[7] = (1e-20, 1.0), 0.0, 0  # next to impossible
    return pd.DataFrame(
        {
            "level": gold.astype(str),
            "guess": np.clip(gold + rng.integers(-1, 2, n), 0, levels - 1).astype(str),
            "language": rng.choice(["de", "en", "it"], n),
            "weight": rng.integers(0, 5, n) / 2.0,
            **{f"p_{k}": rows[:, k] for k in rng.permutation(levels)},
        }
    )


TOLD = {"gold": "level", "probabilities": "p_"}


def evaluate(table, levels, **options):
    return ordinate.evaluate(table, scale=f"0..{levels - 1}", **{**TOLD, **options})


def list_sums(summary):
    """Return all sums of a summary, by name."""
    found = {name: getattr(summary, name) for name in ("items", "weight", "squares", "confidence")}
    found |= {name: getattr(summary, name) for name in ("confusion_matrix", "ranking")}
    argmax = summary.argmax
    found |= {"matrix": argmax.items, "weights": argmax.weights, "squares of cells": argmax.squares}
    found |= {f"scores.{k}": part for k, part in enumerate(summary.scores)}
    found |= {f"curves.{k}": part for k, part in enumerate(summary.curves)}
    for key, bins in summary.bins.items():
        found |= {f"{key}.{k}": part for k, part in enumerate(bins)}
    return found


def check_same(found, wanted):
    assert found.dropped == wanted.dropped
    assert found.argmax.counted == wanted.argmax.counted
    theirs = list_sums(wanted)
    for name, sums in list_sums(found).items():
        if sums is None:
            assert theirs[name] is None
            continue
        close = 0.0 if name in {"items", "matrix"} or name.endswith(".0") else 1e-12
        close = 1e-12 if name == "scores.0" else close
        np.testing.assert_allclose(sums, theirs[name], close, 1e-13, err_msg=name)


@pytest.mark.parametrize(
    ("levels", "weights"),
    [(2, None), (5, "weight"), pytest.param(50, "weight", marks=pytest.mark.slow)],
)
def test_every_engine_sums_up_the_same(engine, levels, weights):
    rows = make_rows(levels)
    told = {"weights": weights, "interval": None, "metrics": "all"}
    found, usual = (evaluate(x, levels, **told) for x in (engine.make(rows), rows))
    check_same(found.probabilities.summary, usual.probabilities.summary)
    assert (found.confusion_matrix.items == usual.confusion_matrix.items).all()
    if engine.lazy:
        names = ", ".join(f"p_{k}" for k in range(levels))
        assert found.origin.predicted == f"the most probable of {names}"
    for name, score in usual.probabilities.metrics.items():
        assert found.probabilities.metrics[name].value == pytest.approx(score.value, rel=1e-12)


def test_subgroups_are_those_of_their_items_alone(engine):
    rows = make_rows(5)
    rows.loc[3, "language"] = None
    told = {"by": "language", "interval": None, "weights": "weight"}
    found, usual = (evaluate(x, 5, **told) for x in (engine.make(rows), rows))
    assert set(found.by) == set(usual.by) == {"de", "en", "it", None}
    for name, part in usual.by.items():
        check_same_report(found.by[name], part)


def test_clusters_beside_probabilities_are_the_same(engine):
    rows = make_rows(5).assign(writer=np.arange(300) % 20)
    found, usual = (evaluate(x, 5, groups="writer") for x in (engine.make(rows), rows))
    assert found.groups == usual.groups == 20
    check_same(found.probabilities.summary, usual.probabilities.summary)
    for name, score in usual.metrics.items():
        ours, theirs = found.metrics[name].estimate, score.estimate
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), nan_ok=True)


def check_same_report(found, usual):
    assert (found.confusion_matrix.items == usual.confusion_matrix.items).all()
    ours, theirs = (x.probabilities.summary for x in (found, usual))
    np.testing.assert_allclose(ours.scores.weighted, theirs.scores.weighted, 1e-12)
    np.testing.assert_allclose(ours.curves.f, theirs.curves.f, 1e-12, 1e-13)


def test_predictions_may_stand_beside_probabilities(engine):
    rows = make_rows(5)
    found, usual = (
        evaluate(x, 5, predicted="guess", interval=None) for x in (engine.make(rows), rows)
    )
    assert (found.confusion_matrix.items == usual.confusion_matrix.items).all()
    assert found.origin.predicted == "guess"
    check_same_report(found, usual)


def test_labels_are_renamed_and_the_most_probable_levels_are_not(engine):
    rows = make_rows(3)
    renamed = rows.assign(level=rows["level"].map({"0": "1", "1": "0", "2": "two"}))
    swap = {"0": "1", "1": "0", "two": "2"}
    found = evaluate(engine.make(renamed), 3, label_map=swap, interval=None)
    check_same_report(found, evaluate(rows, 3, interval=None))


def test_intervals_are_the_same_where_rows_need_no_numbers(engine):
    rows = make_rows(5)
    found, usual = (
        evaluate(x, 5, weights="weight").probabilities for x in (engine.make(rows), rows)
    )
    for name, score in usual.metrics.items():
        ours = found.metrics[name].estimate
        assert ours.value == pytest.approx(score.value, rel=1e-12)
        if engine.lazy and name == "c_index":
            assert "rows of a lazy table have no numbers" in ours.note
            assert np.isnan(ours.low)
            assert any("c_index has no interval" in note for note in found.notes)
        else:
            assert (ours.low, ours.high) == pytest.approx(
                (score.estimate.low, score.estimate.high), rel=1e-9, nan_ok=True
            )


def test_missing_gold_and_empty_rows_are_refused_or_dropped(engine):
    rows = make_rows(3)
    rows.loc[[4, 9], "level"] = None
    with pytest.raises(MissingLabels, match="old labels are missing"):
        evaluate(engine.make(rows), 3)
    cells = [name for name in rows if name.startswith("p_")]
    rows.loc[[9, 11], cells] = np.nan
    found = evaluate(engine.make(rows), 3, missing="drop", interval=None)
    check_same(
        found.probabilities.summary,
        evaluate(rows, 3, missing="drop", interval=None).probabilities.summary,
    )
    assert found.probabilities.summary.dropped == found.confusion_matrix.dropped == 3
    rows.loc[20, cells[0]] = np.nan
    with pytest.raises(BadProbabilities, match="are not all finite numbers"):
        evaluate(engine.make(rows), 3, missing="drop")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([0.5, 0.6, 0.0], r"\[0.5, 0.6, 0\]., sum to 1.1, not to 1. Is there a column"),
        ([1.1, -0.1, 0.0], "are not all at least 0"),
    ],
)
def test_rows_that_are_no_distribution_are_refused(engine, row, told):
    rows = make_rows(3)
    rows.loc[20, ["p_0", "p_1", "p_2"]] = row
    with pytest.raises(BadProbabilities, match=told):
        evaluate(engine.make(rows), 3)
    weighted = rows.assign(weight=1.0)
    weighted.loc[20, "weight"] = 0.0  # it does not exist
    assert evaluate(engine.make(weighted), 3, weights="weight", interval=None)


def test_sums_near_1_are_renormalized_where_asked(engine):
    rows = make_rows(3)
    rows[["p_0", "p_1", "p_2"]] *= 1.005
    with pytest.raises(BadProbabilities, match="renormalize"):
        evaluate(engine.make(rows), 3)
    told = {"renormalize": True, "interval": None, "metrics": "all"}
    found, usual = (evaluate(x, 3, **told) for x in (engine.make(rows), rows))
    check_same(found.probabilities.summary, usual.probabilities.summary)


def test_what_cannot_be_evaluated_is_refused(engine):
    rows = make_rows(3)
    with pytest.raises(BadInput, match="no columns of probabilities that start with 'q_'"):
        evaluate(engine.make(rows), 3, probabilities="q_")
    with pytest.raises(BadInput, match="has no column 'p_3'"):
        evaluate(engine.make(rows), 3, probabilities=["p_0", "p_1", "p_3"])
    with pytest.raises(BadWeights, match="-1"):
        evaluate(engine.make(rows.assign(weight=-1.0)), 3, weights="weight")
    with pytest.raises(OffScale, match="'9'"):
        evaluate(engine.make(rows.replace({"level": {"1": "9"}})), 3)
    with pytest.raises(NoItems, match="There are no items to evaluate"):
        evaluate(engine.make(rows.assign(weight=0.0)), 3, weights="weight")


def test_a_preset_is_found_by_the_gold_labels(engine):
    names = dict(zip("01234", ("A1", "A2", "B1", "B2", "C1"), strict=True))
    rows = make_rows(5).replace({"level": names})
    rows = rows.rename(columns={f"p_{k}": f"p_{name}" for k, name in names.items()})
    rows["p_C2"] = 0.0
    found = ordinate.evaluate(engine.make(rows), interval=None, **TOLD)
    check_same_report(found, ordinate.evaluate(rows, interval=None, **TOLD))
    assert "preset 'cefr'" in " ".join(found.origin.notes)
