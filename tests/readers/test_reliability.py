"""Files of probabilities: whatever the format, the summary is that of the columns in memory."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from naive_probabilities import sample

from ordinate.errors import (
    BadInput,
    BadProbabilities,
    BadWeights,
    MissingLabels,
    NoItems,
    OffScale,
)
from ordinate.readers.columns import ItemColumns
from ordinate.readers.reliability import count_probabilities
from ordinate.scale import Scale
from ordinate.summaries.reliability import Reliability, ReliabilityParts

LABELS = ("low", "mid", "high")
SCALE = Scale(LABELS)
PARTS = ReliabilityParts(
    frozenset({("top", 10), ("levels", 5)}), scores=True, confusion_matrix=True, ranking=True
)
GOLD, ROWS = sample(120, 3, seed=1)
WEIGHTS = np.arange(120) % 4 / 2


def frame():
    """Items with an id, gold, weights and probabilities; columns in no order of the levels."""
    named = {f"p_{LABELS[k]}": ROWS[:, k] for k in (2, 0, 1)}
    ids = [f"e{k:03}" for k in range(120)]
    golden = np.array(LABELS)[GOLD]
    return pd.DataFrame({"essay": ids, "level": golden, "weight": WEIGHTS, **named})


def write(data, name="items.csv"):
    if name.endswith(".parquet"):
        data.to_parquet(name)
    elif name.endswith((".jsonl", ".jsonl.gz")):
        data.to_json(name, orient="records", lines=True, double_precision=15)
    else:
        data.to_csv(name, index=False, sep="\t" if ".tsv" in name else ",")
    return name


def count(*paths, named=("p_",), missing="error", scale=SCALE, parts=PARTS, **columns):
    options = {key: columns.pop(key) for key in ("blocks", "rows_per_block") if key in columns}
    wanted = ItemColumns(gold="level", probabilities=named, **columns)
    return count_probabilities(list(paths), wanted, parts, scale, missing, **options)


def leaves(found):
    arrays = [found.items, found.weight, found.squares, found.confidence, found.confusion_matrix]
    counts = found.argmax
    arrays += [found.ranking, counts.items, counts.weights, counts.squares, *found.scores]
    return arrays + [part for sums in found.bins.values() for part in sums]


def same(found, wanted, tolerance=1e-12):
    for mine, theirs in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_allclose(mine, theirs, tolerance, tolerance)
    np.testing.assert_array_equal(found.dropped, wanted.dropped)


def in_memory(rows=ROWS, **options):
    return Reliability.of(np.array(LABELS)[GOLD], rows, SCALE, PARTS, columns="scale", **options)


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "a.jsonl", "a.jsonl.gz", "a.parquet"]
)
def test_every_format_has_the_same_summary(name):
    found = count(write(frame(), name))
    same(found.blocks, in_memory())
    assert found.columns == ("p_low", "p_mid", "p_high")
    assert (found.gold, found.files, found.match_counts) == ("level", (name,), None)


def test_single_precision_and_decimals_are_numbers():
    single = frame().astype({f"p_{label}": np.float32 for label in LABELS})
    rows = single[[f"p_{label}" for label in LABELS]].to_numpy()
    same(count(write(single, "a.parquet")).blocks, in_memory(rows))


def test_several_files_are_one_and_each_may_have_its_own_order_of_columns():
    whole = frame()
    write(whole[:50], "a.csv")
    write(whole[50:][list(whole.columns[::-1])], "b.csv")
    found = count("a.csv", "b.csv")
    same(found.blocks, in_memory())
    assert found.files == ("a.csv", "b.csv")
    mixed = count("a.csv", write(whole[50:], "b.parquet"))
    same(mixed.blocks, in_memory())


def test_columns_may_be_named_in_any_order():
    path = write(frame())
    for named in (("p_low", "p_mid", "p_high"), ("p_mid", "p_high", "p_low")):
        same(count(path, named=named).blocks, in_memory())


def test_a_shorter_prefix_is_enough_where_no_other_column_has_it():
    path = write(frame().rename(columns=lambda name: name.replace("p_", "probability of ")))
    same(count(path, named=("prob",)).blocks, in_memory())
    with pytest.raises(BadProbabilities, match="'level, p_high, p_low' do not say"):
        count(write(frame()), named=("level", "p_high", "p_low"))


def test_weights_and_blocks():
    path = write(frame())
    same(count(path, weights="weight").blocks, in_memory(weights=WEIGHTS))
    found = count(path, weights="weight", blocks=8).blocks
    same(found, in_memory(weights=WEIGHTS, blocks=8))


def test_the_size_of_portions_does_not_matter():
    path = write(frame())
    whole = count(path, blocks=4).blocks
    same(count(path, blocks=4, rows_per_block=7).blocks, whole)


def test_the_scale_may_be_a_preset_that_all_gold_labels_are_on():
    labels = Scale.of("cefr").labels
    gold, rows = sample(60, 6, seed=2)
    data = pd.DataFrame(rows, columns=[f"p_{label}" for label in labels])
    data["level"] = np.array(labels)[gold]
    found = count(write(data), scale=None)
    assert found.blocks.scale.labels == labels
    assert any("preset" in note for note in found.notes)


def test_numeric_levels_are_found_by_the_names_of_their_columns():
    gold, rows = sample(40, 3, seed=3)
    data = pd.DataFrame(
        {"level": gold + 1, "p_3": rows[:, 2], "p_1": rows[:, 0], "p_2": rows[:, 1]}
    )
    found = count(write(data), scale=Scale.of("1..3"))
    wanted = Reliability.of(gold + 1, rows, Scale.of("1..3"), PARTS)
    same(found.blocks, wanted)


# --- gold in another file ------------------------------------------------------------------------


def halves(seed=0):
    whole = frame()
    write(whole[["essay", "level"]].sample(frac=1, random_state=seed), "gold.csv")
    return whole.drop(columns="level")


def test_gold_is_joined_by_id_whatever_the_order():
    run = write(halves(), "run.csv")
    found = count(run, gold_file="gold.csv", id="essay")
    same(found.blocks, in_memory())
    assert found.match_counts == {"matched": 120, "missing": 0, "unknown": 0}
    weighted = count(run, gold_file="gold.csv", id="essay", weights="weight")
    same(weighted.blocks, in_memory(weights=WEIGHTS))


def test_blocks_of_joined_files_do_not_depend_on_the_order_of_the_files():
    run = write(halves(), "run.csv")
    one = count(run, gold_file="gold.csv", id="essay", blocks=8).blocks
    halves(seed=5)
    two = count(run, gold_file="gold.csv", id="essay", blocks=8).blocks
    same(one, two, tolerance=0)
    same(one, in_memory(blocks=8))


def test_gold_is_matched_by_row_order_where_asked():
    whole = frame()
    write(whole[["level"]], "gold.csv")
    run = write(whole.drop(columns="level"), "run.csv")
    found = count(run, gold_file="gold.csv", row_order=True, blocks=4)
    same(found.blocks, in_memory(blocks=4))
    assert any("row order" in note for note in found.notes)


def test_an_item_without_probabilities_is_not_lost_in_silence():
    run = write(halves()[3:], "run.csv")
    with pytest.raises(MissingLabels, match=r"3 of 120 rows .*\(id e000, id e001, id e002\).*drop"):
        count(run, gold_file="gold.csv", id="essay")
    found = count(run, gold_file="gold.csv", id="essay", missing="drop")
    assert found.match_counts == {"matched": 117, "missing": 3, "unknown": 0}
    assert (found.blocks.n, found.blocks.dropped) == (117, 3)
    kept = Reliability.of(np.array(LABELS)[GOLD][3:], ROWS[3:], SCALE, PARTS, columns="scale")
    np.testing.assert_allclose(found.blocks.scores.weighted, kept.scores.weighted)


def test_items_that_gold_does_not_know_are_counted_and_left_out():
    run = write(halves(), "run.csv")
    write(frame()[["essay", "level"]][10:], "gold.csv")
    found = count(run, gold_file="gold.csv", id="essay")
    assert found.match_counts == {"matched": 110, "missing": 0, "unknown": 10}
    assert (found.blocks.n, found.blocks.dropped) == (110, 0)


def test_probabilities_in_the_file_of_gold_are_those_of_another_system():
    other = frame()
    other[["p_low", "p_mid", "p_high"]] = [1.0, 0.0, 0.0]
    write(other, "gold.csv")
    run = frame().drop(columns=["level", "weight"])
    for how in ({"id": "essay"}, {"row_order": True}):
        same(count(write(run, "run.csv"), gold_file="gold.csv", **how).blocks, in_memory())
    run["p_mid"] = run["p_mid"].astype(object)
    run.loc[5, "p_mid"] = ""
    with pytest.raises(BadProbabilities, match=r"run\.csv: The probabilities of id e005"):
        count(write(run, "run.csv"), gold_file="gold.csv", id="essay")


def test_an_unmatched_item_of_weight_0_does_not_exist():
    run = halves()
    write(frame()[["essay", "level", "weight"]], "gold.csv")  # item e000 has weight 0
    path = write(run.drop(columns="weight")[1:], "run.csv")
    found = count(path, gold_file="gold.csv", id="essay", weights="weight")
    same(found.blocks, in_memory(weights=WEIGHTS))


def test_an_error_names_the_id_and_the_file_of_probabilities():
    run = halves()
    run.loc[7, "p_low"] += 0.5
    path = write(run.sample(frac=1, random_state=2), "run.csv")
    with pytest.raises(BadProbabilities, match=r"run\.csv: The probabilities of id e007, "):
        count(path, gold_file="gold.csv", id="essay")


# --- what is wrong -------------------------------------------------------------------------------


def changed(row, column, value):
    data = frame()
    data[column] = data[column].astype(object)
    data.loc[row, column] = value
    return data


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("cell", ["n/a", "", "0,5", "x", None, "nan", "inf", "-inf"])
def test_a_cell_that_is_no_number_is_refused_with_its_row(cell, name):
    path = write(changed(7, "p_mid", cell), name)
    told = rf"{name}: The probabilities of row 8, .* finite"
    if cell in {"n/a", "0,5", "x"}:  # and not just empty
        told = rf"{name}: the probability '{cell}' \(row 8 of column 'p_mid'\) is not a number"
    with pytest.raises(BadProbabilities, match=told):
        count(path)
    if cell in {"n/a", "0,5", "x"}:
        with pytest.raises(BadProbabilities, match=told):
            count(path, missing="drop")


@pytest.mark.parametrize(
    ("value", "told"), [(2.0, "sum to"), (-0.1, "not all at least 0"), (0.0, "sum to 0")]
)
def test_a_row_that_is_no_distribution_is_named(value, told):
    path = write(changed(99, "p_low", value))
    with pytest.raises(BadProbabilities, match=f"row 100, .* {told}"):
        count(path)


def test_the_row_is_named_in_the_second_file_too():
    write(frame(), "a.csv")
    with pytest.raises(BadProbabilities, match=r"b\.csv: The probabilities of row 3, "):
        count("a.csv", write(changed(2, "p_low", 5.0), "b.csv"))


def test_sums_near_1_are_renormalized_where_asked():
    data = frame()
    data[["p_low", "p_mid", "p_high"]] *= 1.005
    path = write(data)
    with pytest.raises(BadProbabilities, match=r"row 1, .* sum to 1\.005, .*renormalize=True"):
        count(path)
    same(count(path, renormalize=True).blocks, in_memory())
    data[["p_low", "p_mid", "p_high"]] *= 1.02
    with pytest.raises(BadProbabilities, match=r"row 1, .* sum to 1\.0251"):
        count(write(data), renormalize=True)


def test_missing_gold_is_refused_or_dropped():
    path = write(changed(4, "level", None))
    with pytest.raises(MissingLabels, match=r"items\.csv: Gold labels are missing \(row 5\)"):
        count(path)
    found = count(path, missing="drop").blocks
    assert (found.n, found.dropped, found.argmax.dropped) == (119, 1, 1)


def test_an_item_with_empty_cells_only_is_dropped_where_asked():
    data = frame()
    data.loc[4, ["p_low", "p_mid", "p_high"]] = math.nan
    path = write(data)
    with pytest.raises(BadProbabilities, match="row 5"):
        count(path)
    found = count(path, missing="drop").blocks
    assert (found.n, found.dropped) == (119, 1)


def test_a_file_in_which_all_items_are_dropped_is_no_obstacle():
    write(frame(), "a.csv")
    empty = frame()[:4].assign(level=None)
    found = count("a.csv", write(empty, "b.csv"), missing="drop").blocks
    assert (found.n, found.dropped) == (120, 4)
    with pytest.raises(NoItems, match="none has a gold label"):
        count("b.csv", missing="drop")
    weightless = count("a.csv", write(frame().assign(weight=0), "c.csv"), weights="weight")
    same(weightless.blocks, in_memory(weights=WEIGHTS))


def test_no_rows_and_no_weights_are_refused():
    with pytest.raises(NoItems, match="a header and no rows"):
        count(write(frame()[:0]))
    with pytest.raises(NoItems, match="all weights are 0"):
        count(write(frame().assign(weight=0)), weights="weight")


def test_columns_that_are_not_there_are_refused():
    path = write(frame())
    with pytest.raises(BadInput, match="no columns of probabilities that start with 'q_'"):
        count(path, named=("q_",))
    with pytest.raises(BadInput, match="no column 'p_hi'"):
        count(path, named=("p_low", "p_mid", "p_hi"))
    with pytest.raises(BadProbabilities, match="Is there a column for each level"):
        count(path, named=("p_low", "p_mid"))
    with pytest.raises(BadInput, match="no column 'p_high'"):
        count(path, write(frame().drop(columns="p_high"), "b.csv"))


def test_bad_weights_and_labels_off_the_scale_are_named():
    with pytest.raises(BadWeights, match="row 3"):
        count(write(changed(2, "weight", -1)), weights="weight")
    with pytest.raises(OffScale, match=r"'huge'.*row 3"):
        count(write(changed(2, "level", "huge")))


def test_strange_names_of_columns_stay_names():
    quoted = {f"p_{label}": f'"; DROP TABLE x; -- {label}' for label in LABELS}
    path = write(frame().rename(columns=quoted), "a.parquet")
    same(count(path, named=('"; DROP',)).blocks, in_memory())


def test_a_compressed_file_of_json_is_read_alike():
    lines = frame().to_json(orient="records", lines=True, double_precision=15)
    with gzip.open("b.jsonl.gz", "wt") as out:
        out.write(lines)
    same(count("b.jsonl.gz").blocks, in_memory())
    assert json.loads(lines.splitlines()[0])["essay"] == "e000"
