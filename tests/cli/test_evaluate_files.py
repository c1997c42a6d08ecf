"""`ordinate evaluate`: names of files and columns, guessed columns, and files that are joined."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from evaluate_reports import (
    CELLS,
    COMPLETE,
    GOLD,
    JOINED,
    PAIRS,
    RUN,
    filled,
    read_items,
    report,
    text,
    write,
)
from row_files import to_csv, to_jsonl, to_parquet

pytestmark = pytest.mark.usefixtures("here")

# --- names ---------------------------------------------------------------------------------------

COLUMNS = [
    "with space",
    'double " quote',
    "single ' quote",
    "comma, and; more|",
    'x"; DROP TABLE items; --',
    "x'); SELECT 1; --",
    "new\nline",
    "Größe ≤ 3",
    "select",
    "1",
    "__gold",
    "__predicted",
    "__id",
    "{x}",
    "\\",
    "a.b",
    "*",
]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_name_is_never_sql(here, column):
    other = "other" if column != "other" else "another"
    rows = [{column: g, other: p} for g, p in CELLS]
    (here / "some.csv").write_bytes(to_csv(rows))
    (here / "some.jsonl").write_bytes(to_jsonl(rows))
    (here / "some.parquet").write_bytes(to_parquet(rows))
    for name in ("some.csv", "some.jsonl", "some.parquet"):
        found = report(name, "--gold", column, "--predicted", other)
        assert filled(found) == CELLS
        assert found["source"]["gold"] == column


@pytest.mark.parametrize("column", COLUMNS)
def test_names_of_further_columns_are_never_sql(here, column):
    rows = [{"id": k, "gold": g, "predicted": p, column: 2} for k, (g, p) in enumerate(CELLS)]
    (here / "some.csv").write_bytes(to_csv(rows))
    found = report("some.csv", "--weights", column, "--by", column, "--items", "wrong.csv")
    assert (found["weight"], list(found["by"])) == (6, ["2"])
    (here / "gold.csv").write_bytes(
        to_csv([{column: row["id"], "level": row["gold"]} for row in rows])
    )
    (here / "run.csv").write_bytes(
        to_csv([{column: row["id"], "answer": row["predicted"]} for row in rows])
    )
    named = ("--gold", "level", "--predicted", "answer", "--id", column)
    joined = report("run.csv", "--gold-file", "gold.csv", *named)
    assert filled(joined) == CELLS


def test_columns_that_differ_in_case_are_told_apart_or_refused(here):
    rows = [{"Gold": "C2", "gold": g, "predicted": p} for g, p in CELLS]
    (here / "some.csv").write_bytes(to_csv(rows))
    (here / "some.jsonl").write_bytes(to_jsonl(rows))
    (here / "some.parquet").write_bytes(to_parquet(rows))
    for name in ("some.csv", "some.jsonl", "some.parquet"):
        ran = run("evaluate", name, "--gold", "gold", "--format", "json")
        if ran.code == 0:
            assert filled(json.loads(ran.out)) == CELLS
        else:
            assert ran.code == 2
            assert "case" in ran.err


FILES = [
    "with space.csv",
    "single'quote.csv",
    'double"quote.csv',
    "star*.csv",
    "question?.csv",
    "bracket[1].csv",
    "[.csv",
    "{a,b}.csv",
    "~tilde.csv",
    "semi;colon.csv",
    "Größe.csv",
    "new\nline.csv",
    "%41.csv",
    "$HOME.csv",
    "back\\slash.csv",
    "two.parts.csv",
    ".hidden.csv",
]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_found_by_its_name_whatever_is_in_it(name):
    write("starling.csv", "gold,predicted\nC2,C2\n")  # what a pattern might take instead
    found = report(write(name, PAIRS))
    assert (filled(found), found["source"]["files"]) == (CELLS, [name])


@pytest.mark.parametrize("name", FILES)
def test_gold_and_items_files_may_have_such_names_too(name):
    write(name, "id,gold\n1,A1\n2,B1\n")
    write("run.csv", "id,predicted\n2,B2\n1,A1\n")
    wrong = f"wrong {name}"
    found = report("run.csv", "--gold-file", name, "--id", "id", "--items", wrong)
    assert filled(found) == {("A1", "A1"): 1, ("B1", "B2"): 1}
    assert [row["id"] for row in read_items(wrong)] == ["2"]


def test_a_folder_may_have_such_a_name_too(here):
    folder = here / "runs [old]*"
    folder.mkdir()
    (folder / "a.csv").write_text(PAIRS)
    assert filled(report("runs [old]*/a.csv")) == CELLS


def test_several_files_and_patterns_are_counted_together():
    write("a1.csv", PAIRS)
    write("a2.csv", "extra,predicted,gold\nx,A2,A1\n")  # columns go by name, not by place
    write("b.jsonl", '{"gold":"A1","predicted":"A1"}\n')
    found = report("a?.csv", "b.jsonl")
    assert filled(found) == CELLS | {("A1", "A1"): 2, ("A1", "A2"): 1}
    assert found["source"]["files"] == ["a1.csv", "a2.csv", "b.jsonl"]


def test_files_counted_together_are_the_sum_of_the_files_alone(here):
    parts = [COMPLETE[:20], COMPLETE[20:21], COMPLETE[21:]]
    for number, rows in enumerate(parts):
        (here / f"part{number}.csv").write_bytes(to_csv(rows))
    named = ("--gold", "level", "--predicted", "answer")
    tables = [np.array(report(f"part{k}.csv", *named)["confusion_matrix"]) for k in range(3)]
    assert report("part*.csv", *named)["confusion_matrix"] == sum(tables).tolist()


# --- guessing ------------------------------------------------------------------------------------


def test_guessed_columns_and_scale_are_named_in_the_report():
    write("some.csv", "id,Y_True,prediction\n1,A1,A2\n")
    shown = text("some.csv")
    assert "The gold column was not named; 'Y_True' was taken." in shown
    assert "The predicted column was not named; 'prediction' was taken." in shown
    assert "preset 'cefr'" in shown
    notes = " ".join(report("some.csv")["source"]["notes"])
    assert "'Y_True'" in notes
    assert "'prediction'" in notes


def test_nothing_is_said_of_guesses_where_everything_was_declared():
    write("some.csv", PAIRS)
    found = report("some.csv", "--gold", "gold", "--predicted", "predicted", "--scale", "cefr")
    assert found["source"]["notes"] == []


def test_a_named_column_wins_over_usual_names():
    write("some.csv", "gold,y_true,predicted\nA1,C2,A1\n")
    assert filled(report("some.csv", "--gold", "y_true")) == {("C2", "A1"): 1}


# --- two files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_files_are_joined_by_id_and_the_report_counts_the_ids(missing):
    arguments = (write("run.csv", RUN), "--gold-file", write("gold.csv", GOLD), "--id", "id")
    found = report(*arguments, "--missing", missing)
    assert filled(found) == JOINED
    assert found["source"]["match_counts"] == {"matched": 3, "missing": 1, "unknown": 1}
    assert found["source"]["files"] == ["gold.csv", "run.csv"]
    assert found["dropped"] == (1 if missing == "drop" else 0)
    assert found["unanswered"] == [0, 0, 0, 0, 0, 0 if missing == "drop" else 1]
    said = "3 matched, 1 gold levels without a prediction, 1 predictions unknown to the gold levels"
    assert said in text(*arguments, "--missing", missing)


def test_the_order_of_rows_does_not_matter_to_a_join():
    write("gold.csv", GOLD)
    lines = ["1,A1", "2,B2", "3,C1", "4,A1"]
    tables = []
    for shift in range(4):
        write("run.csv", "\n".join(["id,predicted", *lines[shift:], *lines[:shift], ""]))
        tables.append(
            report("run.csv", "--gold-file", "gold.csv", "--id", "id")["confusion_matrix"]
        )
    assert tables == [tables[0]] * 4


def test_row_order_is_used_only_when_asked_and_is_then_said():
    write("gold.csv", "id,gold\n1,A1\n2,B1\n")
    write("run.csv", "id,predicted\n2,A2\n1,B2\n")
    by_order = ("run.csv", "--gold-file", "gold.csv", "--row-order")
    assert filled(report(*by_order)) == {("A1", "A2"): 1, ("B1", "B2"): 1}
    assert "row order" in text(*by_order)
    by_id = report("run.csv", "--gold-file", "gold.csv", "--id", "id")
    assert filled(by_id) == {("A1", "B2"): 1, ("B1", "A2"): 1}


def test_empty_lines_of_a_file_with_one_column_keep_their_place_in_row_order():
    write("gold.csv", "gold\nA1\n\nB1\nC1\n")
    write("run.csv", "predicted\nA1\nA2\n\nC1\n")
    asked = ("run.csv", "--gold-file", "gold.csv", "--row-order", "--missing", "drop")
    found = report(*asked)
    assert (filled(found), found["dropped"]) == ({("A1", "A1"): 1, ("C1", "C1"): 1}, 2)


def test_predictions_in_several_files_are_joined_as_one():
    write("gold.csv", "id,gold\n1,A1\n2,B1\n3,C1\n")
    write("run1.csv", "id,predicted\n3,C1\n")
    write("run2.jsonl", '{"id":1,"predicted":"A2"}\n{"id":2,"predicted":"B1"}\n')
    found = report("run*", "--gold-file", "gold.csv", "--id", "id")
    assert filled(found) == JOINED


def test_a_pattern_for_gold_never_turns_gold_files_into_predictions():
    write("gold1.csv", "id,level\n1,A1\n")
    write("gold2.csv", "id,level\n2,B1\n")
    write("run.csv", "id,level\n1,A1\n2,B2\n")
    named = ("--gold", "level", "--predicted", "level", "--id", "id", "--missing", "drop")
    ran = run("evaluate", "run.csv", "--gold-file", "gold?.csv", *named, "--format", "json")
    if ran.code == 0:
        assert filled(json.loads(ran.out)) == {("A1", "A1"): 1, ("B1", "B2"): 1}
    else:
        assert ran.code == 2
        assert "gold?.csv" in ran.err


IDS = {
    "whole numbers": ["1", "2"],
    "leading zeros": ["01", "1"],
    "dates": ["2020-01-01", "2020-01-02"],
    "timestamps": ["2020-01-01T10:00:00", "2020-01-01T10:00:01"],
    "times": ["10:30", "10:31"],
    "uuids": ["2F9B4E9C-1111-4222-8333-ABCDEFABCDEF", "2f9b4e9c-1111-4222-8333-abcdefabcdef"],
    "decimals": ["1.10", "1.1"],
    "booleans": ["true", "True"],
    "exponents": ["1e5", "100000"],
    "spaces": [" a", "a"],
    "nulls": ["null", "NULL"],
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_texts_in_every_format(here, kind):
    first, second = IDS[kind]
    gold = [{"id": first, "gold": "A1"}, {"id": second, "gold": "C1"}]
    answers = [{"id": second, "predicted": "C1"}, {"id": first, "predicted": "A2"}]
    (here / "gold.csv").write_bytes(to_csv(gold))
    (here / "run.csv").write_bytes(to_csv(answers))
    (here / "run.jsonl").write_bytes(to_jsonl(answers))
    (here / "run.parquet").write_bytes(to_parquet(answers))
    for name in ("run.csv", "run.jsonl", "run.parquet"):
        found = report(name, "--gold-file", "gold.csv", "--id", "id")
        assert filled(found) == {("A1", "A2"): 1, ("C1", "C1"): 1}, name


def test_whole_numbers_as_ids_match_their_text():
    write("gold.csv", "id,gold\n1,A1\n2,C1\n")
    write("run.jsonl", '{"id":2,"predicted":"C1"}\n{"id":1,"predicted":"A2"}\n')
    table = {"id": pa.array([2, 1], pa.int64()), "predicted": ["C1", "A2"]}
    pq.write_table(pa.table(table), "run.parquet")
    for name in ("run.jsonl", "run.parquet"):
        found = report(name, "--gold-file", "gold.csv", "--id", "id")
        assert filled(found) == {("A1", "A2"): 1, ("C1", "C1"): 1}


def test_weights_and_groups_come_from_either_file():
    write("gold.csv", "id,gold,language\n1,A1,de\n2,B1,fr\n3,C1,de\n")
    write("run.csv", "id,predicted,weight\n3,C1,0.5\n1,A2,2\n2,B1,4\n")
    asked = ("--gold-file", "gold.csv", "--id", "id", "--weights", "weight", "--by", "language")
    found = report("run.csv", *asked)
    assert filled(found) == {("A1", "A2"): 2, ("B1", "B1"): 4, ("C1", "C1"): 0.5}
    assert {group: part["weight"] for group, part in found["by"].items()} == {"de": 2.5, "fr": 4}


@pytest.mark.parametrize("line", ["9,ZZ,1", "9,A1,x", "9,A1,-1", "9,,"])
def test_what_an_unknown_item_says_stops_nothing(line):
    write("gold.csv", "id,gold\n1,A1\n2,B1\n")
    write("run.csv", f"id,predicted,weight\n1,A1,1\n2,B2,1\n{line}\n")
    found = report("run.csv", "--gold-file", "gold.csv", "--id", "id", "--weights", "weight")
    assert filled(found) == {("A1", "A1"): 1, ("B1", "B2"): 1}
    assert found["source"]["match_counts"]["unknown"] == 1


# --- what names lead to --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run\udcff.csv", "fo\udcfflder/run.csv", "run.fifo"])
def test_files_are_read_whatever_their_names_and_from_pipes(name):
    Path(name).parent.mkdir(exist_ok=True)
    write("gold.csv", GOLD)
    feeding = threading.Thread(target=write, args=(name, RUN))
    if name.endswith("fifo"):
        os.mkfifo(name)
    feeding.start()
    found = report(name, "--gold-file", "gold.csv", "--id", "id", "--missing", "drop")
    feeding.join()
    assert filled(found) == JOINED
    named = found["source"]["files"][1]
    assert named == name.replace("\udcff", "\\xff")


@pytest.mark.parametrize(
    "line",
    ["evaluate a", "evaluate-regression a", "compare a", "tune-regression a --target x -e b"],
)
def test_links_in_a_loop_end_in_one_line(line):
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    ran = run(*line.split())
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "a cannot be read: Too many levels of symbolic links" in ran.err
