"""The same evaluation and comparison over every engine."""

import numpy as np
import pandas as pd
import pytest

import ordinate
from ordinate.errors import (
    BadInput,
    BadOption,
    BadScale,
    BadWeights,
    MissingLabels,
    NoItems,
    OffScale,
)
from ordinate.summaries import ConfusionMatrix


def make_rows(levels: int, n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(levels)
    gold = rng.integers(levels, size=n)
    near, far = (np.clip(gold + rng.integers(-1, 2, n), 0, levels - 1) for _ in range(2))
    return pd.DataFrame(
        {
            "level": gold.astype(str),
            "guess": near.astype(str),
            "rival": far.astype(str),
            "language": rng.choice(["de", "en", "it"], n),
            "writer": rng.integers(20, size=n),
            "weight": rng.integers(0, 5, n) / 2.0,
        }
    )


COLUMNS = {"weights": "weight", "by": "language", "groups": "writer"}


@pytest.mark.parametrize("levels", [2, 50])
def test_every_engine_counts_the_same(engine, levels):
    rows = make_rows(levels)
    scale = f"0..{levels - 1}"
    found = ordinate.evaluate(
        engine.make(rows),
        gold="level",
        predicted="guess",
        scale=scale,
        interval=None,
        metrics=["accuracy"],
        **COLUMNS,
    )
    counted = ConfusionMatrix.of(rows["level"], rows["guess"], scale, rows["weight"])
    assert (found.confusion_matrix.items == counted.items).all()
    assert (found.confusion_matrix.weights == counted.weights).all()  # halves are exact
    assert (found.confusion_matrix.squares == counted.squares).all()
    assert (found.origin.gold, found.origin.predicted) == ("level", "guess")
    assert set(found.by) == {"de", "en", "it"}
    for language, part in rows.groupby("language"):
        own = ConfusionMatrix.of(part["level"], part["guess"], scale, part["weight"])
        assert (found.by[language].confusion_matrix.items == own.items).all()


def test_every_engine_has_the_same_clusters(engine):
    rows = make_rows(5)
    told = {"gold": "level", "predicted": "guess", "scale": "0..4", "groups": "writer"}
    found, usual = (ordinate.evaluate(x, **told) for x in (engine.make(rows), rows))
    assert found.groups == usual.groups == 20
    for name, score in usual.metrics.items():
        other = found.metrics[name]
        for part in ("value", "low", "high"):
            ours, theirs = getattr(score.estimate, part), getattr(other.estimate, part)
            assert ours == pytest.approx(theirs, rel=1e-12, nan_ok=True)


def test_every_engine_averages_over_cases(engine):
    rows = make_rows(5)
    told = {"gold": "level", "predicted": "guess", "scale": "0..4", "average_over": "language"}
    found, usual = (ordinate.evaluate(x, **told) for x in (engine.make(rows), rows))
    ours, theirs = (x.case_averages.metrics["cem_ord"] for x in (found, usual))
    assert sorted(ours.values) == pytest.approx(sorted(theirs.values), rel=1e-12)


@pytest.mark.parametrize("levels", [2, 50])
def test_every_engine_compares_the_same(engine, levels):
    rows = make_rows(levels).sort_values("writer")
    rows["guess"] = rows["guess"].replace("1", "one")
    rows.loc[[3, 7], "rival"] = None
    options = {"label_map": {"one": "1"}, "missing": "drop", "metrics": ["accuracy"]}
    options |= {"scale": f"0..{levels - 1}", "resamples": 100}
    columns = {"weights": "weight", "groups": "writer"}
    systems = ["guess", "rival"]
    found = ordinate.compare(engine.make(rows), systems, gold="level", **columns, **options)
    columns = {argument: rows[name] for argument, name in columns.items()}
    usual = ordinate.compare(rows["level"], {x: rows[x] for x in systems}, **columns, **options)
    for name in ("rows", "items", "weights", "squares", "groups"):
        assert getattr(found.panel, name).tolist() == getattr(usual.panel, name).tolist()
    assert found.panel.dropped == usual.panel.dropped > 0
    ours, theirs = (x.leaderboards["accuracy"].pairs[0].difference for x in (found, usual))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


@pytest.mark.parametrize("empty", [None, ""])
def test_missing_labels_are_treated_as_asked(engine, empty):
    rows = make_rows(3)
    rows.loc[[3, 7], "guess"] = empty
    rows.loc[5, "level"] = empty
    table = engine.make(rows)
    told = {"gold": "level", "predicted": "guess", "scale": "0..2", "interval": None}
    with pytest.raises(MissingLabels, match="1 of 400 gold labels are missing"):
        ordinate.evaluate(table, **told)
    found = ordinate.evaluate(engine.make(rows), missing="drop", **told)
    assert (found.confusion_matrix.n, found.confusion_matrix.dropped) == (397, 3)


def test_missing_labels_of_a_lazy_table_have_no_places(engine):
    rows = make_rows(3)
    rows.loc[10:36, "guess"] = None
    told = {"gold": "level", "predicted": "guess", "scale": "0..2", "interval": None}
    places = r"\. Leave" if engine.lazy else r" \(.*11, .*…\)\. Leave"
    with pytest.raises(MissingLabels, match=f"27 of 400 predictions are missing{places}"):
        ordinate.evaluate(engine.make(rows), **told)


def test_columns_of_any_name_are_read(engine):
    rows = make_rows(3)
    names = {"level": "my.level", "guess": "a `guess`", "language": 'the "language".x'}
    told = {"gold": names["level"], "predicted": names["guess"], "by": names["language"]}
    found = ordinate.evaluate(
        engine.make(rows.rename(columns=names)), scale="0..2", interval=None, **told
    )
    counted = ConfusionMatrix.of(rows["level"], rows["guess"], "0..2")
    assert (found.confusion_matrix.items == counted.items).all()
    assert set(found.by) == {"de", "en", "it"}


def test_gold_without_labels_is_refused(engine):
    rows = make_rows(3).assign(level=None)
    told = {"gold": "level", "predicted": "guess", "scale": "0..2"}
    with pytest.raises(MissingLabels, match=r"gold labels are missing"):
        ordinate.evaluate(engine.make(rows), **told)
    with pytest.raises(NoItems, match="all 400 have a missing label"):
        ordinate.evaluate(engine.make(rows), missing="drop", **told)


def test_labels_are_renamed_first(engine):
    rows = make_rows(3)
    rows["guess"] = rows["guess"].replace("1", "one")
    told = {"gold": "level", "predicted": "guess", "scale": "0..2", "interval": None}
    found = ordinate.evaluate(engine.make(rows), label_map={"one": "1"}, **told)
    usual = ordinate.evaluate(make_rows(3), **told)
    assert (found.confusion_matrix.items == usual.confusion_matrix.items).all()
    with pytest.raises(OffScale, match=r"'one'.*column 'guess'|'one'.*of predicted"):
        ordinate.evaluate(engine.make(rows), **told)


def test_numbers_are_labels_too(engine):
    rows = make_rows(5)
    usual = ordinate.evaluate(rows, gold="level", predicted="guess", scale="0..4", interval=None)
    numbers = rows.astype({"level": "int64", "guess": "float64"})
    found = ordinate.evaluate(
        engine.make(numbers), gold="level", predicted="guess", scale="0..4", interval=None
    )
    assert (found.confusion_matrix.items == usual.confusion_matrix.items).all()


def test_ordered_columns_carry_their_scale(engine):
    rows = make_rows(3)
    names = dict(zip("012", ("low", "mid", "high"), strict=True))
    order = pd.CategoricalDtype(list(names.values()), ordered=True)
    ordered = rows.assign(**{x: rows[x].map(names).astype(order) for x in ("level", "guess")})
    told = {"gold": "level", "predicted": "guess", "interval": None}
    if not engine.ordered:  # its columns declare no order
        with pytest.raises(BadScale, match="scale="):
            ordinate.evaluate(engine.make(ordered), **told)
        return
    found = ordinate.evaluate(engine.make(ordered), **told)
    usual = ordinate.evaluate(rows, gold="level", predicted="guess", scale="0..2", interval=None)
    assert found.confusion_matrix.scale.labels == ("low", "mid", "high")
    assert (found.confusion_matrix.items == usual.confusion_matrix.items).all()
    assert "order that the column declares" in " ".join(found.origin.notes)


def test_ordered_columns_of_systems_carry_their_scale(engine):
    rows = make_rows(3)
    order = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    names, columns = dict(zip("012", order.categories, strict=True)), ["level", "guess", "rival"]
    ordered = rows.assign(**{x: rows[x].map(names).astype(order) for x in columns})
    told = {"gold": "level", "metrics": ["mae"], "resamples": 100}
    if not engine.ordered:
        with pytest.raises(BadScale, match="scale="):
            ordinate.compare(engine.make(ordered), ["guess", "rival"], **told)
        return
    found = ordinate.compare(engine.make(ordered), ["guess", "rival"], **told)
    usual = ordinate.compare(rows, ["guess", "rival"], scale="0..2", **told)
    assert found.panel.scale.labels == ("low", "mid", "high")
    for name in ("rows", "items"):
        assert getattr(found.panel, name).tolist() == getattr(usual.panel, name).tolist()


def test_a_column_that_is_not_there_is_suggested(engine):
    with pytest.raises(BadInput, match=r"has no column 'gues'\. Did you mean 'guess'"):
        ordinate.evaluate(engine.make(make_rows(3)), gold="level", predicted="gues", scale="0..2")


def test_wrong_weights_are_refused(engine):
    rows = make_rows(3)
    rows.loc[4, "weight"] = -1.0
    with pytest.raises(BadWeights, match="-1"):
        ordinate.evaluate(
            engine.make(rows), gold="level", predicted="guess", scale="0..2", weights="weight"
        )


def test_a_confusion_matrix_is_evaluated_as_it_is():
    matrix = ConfusionMatrix.from_counts([[3, 1], [0, 2]], "low,high")
    assert ordinate.evaluate(matrix, interval=None).metrics["accuracy"].value == pytest.approx(
        5 / 6
    )
    with pytest.raises(BadOption, match="counted already"):
        ordinate.evaluate(matrix, scale="1..2")
    with pytest.raises(BadOption, match="counted already"):
        ordinate.evaluate(matrix, by=["a", "b"])
