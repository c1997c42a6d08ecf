"""`ordinate evaluate`: whatever the format, the confusion matrix is that of Python."""

import csv
import io
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluate_reports import (
    CELLS,
    COMPLETE,
    FORMS,
    GOLDEN,
    PAIRS,
    ROWS,
    close,
    evaluate_rows,
    facts,
    filled,
    read_items,
    report,
    write,
)
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from row_files import to_csv

import ordinate
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

pytestmark = pytest.mark.usefixtures("here")

# --- the same data in every format ---------------------------------------------------------------

ASKED = {
    "plain": (COMPLETE, {}),
    "weights": (COMPLETE, {"weights": "weight"}),
    "by": (COMPLETE, {"by": "language"}),
    "drop": (ROWS, {"missing": "drop"}),
    "worst": (GOLDEN, {"missing": "worst"}),
    "all at once": (GOLDEN, {"weights": "weight", "by": "language", "missing": "worst"}),
}
COMMON = ("data.csv", "data.tsv", "data.jsonl", "data.parquet", "data.csv.gz")
CASES = [(form, asked) for form in COMMON for asked in ASKED]
CASES += [(form, "all at once") for form in FORMS if form not in COMMON]


@pytest.mark.parametrize(("form", "asked"), CASES)
def test_every_format_gives_what_python_gives(here, form, asked):
    rows, options = ASKED[asked]
    (here / form).write_bytes(FORMS[form](rows))
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    found = report(form, "--gold", "level", "--predicted", "answer", "--scale", "cefr", *flags)
    assert close(facts(found), facts(evaluate_rows(rows, **options).to_dict()))


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


@pytest.mark.parametrize("skip", [[], ["--bad-lines", "skip"]])
@pytest.mark.parametrize(
    "ends", ["\r\n \n \r\n \n", "\n \n \r \n", "\r \n \r\n \r", "\r \r\n \r \r", "\n \r \n \r\n"]
)
def test_lines_that_end_in_several_ways_are_rows(ends, skip):
    lines = ['gold\tpredicted\t"the\tnote"', 'A1\tA1\t"a\r\nb"', 'B1\tB2\t"x\ty"', 'C1\tB2\t5" "z']
    write("mixed.tsv", "".join(map("".join, zip(lines, ends.split(" "), strict=True))))
    assert filled(report("mixed.tsv", *skip)) == CELLS
    if not skip:
        report("mixed.tsv", "--items", "wrong.csv")
        assert [row["the\tnote"] for row in read_items("wrong.csv")] == ["x\ty", '5" "z']


# --- any table -----------------------------------------------------------------------------------

LETTERS = st.sampled_from("aB1 ,;|\t\"'\n\réß日∞-=+@#%\\NA.0")
LABELS = st.text(LETTERS, min_size=1, max_size=5).filter(lambda label: label == label.strip())


@given(data=st.data())
@examples(80)
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
        path.write_bytes(to_csv(rows, **style))
        found = report(path, f"--scale={declared.getvalue()}", "--missing", "drop")
    expected = ConfusionMatrix.of(gold, predicted, scale, missing="drop")
    assert found["scale"] == labels
    assert found["confusion_matrix"] == expected.counts.tolist()
    assert found["dropped"] == expected.dropped
