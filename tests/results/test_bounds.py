"""Work and values beyond all bounds: refused in one line before anything starts."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import run

import ordinate
from ordinate import ConfidenceIntervals, ConfusionMatrix
from ordinate.errors import BadInput, BadOption, OrdinateError

GOLD, PREDICTED = [1, 2, 3] * 20, [1, 2, 2] * 20
HUGE = 10**5000  # which Python does not write as text
MANY = 10**12


@pytest.mark.parametrize("resamples", [MANY, HUGE, 1_000_001], ids=["many", "huge", "one more"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda n: ConfidenceIntervals(resamples=n),
        lambda n: ordinate.compare(GOLD, {"a": PREDICTED, "b": GOLD}, "1..3", resamples=n),
        lambda n: ordinate.power(GOLD, {"a": PREDICTED, "b": GOLD}, scale="1..3", resamples=n),
    ],
)
def test_a_trillion_resamples_are_refused(ask, resamples):
    with pytest.raises(BadOption, match="At most 1,000,000 resamples"):
        ask(resamples)


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_trillion_resamples_are_refused_on_the_command_line(command, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("gold,predicted,other\n1,1,2\n2,2,2\n3,3,1\n", encoding="utf-8")
    systems = ("--systems", "predicted,other") if command == "compare" else ()
    ran = run(command, path, "--scale", "1..3", *systems, "--resamples", MANY)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "At most 1,000,000 resamples" in ran.err


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ordinate.evaluate([1, HUGE], [1, 2], "1..3"),
        lambda: ordinate.evaluate([1, HUGE], [1, 2]),
        lambda: ordinate.evaluate(["1", "7" * 5000], ["1", "2"], "1..3"),
        lambda: ordinate.evaluate(["1", "7" * 5000], ["1", "2"]),
        lambda: ordinate.evaluate([1, 2], [1, 2], "1..3", weights=[HUGE, 1]),
        lambda: ordinate.evaluate([1, 2], [1, 2], "1..3", by=[HUGE, 1]),
        lambda: ordinate.evaluate([1, 2], [1, 2], "1..3", groups=[HUGE, 1]),
        lambda: ordinate.evaluate([1, 2], [1, 2], "1..3", interval=HUGE),
        lambda: ordinate.evaluate([1, 2], [1, 2], "1..3", edges=[1, HUGE]),
        lambda: ordinate.evaluate_regression([1, HUGE], [1, 2]),
        lambda: ordinate.Scale([1, 2], positions=[0, HUGE]),
        lambda: ConfusionMatrix.from_counts([[HUGE, 1], [1, 1]], "1..2"),
        lambda: ordinate.classification_report(GOLD, GOLD, "1..3", digits=MANY),
    ],
)
def test_numbers_of_5000_digits_have_errors_of_one_line(ask):
    with pytest.raises(OrdinateError, match=r"\S") as caught:
        ask()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("power", [1e5, 1e308])
@pytest.mark.parametrize("positions", [None, [-1e75, 0, 1e75], [0, 1e-75, 1]])
def test_a_weighted_kappa_of_any_power_is_a_number(power, positions):
    """It was nan, with a RuntimeWarning."""
    scale = ordinate.Scale([1, 2, 3], positions=positions)
    found = ordinate.evaluate([1, 3, 1, 2], [1, 3, 3, 2], scale, f"weighted_kappa(power={power})")
    assert 0 <= found.metrics[f"weighted_kappa(power={power})"].value < 1


def test_more_memory_than_any_machine_has_is_one_line(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("gold,predicted\n1,1\n2,2\n", encoding="utf-8")
    ran = run("evaluate", path, "--scale", "1..2", "--memory", "99999999TB")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_columns_with_several_levels_of_names_have_an_error_that_flattens_them():
    frame = pd.DataFrame({("a", "gold"): GOLD, ("a", "predicted"): PREDICTED})
    with pytest.raises(BadInput, match=r"'_'\.join"):
        ordinate.evaluate(frame, gold="gold", predicted="predicted", scale="1..3")
    frame.columns = ["_".join(map(str, names)) for names in frame.columns]
    found = ordinate.evaluate(
        frame, gold="a_gold", predicted="a_predicted", scale="1..3", interval=None
    )
    assert found.confusion_matrix.n == 60


def test_a_column_is_missing_among_names_that_are_numbers():
    with pytest.raises(OrdinateError, match="has no column 'gold'"):
        ordinate.evaluate(pd.DataFrame({0: GOLD, 1: GOLD}), gold="gold", predicted="1")


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits_are_labels_weights_and_numbers(kind):
    gold, predicted = (pl.Series(x, dtype=kind) for x in (GOLD, PREDICTED))
    frame = pl.DataFrame({"gold": gold, "predicted": predicted})
    columns = {"gold": "gold", "predicted": "predicted"}
    plain = ordinate.evaluate(GOLD, PREDICTED, "1..3", weights=GOLD, interval=None)
    for found in (
        ordinate.evaluate(gold, predicted, "1..3", weights=gold, interval=None),
        ordinate.evaluate(frame, **columns, weights="gold", scale="1..3", interval=None),
    ):
        assert np.array_equal(found.confusion_matrix.counts, plain.confusion_matrix.counts)
    holes = pl.Series([1, None, 3], dtype=kind)
    assert ordinate.evaluate(holes, holes, "1..3", missing="drop").confusion_matrix.n == 2
    assert ordinate.evaluate_regression(gold, predicted, "mae").metrics


def test_the_columns_of_a_wide_table_are_looked_at_once_each():
    looked_at = 0

    class Names(list):
        def __contains__(self, name):
            nonlocal looked_at
            looked_at += 1
            return super().__contains__(name)

    from ordinate.readers.tables import ColumnTable

    names = Names(f"c{k}" for k in range(50))
    table = ColumnTable({name: [1.0] for name in names}, names, "the table")
    assert table.take_matrix(names).shape == (1, 50)
    assert looked_at == 0  # a list is searched from its beginning
