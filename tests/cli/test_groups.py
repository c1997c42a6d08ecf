"""The reader of files with groups and a second rater: the tables are those of Python."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordinate.errors import BadInput, MissingLabels, NoItems, OffScale
from ordinate.readers.columns import ItemColumns
from ordinate.readers.confusion import count_files
from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import ConfusionMatrix

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
NAMES = ("essay", "gold", "predicted", "second", "writer", "language", "weight")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def items(n: int = 200, seed: int = 5) -> list[dict]:
    """Return items of some writers, judged twice."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        gold = int(rng.integers(0, 6))
        near = [CEFR[int(np.clip(gold + rng.integers(-1, 2), 0, 5))] for _ in range(2)]
        writer, language = f"w{rng.integers(0, 12)}", ("de", "fr")[int(rng.integers(0, 2))]
        weight = float(rng.integers(0, 9)) / 4
        values = (f"e{number}", CEFR[gold], *near, writer, language, weight)
        rows.append(dict(zip(NAMES, values, strict=True)))
    return rows


ROWS = items()


def write(name: str, rows: list[dict]) -> str:
    lines = [",".join(rows[0]), *(",".join(_cell(x) for x in row.values()) for row in rows)]
    Path(name).write_text("\n".join(lines) + "\n")
    return name


def _cell(value) -> str:
    return "" if value is None else str(value)


def column(name: str, rows: list[dict]) -> list:
    return [row[name] for row in rows]


def pair(rows: list[dict], first: str = "gold", second: str = "predicted") -> ConfusionMatrix:
    return ConfusionMatrix.of(column(first, rows), column(second, rows), "cefr")


def by_group(rows: list[dict], second: str = "predicted", **options) -> ConfusionMatrix:
    groups = factorize_column(column("writer", rows))
    labels = column("gold", rows), column(second, rows)
    return ConfusionMatrix.count_by_group(*labels, Scale.of("cefr"), groups, **options)


def count(*paths: str, missing: str = "error", scale: str | None = None, **columns):
    declared = None if scale is None else Scale.of(scale)
    return count_files(list(paths), ItemColumns(**columns), declared, missing)


# --- groups --------------------------------------------------------------------------------------


def test_without_groups_there_are_none():
    found = count(write("some.csv", ROWS))
    assert (found.groups, found.second_rater) == (None, None)
    assert found.matrix == pair(ROWS)


def test_there_is_a_table_for_each_group_in_the_order_in_which_groups_appear():
    found = count(write("some.csv", ROWS), groups="writer")
    assert found.groups == by_group(ROWS)
    assert found.matrix == pair(ROWS)


def test_groups_are_weighted_like_everything_else():
    found = count(write("some.csv", ROWS), groups="writer", weights="weight")
    assert found.groups == by_group(ROWS, weights=column("weight", ROWS))


def test_a_group_may_go_on_in_another_file():
    write("a.csv", ROWS[:90])
    write("b.csv", ROWS[90:])
    assert count("a.csv", "b.csv", groups="writer").groups == by_group(ROWS)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_groups_are_the_same_in_every_format(kind):
    if kind == "jsonl":
        Path("some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        pq.write_table(pa.table({name: column(name, ROWS) for name in NAMES}), "some.parquet")
    found = count(f"some.{kind}", groups="writer", second_rater="second")
    assert found.groups == by_group(ROWS)
    assert found.second_rater == by_group(ROWS, second="second")


def test_groups_of_numbers_are_groups_too():
    rows = [row | {"writer": int(row["writer"][1:])} for row in ROWS]
    pq.write_table(pa.table({name: column(name, rows) for name in NAMES}), "some.parquet")
    assert count("some.parquet", groups="writer").groups == by_group(ROWS)


def test_a_subgroup_has_the_tables_of_its_groups():
    found = count(write("some.csv", ROWS), groups="writer", by="language")
    assert found.groups == by_group(ROWS)
    for language, batch in found.by:
        rows = [row for row in ROWS if row["language"] == language]
        assert batch.pooled == pair(rows)
        assert len(batch.items) == len(set(column("writer", rows)))
    assert [language for language, _ in found.by] == ["de", "fr"]


@pytest.mark.parametrize("grouped", [False, True])
def test_a_subgroup_has_the_table_of_its_second_rater(grouped):
    groups = {"groups": "writer"} if grouped else {}
    found = count(write("some.csv", ROWS), by="language", second_rater="second", **groups)
    assert [language for language, _ in found.second_rater_by] == ["de", "fr"]
    for language, rated in found.second_rater_by:
        rows = [row for row in ROWS if row["language"] == language]
        assert (rated.pooled if grouped else rated) == pair(rows, second="second")


def filled(batch: ConfusionMatrix) -> int:
    return int((batch.total > 0).sum())


def test_a_group_that_a_subgroup_lacks_has_no_items_of_it():
    rows = [row | {"language": "de" if row["writer"] == "w3" else "fr"} for row in ROWS]
    found = dict(count(write("some.csv", rows), groups="writer", by="language").by)
    assert filled(found["de"]) == 1
    assert filled(found["fr"]) == 11
    assert found["de"].shape == found["fr"].shape == (12,)  # so that they can be added


def test_subgroups_without_groups_stay_single_tables():
    found = count(write("some.csv", ROWS), by="language")
    assert [table.shape for _, table in found.by] == [(), ()]


def test_one_column_may_be_both_group_and_subgroup():
    found = count(write("some.csv", ROWS), groups="writer", by="writer")
    assert [filled(batch) for _, batch in found.by] == [1] * 12


def test_items_without_a_subgroup_are_a_subgroup_with_groups_too():
    rows = [row | {"language": None} if k % 5 == 0 else row for k, row in enumerate(ROWS)]
    found = dict(count(write("some.csv", rows), groups="writer", by="language").by)
    assert list(found) == ["de", "fr", None]
    assert found[None].pooled == pair([row for row in rows if row["language"] is None])


@pytest.mark.parametrize("where", ["gold.csv", "run.csv"])
def test_groups_of_a_join_may_be_in_either_file(where):
    gold = [{k: row[k] for k in ("essay", "gold")} for row in ROWS]
    answers = [{k: row[k] for k in ("essay", "predicted")} for row in ROWS][::-1]
    for row, other in zip(gold, answers[::-1], strict=True):
        whole = next(x for x in ROWS if x["essay"] == row["essay"])
        (row if where == "gold.csv" else other).update(
            writer=whole["writer"], second=whole["second"]
        )
    write("gold.csv", gold)
    write("run.csv", answers)
    asked = {"gold_file": "gold.csv", "id": "essay", "groups": "writer", "second_rater": "second"}
    found = count("run.csv", **asked)
    assert found.groups == by_group(ROWS)
    assert found.second_rater == by_group(ROWS, second="second")
    assert found.match_counts == {"matched": 200, "missing": 0, "unknown": 0}


def test_groups_in_row_order():
    write("gold.csv", [{k: row[k] for k in ("gold", "writer")} for row in ROWS])
    write("run.csv", [{"predicted": row["predicted"]} for row in ROWS])
    found = count("run.csv", gold_file="gold.csv", row_order=True, groups="writer")
    assert found.groups == by_group(ROWS)


# --- missing groups ------------------------------------------------------------------------------

ALONE = [row | {"writer": None} if k in {6, 20} else row for k, row in enumerate(ROWS)]


@pytest.mark.parametrize("missing", ["error", "worst"])
def test_an_item_without_a_group_is_named_with_its_row(missing):
    said = r"2 of 200 items have no group \(row 7, row 21 of column 'writer'\).*missing='drop'"
    with pytest.raises(MissingLabels, match=said):
        count(write("some.csv", ALONE), groups="writer", missing=missing)


def test_an_item_without_a_group_can_be_dropped():
    found = count(write("some.csv", ALONE), groups="writer", missing="drop")
    rows = [row for row in ALONE if row["writer"] is not None]
    assert found.groups.pooled.items.tolist() == pair(rows).items.tolist()
    assert found.matrix.dropped == found.groups.pooled.dropped == 2


def test_items_that_all_lack_a_group_leave_nothing():
    rows = [row | {"writer": None} for row in ROWS]
    with pytest.raises(NoItems, match="no items"):
        count(write("some.csv", rows), groups="writer", missing="drop")


def test_a_group_whose_name_is_renamed_as_a_label_is_still_a_group():
    rows = [row | {"writer": "unsure"} if row["writer"] == "w1" else row for row in ALONE]
    with pytest.raises(MissingLabels, match=r"\(row 7, row 21 of"):
        count(write("some.csv", rows), groups="writer", renamed={"unsure": None})


def test_a_group_whose_items_are_all_dropped_is_no_group():
    rows = [row | {"predicted": None} if row["writer"] == "w2" else row for row in ROWS]
    found = count(write("some.csv", rows), groups="writer", by="language", missing="drop")
    lost = column("writer", ROWS).count("w2")
    assert found.groups.shape == (11,)
    assert found.matrix.dropped == found.groups.pooled.dropped == lost
    assert sum(int(batch.pooled.dropped) for _, batch in found.by) == lost
    assert all(filled(batch) <= 11 for _, batch in found.by)


def test_an_unknown_column_of_groups_is_named_with_the_closest():
    with pytest.raises(BadInput, match=r"no column 'writers'.*Did you mean 'writer'"):
        count(write("some.csv", ROWS), groups="writers")


# --- a second rater ------------------------------------------------------------------------------


def test_the_second_human_is_counted_on_the_same_items():
    found = count(write("some.csv", ROWS), second_rater="second")
    assert found.second_rater == pair(ROWS, "gold", "second")
    assert found.matrix == pair(ROWS)


def test_weights_count_for_the_second_human_too():
    found = count(write("some.csv", ROWS), second_rater="second", weights="weight", groups="writer")
    assert found.second_rater == by_group(ROWS, second="second", weights=column("weight", ROWS))


HOLES = [
    row | {{0: "gold", 1: "predicted", 2: "second"}[k % 3]: None} if k < 9 else row
    for k, row in enumerate(ROWS)
]


@pytest.mark.parametrize("groups", [None, "writer"])
def test_what_is_dropped_is_dropped_from_both_tables(groups):
    found = count(write("some.csv", HOLES), second_rater="second", groups=groups, missing="drop")
    assert found.matrix.items.tolist() == pair(ROWS[9:]).items.tolist()
    human = found.second_rater if groups is None else found.second_rater.pooled
    assert human.items.tolist() == pair(ROWS[9:], "gold", "second").items.tolist()
    assert found.matrix.dropped == human.dropped == 9


@pytest.mark.parametrize("missing", ["error", "worst"])
def test_a_missing_second_label_is_counted_and_placed(missing):
    rows = [row | {"second": None} if k in {4, 8} else row for k, row in enumerate(ROWS)]
    said = r"2 of 200 labels of the second rater are missing \(row 5, row 9\).*missing='drop'"
    with pytest.raises(MissingLabels, match=said):
        count(write("some.csv", rows), second_rater="second", missing=missing)


def test_a_missing_prediction_that_counts_as_wrong_is_an_item_of_the_humans_too():
    rows = [row | {"predicted": None} if k < 3 else row for k, row in enumerate(ROWS)]
    found = count(write("some.csv", rows), second_rater="second", missing="worst")
    assert found.second_rater == pair(ROWS, "gold", "second")
    assert found.matrix.unanswered.sum() == 3


def test_a_strange_second_label_is_named_with_its_row_and_column():
    rows = [row | {"second": "B3"} if k == 16 else row for k, row in enumerate(ROWS)]
    write("some.csv", rows)
    for scale in ("cefr", None):
        with pytest.raises(OffScale, match=r"'B3' \(row 17 of column 'second'\)"):
            count("some.csv", second_rater="second", scale=scale)


def test_second_labels_are_renamed_like_all_others():
    rows = [row | {"second": row["second"].lower()} for row in ROWS]
    renamed = {level.lower(): level for level in CEFR}
    found = count(write("some.csv", rows), second_rater="second", renamed=renamed)
    assert found.second_rater == pair(ROWS, "gold", "second")


def test_a_second_label_that_is_renamed_to_nothing_is_missing():
    rows = [row | {"second": "unsure"} if k == 2 else row for k, row in enumerate(ROWS)]
    with pytest.raises(
        MissingLabels, match=r"1 of 200 labels of the second rater are missing \(row 3\)"
    ):
        count(write("some.csv", rows), second_rater="second", renamed={"unsure": None})
