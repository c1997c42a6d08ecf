"""Files of quantities: what the engine sums up is what long doubles sum up item by item."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from regression_files import (
    FORMS,
    METRICS,
    close,
    column,
    items,
    moments,
    name_columns,
    oracle,
    read_back,
    same,
    value,
    write,
)
from row_files import to_csv, to_jsonl, to_parquet

from ordinate.errors import BadInput, BadOption, BadValues, MissingLabels
from ordinate.readers import batches, duckdb_connection
from ordinate.readers.regression import RegressionData, sum_files
from ordinate.scale.encoding import factorize_column
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import Moments, bin_error_sizes

# --- whatever the file ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_what_long_doubles_give(form):
    rows = items()
    found = sum_files([write(form, FORMS[form](rows))], name_columns("y", "pred"))
    close(found.moments, oracle(rows))
    same(found.moments, moments(rows, constants=found.moments.constants))
    assert (found.target, found.predicted, found.files) == ("y", "pred", (form,))
    assert (found.match_counts, found.by, found.groups, found.previous) == (None, [], None, None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (1e9, 1), (-1e9, 1), (0, 1e-9), (1e9, 1e3)])
def test_far_from_zero_and_near_it_the_errors_are_those_of_long_doubles(weighted, shift, scale):
    path = write("far.csv", to_csv(items(shift=shift, scale=scale)))
    rows = read_back(path)
    columns = name_columns("y", "pred", weights="weight" if weighted else None)
    found = sum_files([path], columns).moments
    expected = oracle(rows, weighted=weighted)
    close(found, {name: expected[name] for name in ("rmse", "mae", "r2")}, 1e-10)
    close(found, {name: expected[name] for name in ("baseline_rmse", "baseline_mae")}, 1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_far_from_each_other_keep_their_own_digits(weighted):
    far = {"s0": (1e9, 1.0), "s1": (0.0, 1e-9), "s2": (-1e6, 1e3)}
    rows = []
    for site, (shift, scale) in far.items():
        rows += [row | {"site": site} for row in items(50, shift=shift, scale=scale)]
    path = write("far.csv", to_csv(rows))
    columns = name_columns("y", "pred", groups="site", weights="weight" if weighted else None)
    found = sum_files([path], columns).groups
    for k, site in enumerate(far):
        expected = oracle([x for x in read_back(path) if x["site"] == site], weighted=weighted)
        close(found[k], {name: expected[name] for name in METRICS})


def test_weights_count_and_weight_zero_is_no_item():
    rows = items()
    rows.append(rows[0] | {"y": math.nan, "pred": None, "weight": 0.0, "hour": -1})
    path = write("weights.csv", to_csv(rows))
    found = sum_files([path], name_columns("y", "pred", weights="weight")).moments
    alive = [row for row in rows if row["weight"] > 0]
    close(found, oracle(alive, weighted=True))
    same(found, moments(alive, weighted=True, constants=found.constants))
    assert (found.n, found.counted, found.dropped) == (len(alive), False, 0)


def test_whole_weights_are_counts():
    rows = [row | {"weight": float(k % 3)} for k, row in enumerate(items())]
    path = write("weights.csv", to_csv(rows))
    assert sum_files([path], name_columns("y", "pred", weights="weight")).moments.counted


def test_several_files_are_one_table(whole):
    rows = items()
    paths = [
        write("a.csv", to_csv(rows[:150])),
        write("b.parquet", to_parquet(rows[150:151])),
        write("c.jsonl", to_jsonl(rows[151:])),
    ]
    columns = name_columns("y", "pred", weights="weight", by="season", groups="site", order="hour")
    found = sum_files(paths, columns)
    same(found.moments, whole.moments)
    same(found.groups, whole.groups)
    same(found.previous, whole.previous)
    for (name, ones), (other, twos) in zip(found.by, whole.by, strict=True):
        assert name == other
        for one, two in zip(ones, twos, strict=True):
            same(one, two)
    assert found.files == ("a.csv", "b.parquet", "c.jsonl")


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.string()])
def test_parquet_numbers_of_any_kind_are_numbers(kind):
    y, p = [1, 5, 2, 7], [2.5, 4.0, 2.0, 9.0]
    wide = [str(x) for x in y] if kind == pa.string() else y
    pq.write_table(pa.table({"y": pa.array(wide, kind), "pred": p}), "kinds.parquet")
    same(
        sum_files(["kinds.parquet"], name_columns("y", "pred")).moments,
        Moments.of(y, p, constants={"mean": 3.75}, histogram=True),
    )


def test_columns_may_be_found_by_usual_names():
    path = write("usual.csv", "Actual,yhat\n1,2\n3,3\n")
    found = sum_files([path], name_columns())
    assert (found.target, found.predicted) == ("Actual", "yhat")
    assert found.notes == (
        "The target column was not named; 'Actual' was taken.",
        "The predicted column was not named; 'yhat' was taken.",
    )
    with pytest.raises(BadInput, match=r"holds the targets\? Name it with target=…. Its columns"):
        sum_files([write("two.csv", "y,actual,pred\n1,1,2\n")], name_columns())
    with pytest.raises(BadInput, match=r"no column 'prod'\. Did you mean 'pred'"):
        sum_files(["two.csv"], name_columns("y", "prod"))


# --- subgroups and groups ------------------------------------------------------------------------


def of_clusters(rows, **settings) -> Moments:
    """Return summaries of clusters, which need no histogram of their own."""
    return replace(moments(rows, **settings), histogram=None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1 << 18, 64, 3])
def test_subgroups_and_groups_are_those_of_numpy(monkeypatch, weighted, size):
    monkeypatch.setattr(batches, "ROWS_PER_BATCH", size)
    rows = items()
    path = write("groups.csv", to_csv(rows))
    columns = name_columns(
        "y", "pred", by="season", groups="site", weights="weight" if weighted else None
    )
    found = sum_files([path], columns, constants={"train_mean": 2.5})
    settings = {"weighted": weighted, "constants": {"train_mean": 2.5}}
    alive = [row for row in rows if row["weight"] > 0 or not weighted]
    sites = factorize_column([row["site"] for row in alive])
    same(found.moments, moments(rows, **settings))
    same(found.groups, of_clusters(alive, groups=sites, **settings))
    assert [name for name, _ in found.by] == ["dry", "wet", None]
    for name, (part, batch) in found.by:
        here = [row for row in alive if row["season"] == name]
        codes = np.array([sites.codes[alive.index(row)] for row in here])
        same(batch, of_clusters(here, groups=sites._replace(codes=codes), **settings))
        same(part, moments(here, **settings))
    alone = sum_files([path], name_columns("y", "pred", by="season", weights=columns.weights))
    for name, (part, clusters) in alone.by:
        assert clusters is None
        here = [row for row in alive if row["season"] == name]
        same(part, moments(here, weighted=weighted, constants=alone.moments.constants))


def test_the_summaries_of_subgroups_add_up_to_the_whole():
    path = write("groups.csv", to_csv(items()))
    found = sum_files([path], name_columns("y", "pred", by="season"))
    first, second, third = (part for _, (part, _) in found.by)
    same(first + second + third, found.moments)


# --- histograms, constants -----------------------------------------------------------------------


def test_the_histogram_has_the_bins_of_the_summary():
    rows = [*items(), *({"y": 1.0, "pred": 1.0},) * 3]
    path = write("sizes.csv", to_csv([{"y": r["y"], "pred": r["pred"]} for r in rows]))
    found = sum_files([path], name_columns("y", "pred")).moments.histogram
    expected = bin_error_sizes(np.array([abs(row["pred"] - row["y"]) for row in rows]))
    assert found == expected
    assert sum_files([path], name_columns("y", "pred"), histogram=False).moments.histogram is None


def test_constants_are_those_asked_for_and_the_mean_unless_there_is_that_of_training():
    rows = items()
    path = write("constants.csv", to_csv(rows))
    y = column(rows, "y")
    found = sum_files([path], name_columns("y", "pred"), constants={"zero": 0.0}).moments
    assert found.constants == pytest.approx({"mean": float(y.mean()), "zero": 0.0}, rel=1e-14)
    assert float(found.spread["zero"]) == pytest.approx(float(abs(y).sum()), rel=1e-12)
    trained = sum_files([path], name_columns("y", "pred"), constants={"train_mean": 2.5}).moments
    assert trained.constants == {"train_mean": 2.5}
    assert value("baseline_mae", trained) == pytest.approx(float(abs(y - 2.5).mean()), rel=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_median_is_near_where_half_of_the_weight_lies(shift, weighted):
    rng = np.random.default_rng(4)
    y = shift + np.exp(rng.normal(0.0, 1.0, 2001))
    w = rng.integers(1, 5, len(y)) if weighted else np.ones(len(y))
    text = "".join(f"{float(a)!r},0,{b}\n" for a, b in zip(y, w, strict=True))
    path = write("median.csv", "y,pred,weight\n" + text)
    columns = name_columns("y", "pred", weights="weight" if weighted else None)
    found = sum_files([path], columns, constants={"median": None})
    order = np.argsort(y)
    half = np.searchsorted(np.cumsum(w[order]), w.sum() / 2)
    exact, mean = float(y[order][half]), float((w * y).sum() / w.sum())
    median = found.moments.constants["median"]
    assert abs(median - exact) <= 0.00501 * abs(exact - mean)
    spread = float((w * abs(y - median)).sum())
    assert float(found.moments.spread["median"]) == pytest.approx(spread, rel=1e-10)
    assert "The median of the targets is approximate" in found.notes[-1]


def test_constants_need_values():
    path = write("c.csv", "y,pred\n1,2\n")
    with pytest.raises(BadOption, match="'zero' needs a value"):
        sum_files([path], name_columns(), constants={"zero": None})
    with pytest.raises(BadOption, match="'zero' is nan, not a finite number"):
        sum_files([path], name_columns(), constants={"zero": math.nan})


# --- two files -----------------------------------------------------------------------------------


def split(rows: list[dict], kind=to_csv, end: str = "csv") -> tuple[str, str]:
    kept = ("id", "y", "weight", "season", "site", "hour")
    gold = write(f"gold.{end}", kind([{x: row[x] for x in kept} for row in rows]))
    guesses = [{x: row[x] for x in ("id", "pred", "low", "high")} for row in rows]
    return gold, write(f"guesses.{end}", kind(guesses))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RegressionData:
    """What one file of everything gives."""
    path = tmp_path_factory.mktemp("whole") / "all.csv"
    path.write_bytes(to_csv(items()))
    columns = name_columns("y", "pred", "weight", "season", "site", "low", "high", order="hour")
    return sum_files([str(path)], columns)


@pytest.mark.parametrize(
    ("kind", "end"), [(to_csv, "csv"), (to_jsonl, "jsonl"), (to_parquet, "pq")]
)
@pytest.mark.parametrize("way", [{"id": "id"}, {"row_order": True}])
def test_targets_may_come_from_a_file_of_their_own(whole, kind, end, way):
    rows = items()
    gold, guesses = split(rows, kind, end)
    columns = name_columns(
        "y", "pred", "weight", "season", "site", "low", "high", order="hour", gold_file=gold, **way
    )
    found = sum_files([guesses], columns)
    for mine, theirs in (
        (found.moments, whole.moments),
        (found.groups, whole.groups),
        (found.previous, whole.previous),
        *((found_part, dict(whole.by)[x][0]) for x, (found_part, _) in found.by),
    ):
        same(mine, theirs)
    assert found.bounds.plain == pytest.approx(whole.bounds.plain, rel=1e-12)
    alive = sum(row["weight"] > 0 for row in rows)
    matched = {"matched": alive, "missing": 0, "unknown": 0}
    assert found.match_counts == (matched if "id" in way else None)
    assert found.files == (gold, guesses)


def test_ids_without_a_prediction_are_missing_and_unknown_ids_are_left_out():
    rows = items(20)
    gold, _ = split(rows)
    guesses = [{"id": row["id"], "pred": row["pred"]} for row in (*rows[3:], rows[0] | {"id": "?"})]
    write("guesses.csv", to_csv(guesses))
    columns = name_columns("y", "pred", gold_file=gold, id="id")
    with pytest.raises(
        MissingLabels, match=r"3 of 20 predictions in column 'pred' are missing \(id i0, id i1"
    ):
        sum_files(["guesses.csv"], columns)
    found = sum_files(["guesses.csv"], columns, missing="drop")
    close(found.moments, oracle(rows[3:]))
    assert found.match_counts == {"matched": 17, "missing": 3, "unknown": 1}
    assert found.moments.dropped == 3


def test_a_target_and_a_prediction_may_have_the_same_name():
    write("gold.csv", "id,price\na,1\nb,2\n")
    write("guesses.csv", "id,price\nb,5\na,1\n")
    columns = name_columns("price", "price", gold_file="gold.csv", id="id")
    assert value("mae", sum_files(["guesses.csv"], columns).moments) == 1.5


def test_nan_is_no_missing_number_in_joined_files_either():
    columns = {"id": ["a", "b", "c"], "y": [1.0, math.nan, 2.0]}
    pq.write_table(pa.table(columns), "gold.parquet")
    write("guesses.csv", "id,pred\na,1\nb,2\nc,3\n")
    columns = name_columns("y", "pred", gold_file="gold.parquet", id="id")
    with pytest.raises(BadValues, match=r"The target \(id b of column 'y'\) is 'nan'"):
        sum_files(["guesses.csv"], columns, missing="drop")


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["data.csv", "data.jsonl", "data.parquet"])
def test_bounds_are_those_of_numpy(weighted, form):
    rows = items()
    text = [row | {"low": str(row["low"]), "high": str(row["high"])} for row in rows]
    path = write(form, FORMS[form](text if form == "data.jsonl" else rows))
    weights = "weight" if weighted else None
    columns = name_columns("y", "pred", weights, "season", "site", "low", "high")
    found = sum_files([path], columns)
    alive = [row for row in rows if row["weight"] > 0 or not weighted]

    def bounds(kept: list[dict], groups=None) -> PredictionIntervals:
        y, low, high, w, p = (
            [row[x] for row in kept] for x in ("y", "low", "high", "weight", "pred")
        )
        return PredictionIntervals.of(y, low, high, w if weighted else None, groups, predicted=p)

    equal(found.bounds, bounds(alive, [row["site"] for row in alive]))
    for name, batch in found.bounds_by:
        equal(batch.pooled, bounds([row for row in alive if row["season"] == name]))
    alone = sum_files([path], name_columns("y", "pred", weights, "season", None, "low", "high"))
    equal(alone.bounds, bounds(alive))
    for name, part in alone.bounds_by:
        equal(part, bounds([row for row in alive if row["season"] == name]))
    assert sum_files([path], name_columns("y", "pred")).bounds is None


def equal(one: PredictionIntervals, two: PredictionIntervals) -> None:
    assert (one.shape, one.counted, one.points) == (two.shape, two.counted, two.points)
    for name in ("items", "plain", "squared", "endless"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-10, abs=1e-12), name


def test_bounds_come_in_pairs_and_in_order():
    with pytest.raises(BadOption, match="name both columns"):
        sum_files(["a.csv"], name_columns("y", "pred", lower="low"))
    columns = name_columns("y", "pred", lower="low", upper="high")
    write("a.csv", "y,pred,low,high\n1,2,0,3\n1,2,3,0\n")
    with pytest.raises(BadValues, match=r"lower bound \(row 2 of column 'low'\), 3.0, is above"):
        sum_files(["a.csv"], columns)
    for name, text in (("low", "inf"), ("low", "nan"), ("high", "-inf"), ("high", "x")):
        row = {"y": 1, "pred": 2, "low": 0, "high": 3}
        write("b.csv", to_csv([row, row | {name: text}]))
        with pytest.raises(BadValues, match=rf"bound \(row 2 of column '{name}'\) is '{text}'"):
            sum_files(["b.csv"], columns)
    write("c.csv", "y,pred,low,high\n1,2,,3\n1,2,0,2\n")
    with pytest.raises(MissingLabels, match=r"1 of 2 lower bounds in column 'low'.*row 1"):
        sum_files(["c.csv"], columns)
    found = sum_files(["c.csv"], columns, missing="drop")
    assert (found.moments.n, found.bounds.n, found.bounds.dropped) == (1, 1, 1)


# --- the previous value --------------------------------------------------------------------------


def previous_of(rows: list[dict], time: str = "hour", *, weighted: bool = False) -> Moments:
    inorder = sorted(rows, key=lambda row: row[time])
    y = [row["y"] for row in inorder]
    w = [row["weight"] for row in inorder[1:]] if weighted else None
    return Moments.of(y[1:], y[:-1], w, histogram=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["data.csv", "data.jsonl", "data.parquet"])
def test_the_previous_value_is_that_of_the_declared_order(weighted, form):
    rows = items()
    path = write(form, FORMS[form](rows))
    columns = name_columns("y", "pred", order="hour", weights="weight" if weighted else None)
    found = sum_files([path], columns)
    alive = [row for row in rows if row["weight"] > 0 or not weighted]
    same(found.previous, previous_of(alive, weighted=weighted))
    assert found.previous.n == len(alive) - 1


@pytest.mark.parametrize(
    "times",
    [
        [9, 10, 8, -1],
        ["0.5", "1e3", "2", "-3"],
        [2**60 + 1, 2**60, 2**60 + 3, 2**60 + 2],
        ["2024-01-10", "2024-01-09", "2023-12-31", "2024-02-01"],
        ["2024-01-01 10:00", "2024-01-01T09:00:00.5", "2024-01-01 09:00:00.25", "2024-01-02"],
    ],
)
def test_order_is_by_numbers_or_by_times(times):
    rows = [
        {"y": y, "pred": 0.0, "at": t} for y, t in zip([1.0, 2.0, 5.0, 9.0], times, strict=True)
    ]
    found = sum_files([write("t.csv", to_csv(rows))], name_columns("y", "pred", order="at"))
    number = all(str(t)[:4] not in {"2023", "2024"} for t in times)
    keyed = (
        [
            row | {"at": float(row["at"]) if isinstance(row["at"], str) else row["at"]}
            for row in rows
        ]
        if number
        else [row | {"at": row["at"].replace("T", " ")} for row in rows]
    )
    same(found.previous, previous_of(keyed, "at"))


def test_times_of_other_zones_are_put_on_one_clock():
    write(
        "zones.csv",
        "y,pred,at\n1,0,2024-03-01T12:00:00+02:00\n2,0,2024-03-01T11:00:00Z\n"
        "4,0,2024-03-01T11:30:00+01:00\n",
    )
    found = sum_files(["zones.csv"], name_columns("y", "pred", order="at"))
    same(found.previous, Moments.of([4.0, 2.0], [1.0, 4.0], histogram=True))


def test_dates_of_parquet_order_items():
    days = pa.array([3, 1, 2], pa.date32())
    pq.write_table(pa.table({"y": [1.0, 2.0, 4.0], "pred": [0.0] * 3, "day": days}), "d.parquet")
    found = sum_files(["d.parquet"], name_columns("y", "pred", order="day"))
    same(found.previous, Moments.of([4.0, 1.0], [2.0, 4.0], histogram=True))


def test_items_that_are_dropped_are_no_previous_ones():
    write("drop.csv", "y,pred,at\n1,1,1\n5,,2\n2,2,3\n,,\n")
    found = sum_files(["drop.csv"], name_columns("y", "pred", order="at"), missing="drop")
    same(found.previous, Moments.of([2.0], [1.0], histogram=True))


def test_an_order_has_no_ties_and_no_holes():
    columns = name_columns("y", "pred", order="at")
    write("tie.csv", "y,pred,at\n1,1,3\n2,2,7\n3,3,7.0\n")
    with pytest.raises(BadValues, match=r"'at' has the time '7.*more than once \(row 2, row 3\)"):
        sum_files(["tie.csv"], columns)
    write("hole.csv", "y,pred,at\n1,1,3\n2,2,\n")
    with pytest.raises(BadValues, match=r"The time \(row 2 of column 'at'\) is missing"):
        sum_files(["hole.csv"], columns, missing="drop")
    write("word.csv", "y,pred,at\n1,1,3\n2,2,4\n3,3,soon\n")
    with pytest.raises(BadValues, match=r"\(row 3 of column 'at'\) is 'soon', which is neither"):
        sum_files(["word.csv"], columns)
    write("one.csv", "y,pred,at\n1,1,3\n")
    assert sum_files(["one.csv"], columns).previous is None


# --- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", ["large.parquet", pytest.param("large.csv", marks=pytest.mark.slow)]
)
def test_the_number_of_threads_changes_no_digit(monkeypatch, form):
    rng = np.random.default_rng(8)
    n = 300_000  # more than a few row groups, so that threads share them
    y = 1e9 + rng.normal(0.0, 1.0, n)
    p = y + rng.normal(0.1, 0.5, n)
    columns = {"y": y, "pred": p, "low": p - rng.random(n), "high": p + rng.random(n)}
    labels = {"season": rng.choice(["dry", "wet"], n), "site": rng.integers(0, 90, n)}
    table = pa.table({**columns, **labels, "weight": rng.random(n)})
    if form.endswith("csv"):
        pa_csv.write_csv(table, form)
    else:
        pq.write_table(table, form, row_group_size=30_000)

    def found(threads: int) -> list[dict]:
        monkeypatch.setitem(duckdb_connection.OFFLINE_SETTINGS, "threads", threads)
        columns = name_columns("y", "pred", "weight", "season", "site", "low", "high")
        data = sum_files([form], columns, constants={"median": None})
        by = [x for _, parts in data.by for x in parts]
        whole = (data.moments, data.groups, data.bounds, *by, *(x for _, x in data.bounds_by))
        return [x.to_dict() for x in whole]

    one = found(1)
    assert all(found(threads) == one for threads in (2, 3, 4))
