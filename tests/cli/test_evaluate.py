"""`ordinate evaluate`: whatever the file, the table is that of Python; nothing is half written."""

import codecs
import csv
import gzip
import io
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import Ran, run
from hypothesis import given, settings
from hypothesis import strategies as st

import ordinate
from ordinate.metrics import find_metric, list_metrics
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
COMMAND = [sys.executable, "-m", "ordinate.cli"]
PATIENCE = 60  # seconds after which a child counts as hung


def report(*arguments) -> dict:
    """Return the JSON of an evaluation that must succeed."""
    ran = run("evaluate", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def text(*arguments) -> str:
    """Return the words of a text report, whatever its line breaks."""
    ran = run("evaluate", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return " ".join(ran.out.split())


def filled(result: dict) -> dict[tuple[str, str], float]:
    """Return the cells of a table that are not 0, by gold and predicted label."""
    scale = [str(label) for label in result["scale"]]
    cells = np.array(result["confusion_matrix"])
    return {(scale[i], scale[j]): cells[i, j].item() for i, j in np.argwhere(cells).tolist()}


def facts(result: dict) -> dict:
    """Return what depends neither on where the labels came from nor on other subgroups."""
    kept = {
        key: value for key, value in result.items() if key not in {"source", "difference_from_rest"}
    }
    return kept | {"by": {group: facts(part) for group, part in result["by"].items()}}


def close(one, two) -> bool:
    """Tell whether two documents agree, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(close(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(close, one, two))
    if isinstance(one, float) or isinstance(two, float):
        return None not in {one, two} and one == pytest.approx(two, rel=1e-12, abs=1e-12)
    return one == two


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """Work in an empty folder, so that files are called by their names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(name: str, content: "str | bytes", encoding: str = "utf-8") -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return name


PAIRS = "gold,predicted\nA1,A1\nB1,B2\nC1,B2\n"
CELLS = {("A1", "A1"): 1, ("B1", "B2"): 1, ("C1", "B2"): 1}

# --- the same data in every format ---------------------------------------------------------------


def _rows(seed: int = 3, n: int = 60) -> list[dict]:
    """Return items of which some lack a label or a group."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        gold, off = rng.integers(0, 6), rng.integers(-1, 2)
        rows.append(
            {
                "essay": f"e{number}",
                "level": CEFR[gold] if number % 17 else None,
                "answer": CEFR[np.clip(gold + off, 0, 5)] if number % 11 else None,
                "weight": float(rng.integers(0, 9)) / 4,
                "language": ("de", "fr", None)[rng.integers(0, 3)],
                "text": 'a, "b"\nc; d\te|f',
            }
        )
    return rows


ROWS = _rows()
GOLDEN = [row for row in ROWS if row["level"] is not None]
WHOLE = [row for row in GOLDEN if row["answer"] is not None]


def _delimited(rows: list[dict], **style) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), **{"lineterminator": "\n"} | style)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _lines(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _parquet(rows: list[dict]) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue().to_pybytes()


def _dictionary_parquet(rows: list[dict]) -> bytes:
    table = pa.Table.from_pylist(rows)
    for name in ("level", "answer", "language"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].dictionary_encode())
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return out.getvalue().to_pybytes()


FORMS = {
    "data.csv": _delimited,
    "windows.csv": lambda rows: _delimited(rows, lineterminator="\r\n"),
    "all-quoted.csv": lambda rows: _delimited(rows, quoting=csv.QUOTE_ALL),
    "semicolon.csv": lambda rows: _delimited(rows, delimiter=";"),
    "marked.csv": lambda rows: codecs.BOM_UTF8 + _delimited(rows),
    "utf16.csv": lambda rows: _delimited(rows).decode().encode("utf-16"),
    "big-endian.csv": lambda r: codecs.BOM_UTF16_BE + _delimited(r).decode().encode("utf-16-be"),
    "data.tsv": lambda rows: _delimited(rows, delimiter="\t"),
    "data.jsonl": _lines,
    "data.json": lambda rows: json.dumps(rows).encode(),
    "data.parquet": _parquet,
    "dictionary.parquet": _dictionary_parquet,
    "data.csv.gz": lambda rows: gzip.compress(_delimited(rows)),
    "utf16.csv.gz": lambda rows: gzip.compress(_delimited(rows).decode().encode("utf-16")),
    "data.tsv.gz": lambda rows: gzip.compress(_delimited(rows, delimiter="\t")),
    "data.jsonl.gz": lambda rows: gzip.compress(_lines(rows)),
    "csv-without-suffix": _delimited,
    "jsonl-without-suffix": _lines,
    "parquet-without-suffix": _parquet,
    "gzip-without-suffix": lambda rows: gzip.compress(_lines(rows)),
    "UPPER.CSV": _delimited,
}
ASKED = {
    "plain": (WHOLE, {}),
    "weights": (WHOLE, {"weights": "weight"}),
    "by": (WHOLE, {"by": "language"}),
    "drop": (ROWS, {"missing": "drop"}),
    "worst": (GOLDEN, {"missing": "worst"}),
    "all at once": (GOLDEN, {"weights": "weight", "by": "language", "missing": "worst"}),
}


def _in_python(rows: list[dict], weights=None, by=None, missing="error") -> ordinate.Evaluation:
    def column(name):
        return None if name is None else [row[name] for row in rows]

    return ordinate.evaluate(
        column("level"),
        column("answer"),
        "cefr",
        weights=column(weights),
        by=column(by),
        missing=missing,
    )


COMMON = ("data.csv", "data.tsv", "data.jsonl", "data.parquet", "data.csv.gz")
CASES = [(form, asked) for form in COMMON for asked in ASKED]
CASES += [(form, "all at once") for form in FORMS if form not in COMMON]


@pytest.mark.parametrize(("form", "asked"), CASES)
def test_every_format_gives_what_python_gives(here, form, asked):
    rows, options = ASKED[asked]
    (here / form).write_bytes(FORMS[form](rows))
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    found = report(form, "--gold", "level", "--predicted", "answer", "--scale", "cefr", *flags)
    assert close(facts(found), facts(_in_python(rows, **options).to_dict()))


NUMBERS = [(1, 1.0), (2, 3.0), (3, None), (5, 4.0), (2, 2.0)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ints.csv", "gold,predicted\n1,1\n2,3\n3,\n5,4\n2,2\n"),
        ("floats.csv", "gold,predicted\n1.0,1.0\n2.0,3\n3.0,\n5.0,4.0\n2,2.00\n"),
        (
            "mixed.jsonl",
            (
                '{"gold":1,"predicted":1.0}\n{"gold":2,"predicted":3}\n{"gold":3,"predicted":null}\n'
                '{"gold":5,"predicted":4}\n{"gold":2,"predicted":2.0}\n'
            ),
        ),
    ],
)
def test_spellings_of_a_number_are_one_label_in_text_files(name, content):
    found = report(write(name, content), "--scale", "1..5", "--missing", "worst")
    gold, predicted = zip(*NUMBERS, strict=True)
    expected = ordinate.evaluate(gold, predicted, "1..5", missing="worst")
    assert close(facts(found), facts(expected.to_dict()))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float64()])
def test_spellings_of_a_number_are_one_label_in_parquet(kind):
    gold, predicted = zip(*NUMBERS, strict=True)
    columns = {"gold": pa.array(gold, kind), "predicted": pa.array(predicted, pa.float64())}
    pq.write_table(pa.table(columns), "numbers.parquet")
    found = report("numbers.parquet", "--scale", "1..5", "--missing", "worst")
    expected = ordinate.evaluate(gold, predicted, "1..5", missing="worst")
    assert close(facts(found), facts(expected.to_dict()))


def test_a_nan_in_a_column_of_numbers_is_a_missing_label():
    columns = {"gold": [1.0, 2.0, float("nan")], "predicted": [1.0, float("nan"), 2.0]}
    pq.write_table(pa.table(columns), "numbers.parquet")
    found = report("numbers.parquet", "--scale", "1..3", "--missing", "drop")
    assert (found["n"], found["dropped"]) == (1, 2)


def test_the_texts_na_null_and_none_are_labels():
    words = "NA,NULL,null,None,N/A"
    write("words.csv", "gold,predicted\n" + "".join(f"{w},NA\n" for w in words.split(",")))
    found = report("words.csv", "--scale", words)
    assert filled(found) == {(word, "NA"): 1 for word in words.split(",")}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cells.csv", 'gold,predicted\nA1,A1\n"",A1\nA1,""\n,A1\n'),
        (
            "cells.jsonl",
            (
                '{"gold":"A1","predicted":"A1"}\n{"predicted":"A1"}\n{"gold":"A1","predicted":null}\n'
                '{"gold":"","predicted":"A1"}\n'
            ),
        ),
    ],
)
def test_empty_cells_nulls_and_absent_keys_are_missing_labels(name, content):
    found = report(write(name, content), "--scale", "cefr", "--missing", "drop")
    assert (filled(found), found["dropped"]) == ({("A1", "A1"): 1}, 3)


def test_one_jsonl_column_may_hold_numbers_and_texts():
    lines = [("low", 1), (1, "low"), (2, 2)]
    write("m.jsonl", "".join(json.dumps({"gold": g, "predicted": p}) + "\n" for g, p in lines))
    found = report("m.jsonl", "--scale", "low,1,2")
    assert filled(found) == {("low", "1"): 1, ("1", "low"): 1, ("2", "2"): 1}


def test_a_key_may_appear_late_in_a_jsonl_file():
    line = '{"gold":"A1","predicted":"A2"}\n'
    write("late.jsonl", line * 25_000 + '{"gold":"A1","predicted":"A2","note":"x"}\n')
    assert filled(report("late.jsonl")) == {("A1", "A2"): 25_001}


def test_a_label_may_turn_from_number_to_text_late_in_a_jsonl_file():
    line = '{"gold":1,"predicted":2}\n'
    write("late.jsonl", line * 25_000 + '{"gold":"none","predicted":2}\n')
    found = report("late.jsonl", "--scale", "none,1,2")
    assert filled(found) == {("1", "2"): 25_000, ("none", "2"): 1}


def test_texts_of_a_jsonl_file_that_look_like_times_stay_texts():
    write("times.jsonl", '{"gold":"10:30","predicted":"11:30"}\n')
    assert filled(report("times.jsonl", "--scale", "10:30,11:30")) == {("10:30", "11:30"): 1}


# --- how text files are written ------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_inside_quotes_are_no_rows(end, inner):
    lines = [
        "note,gold,predicted,more",
        f'"x{inner}y",A1,A1,"z{inner}"',
        'a,B1,B2,"say ""no"", b"',
        '"""",C1,B2,',
    ]
    write("lines.csv", end.join([*lines, ""]))
    assert filled(report("lines.csv")) == CELLS


@pytest.mark.parametrize("last", ["", "\n", "\n\n"])
def test_the_last_line_may_have_no_end_or_several(last):
    assert filled(report(write("end.csv", PAIRS.rstrip() + last))) == CELLS


def test_a_quote_inside_an_unquoted_field_is_a_letter():
    write("inch.csv", 'note,gold,predicted\n5" disk,A1,A1\nsay "a",B1,B2\n6",C1,B2\n')
    assert filled(report("inch.csv")) == CELLS


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_in_the_header_line(delimiter):
    assert filled(report(write("some.csv", PAIRS.replace(",", delimiter)))) == CELLS


def test_a_quoted_header_does_not_mislead_the_search_for_the_delimiter():
    write("some.csv", '"a;b;c;d",gold,predicted\n1,A1,A1\n2,B1,B2\n3,C1,B2\n')
    assert filled(report("some.csv")) == CELLS


@pytest.mark.parametrize(
    ("delimiter", "named"), [("~", "~"), ("\t", "\\t"), ("\t", "tab"), (":", ":"), ("'", "'")]
)
def test_any_character_can_be_named_as_delimiter(delimiter, named):
    write("some.txt", PAIRS.replace(",", delimiter))
    assert filled(report("some.txt", "--delimiter", named)) == CELLS


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-8", "shift-jis"])
def test_an_encoding_can_be_named(encoding):
    word = "ソ" if encoding == "shift-jis" else "é"  # the bytes of ソ contain a backslash
    write("some.csv", f"gold,predicted\n{word},b\nb,{word}\n", encoding)
    found = report("some.csv", "--scale", f"{word},b", "--encoding", encoding)
    assert filled(found) == {(word, "b"): 1, ("b", word): 1}


def test_a_header_may_be_longer_than_a_buffer():
    others = [f"column_{k}" for k in range(9000)]
    write("wide.csv", ",".join([*others, "gold", "predicted"]) + "\n" + "x," * 9000 + "A1,A2\n")
    assert filled(report("wide.csv")) == {("A1", "A2"): 1}


def test_the_column_that_pandas_writes_for_its_index_has_no_name_and_does_no_harm():
    write("frame.csv", ",gold,predicted\n0,A1,A1\n1,B1,B2\n2,C1,B2\n")
    assert filled(report("frame.csv")) == CELLS


def test_a_delimiter_at_the_end_of_every_line_does_no_harm():
    write("some.csv", "gold,predicted,\nA1,A1,\nB1,B2,\nC1,B2,\n")
    assert filled(report("some.csv")) == CELLS


def test_mixed_line_ends_are_read_or_named_as_the_problem():
    write("mixed.csv", "gold,predicted\r\nA1,A1\nB1,B2\r\nC1,B2\n")
    ran = run("evaluate", "mixed.csv", "--format", "json")
    if ran.code == 0:
        assert filled(json.loads(ran.out)) == CELLS
    else:
        assert ran.code == 2
        assert "line end" in ran.err


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
    (here / "some.csv").write_bytes(_delimited(rows))
    (here / "some.jsonl").write_bytes(_lines(rows))
    (here / "some.parquet").write_bytes(_parquet(rows))
    for name in ("some.csv", "some.jsonl", "some.parquet"):
        found = report(name, "--gold", column, "--predicted", other)
        assert filled(found) == CELLS
        assert found["source"]["gold"] == column


@pytest.mark.parametrize("column", COLUMNS)
def test_names_of_further_columns_are_never_sql(here, column):
    rows = [{"id": k, "gold": g, "predicted": p, column: 2} for k, (g, p) in enumerate(CELLS)]
    (here / "some.csv").write_bytes(_delimited(rows))
    found = report("some.csv", "--weights", column, "--by", column, "--items", "wrong.csv")
    assert (found["weight"], list(found["by"])) == (6, ["2"])
    (here / "gold.csv").write_bytes(
        _delimited([{column: row["id"], "level": row["gold"]} for row in rows])
    )
    (here / "run.csv").write_bytes(
        _delimited([{column: row["id"], "answer": row["predicted"]} for row in rows])
    )
    named = ("--gold", "level", "--predicted", "answer", "--id", column)
    joined = report("run.csv", "--gold-file", "gold.csv", *named)
    assert filled(joined) == CELLS


def test_columns_that_differ_in_case_are_told_apart_or_refused(here):
    rows = [{"Gold": "C2", "gold": g, "predicted": p} for g, p in CELLS]
    (here / "some.csv").write_bytes(_delimited(rows))
    (here / "some.jsonl").write_bytes(_lines(rows))
    (here / "some.parquet").write_bytes(_parquet(rows))
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
    assert [row["id"] for row in items(wrong)] == ["2"]


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
    parts = [WHOLE[:20], WHOLE[20:21], WHOLE[21:]]
    for number, rows in enumerate(parts):
        (here / f"part{number}.csv").write_bytes(_delimited(rows))
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

GOLD = "id,gold\n1,A1\n2,B1\n3,C1\n4,C2\n"
RUN = "predicted,id\nC1,3\nA2,1\nB1,9\nB1,2\n"
JOINED = {("A1", "A2"): 1, ("B1", "B1"): 1, ("C1", "C1"): 1}


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_files_are_joined_by_id_and_the_report_counts_the_ids(missing):
    arguments = (write("run.csv", RUN), "--gold-file", write("gold.csv", GOLD), "--id", "id")
    found = report(*arguments, "--missing", missing)
    assert filled(found) == JOINED
    assert found["source"]["joined"] == {"matched": 3, "missing": 1, "unknown": 1}
    assert found["source"]["files"] == ["gold.csv", "run.csv"]
    assert found["dropped"] == (1 if missing == "drop" else 0)
    assert found["unanswered"] == [0, 0, 0, 0, 0, 0 if missing == "drop" else 1]
    said = "3 matched, 1 gold without a prediction, 1 predictions unknown to gold"
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
    (here / "gold.csv").write_bytes(_delimited(gold))
    (here / "run.csv").write_bytes(_delimited(answers))
    (here / "run.jsonl").write_bytes(_lines(answers))
    (here / "run.parquet").write_bytes(_parquet(answers))
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
    assert found["source"]["joined"]["unknown"] == 1


# --- the items that disagree ---------------------------------------------------------------------

NOTED = 'id,gold,predicted,note\n1,A1,A1,x\n2,B1,B2,"a, ""b""\nc"\n3,C1,A1,é\n4,C2,B2,-5\n'
WRONG = [
    {"id": "2", "gold": "B1", "predicted": "B2", "note": 'a, "b"\nc', "steps_off": 1},
    {"id": "3", "gold": "C1", "predicted": "A1", "note": "é", "steps_off": -4},
    {"id": "4", "gold": "C2", "predicted": "B2", "note": "-5", "steps_off": -2},
]


def items(name: str) -> list[dict]:
    """Read a file of items."""
    if name.endswith(".parquet"):
        return pq.read_table(name).to_pylist()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]
    with Path(name).open(encoding="utf-8", newline="") as file:
        return [row | {"steps_off": _number(row["steps_off"])} for row in csv.DictReader(file)]


def _number(cell: str) -> int | None:
    return int(cell) if cell else None


@pytest.mark.parametrize("name", ["wrong.csv", "wrong.jsonl", "wrong.parquet"])
def test_items_are_the_rows_that_disagree_with_all_their_columns(name):
    found = report(write("some.csv", NOTED), "--items", name)
    assert items(name) == WRONG
    assert len(items(name)) == sum(n for (gold, said), n in filled(found).items() if gold != said)


def test_without_disagreement_items_are_a_header():
    report(write("some.csv", "gold,predicted\nA1,A1\n"), "--items", "wrong.csv")
    assert Path("wrong.csv").read_text() == "gold,predicted,steps_off\n"


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_an_item_without_a_prediction_disagrees_and_one_without_gold_does_not(missing):
    lines = ["1,A1,A1", "2,B1,", *([",,A1"] if missing == "drop" else [])]
    write("some.csv", "\n".join(["id,gold,predicted", *lines, ""]))
    report("some.csv", "--scale", "cefr", "--missing", missing, "--items", "wrong.csv")
    assert items("wrong.csv") == [{"id": "2", "gold": "B1", "predicted": "", "steps_off": None}]


def test_items_of_several_files_keep_the_columns_of_each():
    write("a.csv", "gold,predicted,x\nA1,A2,1\n")
    write("b.csv", "y,predicted,gold\n7,A1,B1\n")
    report("a.csv", "b.csv", "--items", "wrong.jsonl")
    kept = [{k: v for k, v in row.items() if v is not None} for row in items("wrong.jsonl")]
    assert kept == [
        {"gold": "A1", "predicted": "A2", "x": "1", "steps_off": 1},
        {"gold": "B1", "predicted": "A1", "y": "7", "steps_off": -2},
    ]


@pytest.mark.parametrize("key", ["id", "gold", "predicted", "steps_off"])
def test_items_of_a_join_have_the_id_and_both_labels(key):
    write("gold.csv", f"{key},level\n1,A1\n2,B1\n")
    write("run.csv", f"{key},answer\n2,B2\n1,A1\n")
    named = ("--id", key, "--gold", "level", "--predicted", "answer")
    report("run.csv", "--gold-file", "gold.csv", *named, "--items", "wrong.jsonl")
    (row,) = items("wrong.jsonl")
    assert sorted(map(str, row.values())) == ["1", "2", "B1", "B2"]
    assert row[key] == "2"


def test_items_keep_a_column_that_is_called_like_their_own():
    write("some.csv", "steps_off,gold,predicted\nkept,A1,A2\n")
    report("some.csv", "--items", "wrong.jsonl")
    (row,) = items("wrong.jsonl")
    assert sorted(map(str, row.values())) == ["1", "A1", "A2", "kept"]


def test_items_of_numbers_in_other_spellings_agree():
    write("some.csv", "gold,predicted\n1,1.0\n2.0,2\n2,3.0\n")
    report("some.csv", "--scale", "1..3", "--items", "wrong.csv")
    assert items("wrong.csv") == [{"gold": "2", "predicted": "3.0", "steps_off": 1}]


FORMULAS = ["=cmd()", "+1+cmd()", "-1+cmd()", "@sum(1)", "\t=1"]


def _cells_of_items(row: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return header and first row of the items, as a spreadsheet gets them."""
    given = {"gold": "A1", "predicted": "A2"} | row
    Path("some.csv").write_bytes(_delimited([given], quoting=csv.QUOTE_ALL))
    report("some.csv", "--items", "wrong.csv")
    with Path("wrong.csv").open(encoding="utf-8", newline="") as file:
        header, cells = csv.reader(file)
    return header, cells


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_of_an_items_csv_is_a_formula(formula):
    _, cells = _cells_of_items({"note": formula})
    assert not cells[2].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert cells[2].endswith(formula)


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_column_name_of_an_items_csv_is_a_formula(formula):
    header, _ = _cells_of_items({formula: "x"})
    assert not header[2].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert header[2].endswith(formula)


# --- renaming ------------------------------------------------------------------------------------

SPELT = "gold,predicted\nb1,B1\nB1,b2\nintermediate,B2\n"
MAPS = {
    "map.json": '{"b1": "B1", "b2": "B2", "intermediate": "B1"}',
    "marked.json": '\ufeff{"b1": "B1", "b2": "B2", "intermediate": "B1"}',
    "map.csv": "from,to\nb1,B1\nb2,B2\nintermediate,B1\n",
    "windows.csv": '\ufefffrom,to\r\n"b1",B1\r\nb2,B2\r\nintermediate,"B1"\r\n',
}


@pytest.mark.parametrize("name", MAPS)
def test_labels_are_renamed_before_the_scale_sees_them(name):
    write("some.csv", SPELT)
    found = report("some.csv", "--map", write(name, MAPS[name]), "--items", "wrong.csv")
    assert filled(found) == {("B1", "B1"): 1, ("B1", "B2"): 2}
    assert found["scale"] == list(CEFR)  # the preset is looked for among the new names
    assert items("wrong.csv") == [
        {"gold": "B1", "predicted": "b2", "steps_off": 1},
        {"gold": "intermediate", "predicted": "B2", "steps_off": 1},
    ]


def test_labels_can_change_places():
    write("some.csv", "gold,predicted\nA1,A1\nA1,A2\nA2,A2\nA2,B1\n")
    write("map.csv", "from,to\nA1,A2\nA2,A1\n")
    found = report("some.csv", "--map", "map.csv", "--items", "wrong.csv")
    assert filled(found) == {
        ("A2", "A2"): 1,
        ("A2", "A1"): 1,
        ("A1", "A1"): 1,
        ("A1", "B1"): 1,
    }
    assert items("wrong.csv") == [
        {"gold": "A1", "predicted": "A2", "steps_off": -1},
        {"gold": "A2", "predicted": "B1", "steps_off": 2},
    ]


def test_a_label_can_be_renamed_onto_one_that_is_renamed_itself():
    write("some.csv", "gold,predicted\nx,B1\nB1,x\nB1,B1\nB2,B2\n")
    write("map.csv", "from,to\nx,B1\nB1,B2\n")
    found = report("some.csv", "--map", "map.csv", "--items", "wrong.csv")
    assert filled(found) == {("B1", "B2"): 1, ("B2", "B1"): 1, ("B2", "B2"): 2}
    assert items("wrong.csv") == [
        {"gold": "x", "predicted": "B1", "steps_off": 1},
        {"gold": "B1", "predicted": "x", "steps_off": -1},
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("map.csv", "from,to\nunsure,\n"),
        ("map.json", '{"unsure": ""}'),
        ("null.json", '{"unsure": null}'),
    ],
)
def test_a_label_can_be_renamed_to_a_missing_one(name, content):
    write("some.csv", "gold,predicted\nA1,unsure\nB1,B1\n")
    found = report("some.csv", "--map", write(name, content), "--missing", "worst")
    assert (filled(found), found["unanswered"]) == ({("B1", "B1"): 1}, [1, 0, 0, 0, 0, 0])


def test_numbers_of_a_parquet_file_can_be_renamed():
    pq.write_table(pa.table({"gold": [0, 1], "predicted": [1, 1]}), "some.parquet")
    write("map.json", '{"0": "A1", "1": "B1"}')
    found = report("some.parquet", "--map", "map.json")
    assert filled(found) == {("A1", "B1"): 1, ("B1", "B1"): 1}


# --- scales, weights, groups, missing labels -----------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "labels"),
    [
        ("cefr", list(CEFR)),
        ("1..6", [1, 2, 3, 4, 5, 6]),
        ("low,mid,high", ["low", "mid", "high"]),
        (" low , mid ,high", ["low", "mid", "high"]),
        ('"a, b",c', ["a, b", "c"]),
        ("-2..1", [-2, -1, 0, 1]),
    ],
)
def test_the_scale_of_the_report_is_the_one_declared(here, scale, labels):
    rows = [{"gold": labels[0], "predicted": labels[1]}]
    (here / "some.csv").write_bytes(_delimited(rows))
    found = report("some.csv", f"--scale={scale}")
    assert found["scale"] == labels
    assert filled(found) == {(str(labels[0]), str(labels[1])): 1}


def test_an_absent_level_keeps_its_place():
    write("some.csv", "gold,predicted\nA1,C2\nC2,A1\n")
    assert report("some.csv", "--metrics", "mae")["metrics"]["mae"]["value"] == 5
    narrow = report("some.csv", "--metrics", "mae", "--scale", "A1,C2")
    assert narrow["metrics"]["mae"]["value"] == 1


def test_whole_weights_are_repetitions():
    write("weighted.csv", "gold,predicted,w\nA1,A2,3\nB1,B1,1\nC1,B1,0\nC2,C1,2\n")
    write("repeated.csv", "gold,predicted\n" + "A1,A2\n" * 3 + "B1,B1\n" + "C2,C1\n" * 2)
    weighted = report("weighted.csv", "--weights", "w", "--metrics", "all")
    repeated = report("repeated.csv", "--metrics", "all")
    for part in ("confusion_matrix", "metrics", "per_level", "weight"):
        assert close(weighted[part], repeated[part]), part
    assert (weighted["n"], repeated["n"]) == (3, 6)  # an item of weight 0 does not exist


def test_an_item_of_weight_0_may_hold_anything():
    write("some.csv", "gold,predicted,w\nA1,A2,1\nZZ,A1,0\n,A1,0\nA1,,0\n")
    assert filled(report("some.csv", "--weights", "w")) == {("A1", "A2"): 1}


def test_groups_are_what_each_group_is_alone(here):
    (here / "all.csv").write_bytes(_delimited(GOLDEN))
    asked = ("--gold", "level", "--predicted", "answer", "--scale", "cefr")
    asked += ("--weights", "weight", "--missing", "worst")
    whole = report("all.csv", *asked, "--by", "language")
    assert sum(part["n"] for part in whole["by"].values()) == whole["n"]
    for language in ("de", "fr", None):
        rows = [row for row in GOLDEN if row["language"] == language]
        (here / "group.csv").write_bytes(_delimited(rows))
        name = language or "(none)"
        assert close(facts(whole["by"][name]), facts(report("group.csv", *asked))), name


@pytest.mark.parametrize("name", ["(none)", "None", "NA", "all", "nan"])
def test_no_name_of_a_group_is_taken_for_a_missing_one(name):
    write("some.csv", f"gold,predicted,g\nA1,A1,{name}\nA1,A2,{name}\nB1,B2,\n")
    parts = report("some.csv", "--by", "g")["by"]
    assert sorted(part["n"] for part in parts.values()) == [1, 2]
    assert parts[name]["n"] == 2


def test_a_group_says_how_many_of_its_items_were_dropped():
    write("some.csv", "gold,predicted,g\nA1,A1,x\nA1,,x\nB1,,x\nB1,B1,y\n")
    found = report("some.csv", "--by", "g", "--missing", "drop")
    assert {group: part["dropped"] for group, part in found["by"].items()} == {"x": 2, "y": 0}


def test_what_becomes_of_missing_labels_is_said():
    write("some.csv", "gold,predicted\nA1,A1\nA1,\nB1,\nC1,C1\n")
    assert "Dropped for a missing label: 2 items" in text("some.csv", "--missing", "drop")
    assert "Without a prediction: 2 items" in text("some.csv", "--missing", "worst")


# --- metrics and --fail-under --------------------------------------------------------------------


def test_commas_in_parentheses_belong_to_the_metric():
    write("some.csv", PAIRS)
    asked = "mae, oci(beta1=0.5,gamma=1) ,weighted_kappa(power=1)"
    found = report("some.csv", "--metrics", asked)
    expressions = ["mae", "oci(beta1=0.5,gamma=1)", "weighted_kappa(power=1)"]
    assert list(found["metrics"]) == expressions
    table = ConfusionMatrix.of("cefr", *zip(*CELLS, strict=True))
    for name in expressions:
        assert found["metrics"][name]["value"] == pytest.approx(float(find_metric(name)(table)))


def test_all_metrics_are_those_of_the_catalogue():
    found = report(write("some.csv", PAIRS), "--metrics", "all")
    assert list(found["metrics"]) == [m.name for m in list_metrics() if not m.required]


LIMITS = [  # on PAIRS: accuracy 1/3, mae 2/3, bias 0
    ("accuracy=0.3", 0),
    ("accuracy=0.4", 3),
    ("mae=0.7", 0),
    ("mae=0.5", 3),
    ("bias=0.1", 0),
    ("bias=-0.1", 0),
    ("accuracy_within(n=0)=0.4", 3),
    ("weighted_kappa(power=1)=-1", 0),
    ("accuracy=1e0", 3),
]


@pytest.mark.parametrize(("limit", "code"), LIMITS)
def test_a_metric_fails_where_it_is_worse_than_its_limit(limit, code):
    ran = run("evaluate", write("some.csv", PAIRS), "--fail-under", limit)
    assert ran.code == code
    assert ran.out.startswith("3 items")  # the report is written all the same
    assert ran.err.count("\n") == (code == 3)
    assert limit.rpartition("=")[0] in ran.err or not code


@pytest.mark.parametrize(("predicted", "code"), [("A2", 0), ("B1", 3)])
def test_bias_fails_by_its_distance_from_0(predicted, code):
    write("some.csv", f"gold,predicted\nA1,{predicted}\n")
    assert run("evaluate", "some.csv", "--fail-under", "bias=1.5").code == code
    write("other.csv", f"gold,predicted\n{predicted},A1\n")
    assert run("evaluate", "other.csv", "--fail-under", "bias=1.5").code == code


def test_a_value_that_equals_its_limit_passes():
    write("some.csv", "gold,predicted\nA1,A1\nA1,A2\n")
    both = ("--fail-under", "accuracy=0.5", "--fail-under", "mae=0.5")
    assert run("evaluate", "some.csv", *both).code == 0


def test_an_undefined_metric_fails_its_limit():
    write("some.csv", "gold,predicted\nA1,A1\nA1,A1\n")
    ran = run("evaluate", "some.csv", "--fail-under", "kendall_tau_b=-1")
    assert ran.code == 3
    assert "undefined" in ran.err


def test_a_refused_metric_fails_its_limit():
    write("some.csv", "gold,predicted\nA1,A1\nA2,\n")
    asked = ("--missing", "worst", "--fail-under", "kendall_tau_b=-1")
    assert run("evaluate", "some.csv", *asked).code == 3


def test_each_limit_that_is_missed_has_its_line_and_the_report_is_kept():
    write("some.csv", PAIRS)
    limits = ("--fail-under", "mae=0.1", "--fail-under", "cem_ord=0", "--fail-under", "accuracy=1")
    ran = run("evaluate", "some.csv", *limits, "--metrics", "mae", "-o", "out.json")
    assert ran.code == 3
    mae, accuracy = ran.err.splitlines()
    assert mae.startswith("ordinate: mae")
    assert accuracy.startswith("ordinate: accuracy")
    assert Path("out.json").exists()


# --- the forms of the report ---------------------------------------------------------------------


def test_the_json_has_the_keys_that_it_promises():
    found = report(write("some.csv", PAIRS), "--metrics", "cem_ord,kendall_tau_b")
    assert (found["schema"], found["task"], found["n"]) == (1, "labels", 3)
    assert found["scale"] == list(CEFR)
    assert np.array(found["confusion_matrix"]).shape == (6, 6)
    assert [row["level"] for row in found["per_level"]] == list(CEFR)
    score = found["metrics"]["cem_ord"]
    assert {"value", "undefined", "levels_used", "baselines"} <= score.keys()
    assert score["baselines"].keys() == {"best_constant", "majority", "chance"}
    assert score["undefined"] is None
    undefined = found["metrics"]["kendall_tau_b"]["baselines"]["majority"]
    assert undefined["value"] is None
    assert undefined["undefined"]


@pytest.mark.parametrize("gold", ["A1\nA1", "A1\nA2", "A1\nC2\nC2"])
def test_the_json_of_all_metrics_is_strict_whatever_is_undefined(gold):
    write("some.csv", "gold,predicted\n" + "".join(f"{g},A1\n" for g in gold.split()))
    ran = run("evaluate", "some.csv", "--metrics", "all", "--format", "json")
    assert ran.code == 0
    found = json.loads(ran.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    for name, score in found["metrics"].items():
        assert (score["value"] is None) == bool(score["undefined"]), name


def test_the_csv_has_a_record_for_each_metric_and_group():
    write("some.csv", "gold,predicted,g\nA1,A1,x\nB1,B2,y\n")
    asked = ("--by", "g", "--metrics", "mae,accuracy", "--format", "csv")
    ran = run("evaluate", "some.csv", *asked)
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["group"], row["metric"]) for row in rows] == [
        (group, metric) for group in ("", "x", "y") for metric in ("mae", "accuracy")
    ]
    assert [float(row["value"]) for row in rows] == [0.5, 0.5, 0, 1, 1, 0]


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_what_goes_to_a_file_is_what_goes_to_the_terminal(form):
    write("some.csv", "gold,predicted\nA1,é\né,é\n")
    asked = ("some.csv", "--scale", "A1,é", "--format", form)
    shown = run("evaluate", *asked)
    written = run("evaluate", *asked, "-o", "out")
    assert (shown.code, written) == (0, Ran(0, "", ""))
    assert Path("out").read_text("utf-8") == shown.out
    assert "é" in shown.out or form == "csv"


# --- files that are written ----------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-o", "--items"])
def test_nothing_is_overwritten_without_force(here, flag):
    write("some.csv", PAIRS)
    write("out.csv", "kept")
    refused = run("evaluate", "some.csv", flag, "out.csv")
    assert (refused.code, refused.out) == (2, "")
    assert "--force" in refused.err
    assert Path("out.csv").read_text() == "kept"
    assert run("evaluate", "some.csv", flag, "out.csv", "--force").code == 0
    assert Path("out.csv").read_text() != "kept"
    assert names(here) == ["out.csv", "some.csv"]


def test_a_failure_leaves_what_was_there_even_with_force(here):
    write("some.csv", "gold,predicted\nA1,ZZ\n")
    write("out.json", "kept")
    write("wrong.csv", "kept too")
    asked = ("--scale", "cefr", "-o", "out.json", "--items", "wrong.csv", "--force")
    assert run("evaluate", "some.csv", *asked).code == 2
    assert (Path("out.json").read_text(), Path("wrong.csv").read_text()) == ("kept", "kept too")
    assert names(here) == ["out.json", "some.csv", "wrong.csv"]


def test_report_and_items_are_written_both_or_not_at_all(here):
    write("some.csv", PAIRS)
    write("wrong.csv", "kept")
    assert run("evaluate", "some.csv", "-o", "out.json", "--items", "wrong.csv").code == 2
    assert names(here) == ["some.csv", "wrong.csv"]


def test_report_and_items_cannot_be_one_file(here):
    write("some.csv", PAIRS)
    ran = run("evaluate", "some.csv", "-o", "out.csv", "--items", "out.csv")
    assert ran.code == 2
    assert names(here) == ["some.csv"]


@pytest.mark.parametrize("flag", ["-o", "--items"])
def test_no_input_is_overwritten_even_with_force(flag):
    write("run.csv", RUN)
    write("gold.csv", GOLD)
    write("map.csv", "from,to\nx,A1\n")
    asked = ("--gold-file", "gold.csv", "--id", "id", "--map", "map.csv", "--missing", "drop")
    for name in ("run.csv", "gold.csv", "map.csv"):
        before = Path(name).read_bytes()
        ran = run("evaluate", "run.csv", *asked, flag, f"./{name}", "--force")
        assert (ran.code, Path(name).read_bytes()) == (2, before)
        assert name in ran.err


def test_a_written_file_has_the_usual_permissions():
    write("some.csv", PAIRS)
    before = os.umask(0o027)
    try:
        report("some.csv", "-o", "out.json", "--items", "wrong.csv")
    except json.JSONDecodeError:
        pass  # the report went to the file
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(Path(name).stat().st_mode) for name in ("out.json", "wrong.csv")]
    assert modes == [0o640, 0o640]


def test_an_output_that_is_no_plain_file_is_never_replaced_by_one():
    write("some.csv", PAIRS)
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        run("evaluate", "some.csv", "-o", "pipe", "--force")
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def test_a_link_as_output_stays_a_link():
    write("some.csv", PAIRS)
    write("target.txt", "old")
    Path("link.txt").symlink_to("target.txt")
    assert run("evaluate", "some.csv", "-o", "link.txt", "--force").code == 0
    assert Path("link.txt").is_symlink()
    assert Path("target.txt").read_text().startswith("3 items")


# --- as a process --------------------------------------------------------------------------------


def child(*arguments, given: bytes = b"", **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "ordinate.cli", *arguments],
        input=given,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.parametrize(
    "form",
    ["data.csv", "utf16.csv", "data.jsonl", "data.parquet", "data.csv.gz", "gzip-without-suffix"],
)
def test_standard_input_is_recognised_by_its_content(form):
    asked = ("--gold", "level", "--predicted", "answer", "--format", "json")
    ran = child("evaluate", "-", *asked, given=FORMS[form](WHOLE))
    assert (ran.returncode, ran.stderr) == (0, b"")
    found = json.loads(ran.stdout)
    assert found["source"]["files"] == ["standard input"]
    assert found["confusion_matrix"] == _in_python(WHOLE).to_dict()["confusion_matrix"]


def test_gold_may_come_from_standard_input():
    write("run.csv", RUN)
    asked = ("run.csv", "--gold-file", "-", "--id", "id", "--missing", "drop")
    ran = child("evaluate", *asked, "--format", "json", given=GOLD.encode())
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert filled(json.loads(ran.stdout)) == JOINED


def test_a_named_pipe_is_read_like_a_file():
    os.mkfifo("pipe")
    command = [*COMMAND, "evaluate", "pipe", "--format", "json"]
    shell = f"printf '{PAIRS.encode('unicode_escape').decode()}' > pipe & {shlex.join(command)}"
    started = subprocess.Popen(
        ["/bin/bash", "-c", shell],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = started.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        pytest.fail("waits for ever on a pipe that has been read")
    assert (started.returncode, err) == (0, b"")
    assert filled(json.loads(out)) == CELLS


def _wait_for_reader(path: str, started: subprocess.Popen) -> int:
    """Open a named pipe for writing as soon as the child reads from it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and started.poll() is None:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
    return pytest.fail("nobody reads from the pipe")


@pytest.fixture
def heard():
    """Let children hear interrupts: a shell that starts tests in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("source", ["-", "pipe"])
def test_an_interrupt_exits_with_130_and_leaves_nothing(here, source):
    os.mkfifo("pipe")
    command = [*COMMAND, "evaluate", source, "-o", "out.txt", "--items", "wrong.csv"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        try:
            if source == "-":
                lines = b"gold,predicted\n" + b"A1,A1\n" * 100_000  # more than a pipe holds
                started.stdin.write(lines)
                started.stdin.flush()
                started.send_signal(signal.SIGINT)
            else:
                writer = _wait_for_reader("pipe", started)
                started.send_signal(signal.SIGINT)
                os.close(writer)  # a child that was just about to read would wait for ever
            out, err = started.communicate(timeout=PATIENCE)
        finally:
            started.kill()  # one that hangs; nothing happens to one that has ended
    assert (started.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    assert names(here) == ["pipe"]


@pytest.mark.parametrize(
    "arguments",
    [("evaluate", "some.csv"), ("evaluate", "some.csv", "--format", "json"), ("metrics",)],
)
def test_a_reader_that_has_seen_enough_gets_no_traceback(arguments):
    write("some.csv", PAIRS)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [*COMMAND, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writer)
    assert ran.stderr == b""
    assert ran.returncode in {0, 141}


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_without_a_letter_gets_a_report_and_no_traceback(encoding):
    write("some.csv", "gold,predicted\nŁ,日本\nŁ,Ł\n")
    asked = ("evaluate", "some.csv", "--scale", "Ł,日本")
    ran = child(*asked, PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.startswith(b"2 items")
    whole = child("metrics", PYTHONIOENCODING=encoding)
    assert (whole.returncode, whole.stderr) == (0, b"")


def test_the_exit_code_of_the_process_is_that_of_the_command():
    write("some.csv", PAIRS)
    assert child("evaluate", "some.csv", "--fail-under", "accuracy=0.9").returncode == 3
    absent = child("evaluate", "absent.csv")
    assert (absent.returncode, absent.stdout) == (2, b"")
    assert absent.stderr.startswith(b"ordinate: ")


# --- any table -----------------------------------------------------------------------------------

LETTERS = st.sampled_from("aB1 ,;|\t\"'\n\réß日∞-=+@#%\\NA.0")
LABELS = st.text(LETTERS, min_size=1, max_size=5).filter(lambda label: label == label.strip())


@given(data=st.data())
@settings(max_examples=80)
def test_any_table_written_as_csv_is_counted_as_in_python(data):
    labels = data.draw(st.lists(LABELS, min_size=2, max_size=5, unique=True))
    scale = Scale(labels)
    label = st.sampled_from([*labels, None])
    pairs = data.draw(st.lists(st.tuples(label, label), max_size=12))
    gold, predicted = zip((labels[0], labels[1]), *pairs, strict=True)
    style = {
        "delimiter": data.draw(st.sampled_from(",;\t|")),
        "lineterminator": data.draw(st.sampled_from(["\n", "\r\n"])),
        "quoting": data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    }
    if any("\r" in name for name in labels):  # which Python leaves bare beside "\n"
        style["quoting"] = csv.QUOTE_ALL
    rows = [{"gold": g, "predicted": p} for g, p in zip(gold, predicted, strict=True)]
    declared = io.StringIO()
    csv.writer(declared, quoting=csv.QUOTE_ALL, lineterminator="").writerow(labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(_delimited(rows, **style))
        found = report(path, f"--scale={declared.getvalue()}", "--missing", "drop")
    expected = ConfusionMatrix.of(scale, gold, predicted, missing="drop")
    assert found["scale"] == labels
    assert found["confusion_matrix"] == expected.counts.tolist()
    assert found["dropped"] == expected.dropped
