"""Integer weights are counts: in arrays, in sums and in files."""

import json

import numpy as np
import pytest
from panels import paired_of
from strategies import scale_of

from ordinate.inference import estimate_metrics
from ordinate.metrics import find_metric
from ordinate.readers.columns import ItemColumns
from ordinate.readers.confusion import count_files
from ordinate.readers.systems import count_systems
from ordinate.scale.encoding import CHUNK, factorize_column
from ordinate.summaries import ConfusionMatrix, Panel

# --- what is a count -----------------------------------------------------------------------------

# Four items, two in each of two cells: the weights, whether each is a count, and whether sums are.
COUNTED = {
    "no weights": (None, True, True),
    "ones": ([1, 1, 1, 1], True, True),
    "frequencies": ([3, 1, 2, 7], True, True),
    "an item of no weight": ([3, 0, 2, 7], True, True),
    "floats that are whole": ([3.0, 1.0, 2.0, 7.0], True, True),
    "halves": ([0.5, 0.5, 0.5, 0.5], False, False),
    "one and a half": ([1.5, 1.5, 1.5, 1.5], False, False),
    "parts of one": ([0.25, 0.75, 0.1, 0.9], False, False),
    "hardly not whole": ([1, 1, 1, 1 + 2**-52], False, False),
    "below one": ([1e-9, 1, 1, 1], False, False),
    "beyond exact numbers": ([1e17, 1e17, 1e17, 3e17], True, False),
    "a sum beyond exact numbers": ([2.0**52, 2.0**52, 1, 1], True, False),
    "the last exact sum": ([2.0**52, 2.0**52 - 1, 1, 1], True, True),
}


every_weight = pytest.mark.parametrize(
    ("weights", "counted", "whole"), COUNTED.values(), ids=COUNTED
)


LEVELS = "low,mid,high"


FIRST, SECOND = ["low", "low", "high", "high"], ["low", "low", "mid", "mid"]


WRITERS = ["w1", "w2", "w1", "w2"]


def tables_of_arrays(weights):
    """Every way from these four items to a table, and from it to others."""
    scale = ConfusionMatrix.of(FIRST, SECOND, LEVELS).scale
    table = ConfusionMatrix.of(FIRST, SECOND, LEVELS, weights)
    batch = ConfusionMatrix.count_by_group(FIRST, SECOND, scale, factorize_column(WRITERS), weights)
    alone = Panel.of(FIRST, {"x": SECOND, "y": FIRST}, LEVELS, weights)
    grouped = Panel.of(FIRST, {"x": SECOND, "y": FIRST}, LEVELS, weights, factorize_column(WRITERS))
    pairs, batch_of_pairs = (
        alone.pair_systems("x", "y"),
        grouped.pair_systems("x", "y", grouped=True),
    )
    return {
        "table": table,
        "table as JSON": ConfusionMatrix.from_dict(json.loads(json.dumps(table.to_dict()))),
        "table with its own cells": table.with_cells(table.weights),
        "groups": batch,
        "groups as JSON": ConfusionMatrix.from_dict(json.loads(json.dumps(batch.to_dict()))),
        "groups by index": batch[np.array([1, 0])],
        "groups pooled": batch.pooled,
        "groups summed": batch.compute_sums(np.array([0, 0]), 1),
        "panel": alone,
        "panel of groups": grouped,
        "panel as JSON": Panel.from_dict(json.loads(json.dumps(grouped.to_dict()))),
        "table of a panel": alone.confusion_matrix("x"),
        "groups of a panel": grouped.count_by_group("x"),
        "pairs": pairs,
        "pairs of groups": batch_of_pairs,
        "pairs of groups pooled": batch_of_pairs.pooled,
        "first of the pairs": pairs.first,
        "second of the pairs": pairs.second,
        "cells of pairs": pairs.to_confusion_matrix(pairs.weights.sum(axis=-1)),
    }


@every_weight
def test_tables_of_arrays_know_whether_weights_are_counts(weights, counted, whole):
    for name, table in tables_of_arrays(weights).items():
        assert table.counted is counted, name
        exact = float(table.weights.max()) < 2.0**53  # in groups, each item is a cell of its own
        assert table.has_integer_weights is (counted and exact), name
        if name in {"table", "groups pooled", "panel", "table of a panel"}:
            assert table.has_integer_weights is whole, name


@every_weight
def test_a_sum_is_counted_where_both_sides_are(weights, counted, whole):
    del whole
    plain, found = tables_of_arrays(None), tables_of_arrays(weights)
    for name in ("table", "groups", "panel", "panel of groups", "pairs"):
        for both in (plain[name] + found[name], found[name] + plain[name]):
            assert both.counted is counted, name
        assert (found[name] + found[name]).counted is counted, name


@pytest.mark.parametrize("weight", [0.5, 1.5])
def test_whole_sums_of_parts_are_no_counts(weight):
    """The sums of the cells are 1 or 3; adding tables up makes them no more of a count."""
    table = ConfusionMatrix.of(FIRST, SECOND, LEVELS, [weight] * 4)
    for found in (table, table + table, table + table + table + table):
        assert (found.weights == np.floor(found.weights)).all()
        assert not found.has_integer_weights


def test_counts_of_parts_of_items_stay_parts_when_they_are_added():
    """Nobody knows the items behind them, whatever the sums happen to be."""
    sums = [[[0.5, 0.5], [0, 1.5]], [[0.5, 0.5], [1, 0.5]]]
    first, second = (ConfusionMatrix.from_counts(cells, scale_of(2)) for cells in sums)
    batch = ConfusionMatrix.from_counts(np.array(sums), scale_of(2))
    for found in (first + second, batch.pooled):
        assert not found.has_integer_weights
        alpha = estimate_metrics([find_metric("krippendorff_alpha")], found)["krippendorff_alpha"]
        assert alpha.note == "the weights are no integer counts, on which it depends"


def test_counts_of_whole_items_are_counted():
    for cells in ([[3, 1], [0, 2]], [[[3, 1], [0, 2]], [[0, 0], [1, 0]]]):
        table = ConfusionMatrix.from_counts(cells, scale_of(2))
        assert table.counted
        assert table.has_integer_weights


def test_tables_of_other_weights_are_other_tables():
    halves = ConfusionMatrix.of(FIRST, SECOND, LEVELS, [0.5] * 4)
    ones = ConfusionMatrix(
        halves.scale, halves.items, halves.weights, halves.squares, halves.dropped
    )
    assert ones.counted
    assert ones != halves


def test_pairs_beyond_exact_numbers_are_no_counts():
    """As it is for the tables of each side."""
    cells = np.zeros((2, 3, 3))
    for weight, whole in ((2.0**53 - 1, True), (2.0**53, False), (1e17, False)):
        cells[0, 1, 0] = weight
        pairs = paired_of(scale_of(2), cells)
        assert pairs.first.has_integer_weights is whole
        assert pairs.has_integer_weights is whole


@pytest.mark.parametrize("place", [0, CHUNK - 1, CHUNK, CHUNK + 4])
def test_one_part_of_an_item_anywhere_in_a_long_column_is_found(place):
    weights = np.ones(CHUNK + 5)
    weights[place] = 1.5
    labels_ = ["low", "high"] * ((CHUNK + 5) // 2) + ["low"] * ((CHUNK + 5) % 2)
    assert not ConfusionMatrix.of(labels_, labels_, LEVELS, weights).counted
    assert ConfusionMatrix.of(labels_, labels_, LEVELS, np.floor(weights)).counted


@pytest.mark.parametrize(("missing", "counted"), [("drop", True), ("worst", False)])
def test_items_that_were_dropped_do_not_weigh(missing, counted):
    gold, answers, weights = [*FIRST, "mid"], [*SECOND, None], [2, 1, 1, 3, 0.5]
    table = ConfusionMatrix.of(gold, answers, LEVELS, weights, missing=missing)
    panel = Panel.of(gold, {"x": answers, "y": gold}, LEVELS, weights, missing=missing)
    for found in (table, panel, panel.confusion_matrix("x"), panel.pair_systems("x", "y")):
        assert found.counted is counted
        assert found.has_integer_weights is counted


# --- and in files --------------------------------------------------------------------------------


def written(path, columns):
    """A CSV file of columns, None for no value."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("\n".join(",".join("" if x is None else str(x) for x in r) for r in rows))
    return str(path)


def file_of(folder, weights):
    """The four items with all columns that a count of files can ask for."""
    columns = {"id": range(4), "gold": FIRST, "predicted": SECOND, "other": FIRST}
    columns |= {"writer": WRITERS, "region": ["n", "n", "s", "s"], "second": FIRST}
    return written(folder / "items.csv", columns | {"w": weights or [1] * 4})


@every_weight
def test_tables_of_files_know_whether_weights_are_counts(tmp_path, weights, counted, whole):
    path, scale = file_of(tmp_path, weights), ConfusionMatrix.of(FIRST, SECOND, LEVELS).scale
    named = None if weights is None else "w"
    plain = count_files(
        [path], ItemColumns(gold="gold", predicted="predicted", weights=named), scale
    )
    columns = ItemColumns(
        gold="gold",
        predicted="predicted",
        weights=named,
        by="region",
        groups="writer",
        second_rater="second",
    )
    found = count_files([path], columns, scale)
    assert plain.matrix.has_integer_weights is whole
    assert plain.matrix == found.matrix == ConfusionMatrix.of(FIRST, SECOND, scale, weights)
    tables = [
        plain.matrix,
        found.matrix,
        found.groups,
        found.second_rater,
        *dict(found.by).values(),
    ]
    assert [table.counted for table in tables[:4]] == [counted] * 4
    assert tables[2] == ConfusionMatrix.count_by_group(
        FIRST, SECOND, scale, factorize_column(WRITERS), weights
    )
    if len(set(weights or [1])) == 1:
        assert [table.counted for table in tables[4:]] == [counted] * 2


@every_weight
def test_panels_of_files_know_whether_weights_are_counts(tmp_path, weights, counted, whole):
    path, scale = file_of(tmp_path, weights), ConfusionMatrix.of(FIRST, SECOND, LEVELS).scale
    named = None if weights is None else "w"
    run = {"id": [2, 0, 3, 1], "predicted": [SECOND[k] for k in (2, 0, 3, 1)]}
    runs = [path, written(tmp_path / "x.csv", run), written(tmp_path / "y.csv", run)]
    for groups in (None, "writer"):
        shared = {"gold": "gold", "weights": named, "groups": groups}
        wide = ItemColumns(systems=("predicted", "other"), **shared)
        columns = count_systems([path], wide, scale).panel
        joined = count_systems(runs, ItemColumns(id="id", **shared), scale).panel
        for panel in (columns, joined):
            assert panel.counted is counted
            assert panel.confusion_matrix(panel.systems[0]).has_integer_weights is whole


def test_one_part_of_an_item_in_one_of_several_files_is_found(tmp_path):
    scale = ConfusionMatrix.of(FIRST, SECOND, LEVELS).scale
    columns = {"gold": FIRST, "predicted": SECOND}
    whole = written(tmp_path / "a.csv", columns | {"w": [1, 2, 3, 4]})
    parts = written(tmp_path / "b.csv", columns | {"w": [0.5, 0.5, 1, 1]})
    for paths, counted in (([whole], True), ([parts], False), ([whole, parts], False)):
        found = count_files(paths, ItemColumns(weights="w"), scale).matrix
        assert found.counted is counted
        assert found.has_integer_weights is counted
        assert (found.weights == np.floor(found.weights)).all()


@pytest.mark.parametrize(("missing", "counted"), [("drop", True), ("worst", False)])
def test_items_of_files_that_were_dropped_do_not_weigh(tmp_path, missing, counted):
    columns = {"gold": [*FIRST, "mid"], "predicted": [*SECOND, None], "w": [2, 1, 1, 3, 0.5]}
    path = written(tmp_path / "items.csv", columns)
    scale = ConfusionMatrix.of(FIRST, SECOND, LEVELS).scale
    found = count_files([path], ItemColumns(weights="w"), scale, missing).matrix
    assert found.counted is counted


@pytest.mark.parametrize("weight", [0.5, 1.5])
def test_metrics_of_counts_refuse_whole_sums_of_parts(weight, tmp_path):
    path = file_of(tmp_path, [weight] * 4)
    scale = ConfusionMatrix.of(FIRST, SECOND, LEVELS).scale
    columns = ItemColumns(gold="gold", predicted="predicted", weights="w")
    for table in (
        count_files([path], columns, scale).matrix,
        ConfusionMatrix.of(FIRST, SECOND, LEVELS, [weight] * 4),
    ):
        found = estimate_metrics([find_metric("krippendorff_alpha"), find_metric("mae")], table)
        assert found["krippendorff_alpha"].method is None
        assert "no integer counts" in found["krippendorff_alpha"].note
        assert found["mae"].note in {"fractional weights", "it has no standard error here"}
