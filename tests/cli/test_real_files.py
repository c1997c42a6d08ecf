"""Files as people have them: partitions, keys, no header, stray quotes, bad lines, little memory.

Without the flag that a file needs there is one error, and the flag copied from it works.
"""

import gzip
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from evaluate_reports import filled, report, write
from refusals import refused

from ordinate.cli import file_problems
from ordinate.errors import BadFile
from ordinate.readers.columns import MEMORY, FileOptions
from ordinate.readers.file_formats import open_sources

pytestmark = pytest.mark.usefixtures("here")
LEVELS = ("A1", "A2", "B1", "B2")
PAIRS = [(LEVELS[k % 4], LEVELS[(k + k // 3) % 4]) for k in range(24)]
GOLD_ROWS = [("T" + str(k % 3), str(k // 3), gold) for k, (gold, _) in enumerate(PAIRS)]
RUN_ROWS = [("T" + str(k % 3), str(k // 3), guess) for k, (_, guess) in enumerate(PAIRS)]
JOINED = ("--gold-file", "gold.tsv", "--gold", "level", "--predicted", "level")
COLUMNS = ("topic", "id", "level")
RMSE = ("--metrics", "rmse")
QUICK = ("--metrics", "accuracy", "--resamples", "100")


def write_rows(name, rows, *, header=None, delimiter="\t"):
    lines = [header, *rows] if header else rows
    return write(name, "".join(delimiter.join(row) + "\n" for row in lines))


def write_pairs(name, pairs=PAIRS, **columns):
    table = pa.table({"gold": [x for x, _ in pairs], "predicted": [x for _, x in pairs]} | columns)
    pq.write_table(table, name)
    return name


def write_partitions():
    for k, language in enumerate(("de", "en")):
        folder = Path(f"data/language={language}")
        folder.mkdir(parents=True)
        write_pairs(folder / "part-0.parquet", PAIRS[k::2])
    return "data"


# --- each error names its remedy -----------------------------------------------------------------


def make_partitions():
    write_partitions()
    return ("evaluate", "data", "--by", "language")


def make_pattern_of_partitions():
    write_partitions()
    return ("evaluate", "data/**/*.parquet", "--by", "language")


def make_clash_of_folder_and_column():
    folder = Path("data/language=de")
    folder.mkdir(parents=True)
    write_pairs(folder / "part.parquet", language=["de"] * len(PAIRS))
    return ("evaluate", "data/language=de/part.parquet", "--hive", "--by", "language")


def make_compound_key():
    write_rows("gold.tsv", GOLD_ROWS, header=COLUMNS)
    write_rows("run.tsv", RUN_ROWS, header=COLUMNS)
    return ("evaluate", "run.tsv", *JOINED, "--id", "id")


def make_compound_key_of_runs():
    make_compound_key()
    write_rows("other.tsv", GOLD_ROWS, header=COLUMNS)
    return ("compare", "gold.tsv", "run.tsv", "other.tsv", *JOINED[2:], "--id", "id")


def make_no_header():
    write_rows("gold.tsv", GOLD_ROWS)
    write_rows("run.tsv", RUN_ROWS)
    return ("evaluate", "run.tsv", *JOINED, "--id", "topic,id")


def make_no_header_and_no_names():
    rows = [(str(k), *pair) for k, pair in enumerate(PAIRS[4:])]
    return ("evaluate", write_rows("results.csv", rows, delimiter=","))


def make_no_header_with_equal_cells():
    return ("evaluate", write_rows("results.csv", [("A1", "A1"), *PAIRS], delimiter=","))


def make_systems_without_header():
    rows = [(str(k), *pair, pair[0]) for k, pair in enumerate(PAIRS[4:])]
    return ("compare", write_rows("results.csv", rows, delimiter=","), "--systems", "a,b")


def make_joined_files_without_header():
    write_rows("gold.tsv", GOLD_ROWS)
    write_rows("run.tsv", RUN_ROWS)
    return ("evaluate", "run.tsv", "--gold-file", "gold.tsv", "--id", "topic,id")


def make_narrow_joined_files_without_header():
    write_rows("gold.csv", [(str(k), gold) for k, (gold, _) in enumerate(PAIRS)], delimiter=",")
    write_rows("run.csv", [(str(k), guess) for k, (_, guess) in enumerate(PAIRS)], delimiter=",")
    named = ("--gold", "level", "--predicted", "guess")
    return ("evaluate", "run.csv", "--gold-file", "gold.csv", "--id", "id", *named)


def make_runs_without_header():
    make_narrow_joined_files_without_header()
    write_rows("other.csv", [(str(k), "A1") for k in range(len(PAIRS))], delimiter=",")
    return ("compare", "gold.csv", "run.csv", "other.csv", "--id", "id")


def make_joined_regression_without_header():
    for name in ("gold.csv", "run.csv"):
        write_rows(name, [(f"n{k}", str(k)) for k in range(20)], delimiter=",")
    return ("evaluate-regression", "run.csv", *RMSE, "--gold-file", "gold.csv", "--id", "id")


def make_regression_without_header():
    rows = [("1.5", "1.5"), *((str(k), str(k)) for k in range(20))]
    name = write_rows("results.csv", rows, delimiter=",")
    return ("evaluate-regression", name, *RMSE, "--target", "density")


def make_essays(*marked):
    """Return tab-separated essays, some of which have a quote."""
    rows = [[str(k), f"essay {k}", *pair] for k, pair in enumerate(PAIRS)]
    for k, text in marked:
        rows[k][1] = text
    return write_rows("essays.tsv", rows, header=("id", "text", "gold", "predicted"))


def make_open_quote():
    return ("evaluate", make_essays((5, '"Hello, he said')))


def make_open_quote_of_a_long_file():
    rows = [[str(k), f"essay {k}", *PAIRS[k % 24]] for k in range(20_000)]
    rows[5][1] = '"Hello'
    return ("evaluate", write_rows("essays.tsv", rows, header=("id", "text", "gold", "predicted")))


def make_quote_before_text():
    return ("evaluate", make_essays((5, '"Hello" he said')))


def make_swallowed_rows():
    return ("evaluate", make_essays((5, '"Hello, he said'), (9, 'and left"')))


def make_bad_line():
    lines = [f"{gold},{guess}" for gold, guess in PAIRS]
    return ("evaluate", write("results.csv", "\n".join(["gold,predicted", *lines, "A1,A2,B1\n"])))


def make_bad_line_of_a_run():
    rows = [[str(k), guess] for k, (_, guess) in enumerate(PAIRS)]
    gold = [[str(k), gold] for k, (gold, _) in enumerate(PAIRS)]
    write_rows("gold.csv", gold, header=("id", "gold"), delimiter=",")
    write_rows("a.csv", rows, header=("id", "predicted"), delimiter=",")
    write_rows("b.csv", [*rows, ["99"]], header=("id", "predicted"), delimiter=",")
    return ("compare", "gold.csv", "a.csv", "b.csv", "--id", "id")


def make_latin_1():
    lines = "".join(f"{gold},{guess},é\n" for gold, guess in PAIRS)
    return ("evaluate", write("results.csv", f"gold,predicted,text\n{lines}".encode("latin-1")))


def make_little_memory():
    ids = range(400_000)
    pq.write_table(pa.table({"id": ids, "gold": ["A1"] * len(ids)}), "gold.parquet")
    pq.write_table(pa.table({"id": ids, "predicted": ["A2"] * len(ids)}), "run.parquet")
    return (
        "evaluate",
        "run.parquet",
        "--gold-file",
        "gold.parquet",
        "--id",
        "id",
        "--memory",
        "10MB",
    )


def make_hardly_any_memory():
    return (*make_little_memory()[:-1], "500kB")


# what makes the files and the command, and what the error says
CASES = {
    "a folder of partitions": (make_partitions, "data is a folder of partitions"),
    "a pattern of partitions": (make_pattern_of_partitions, "part-0.parquet has no column"),
    "a folder and a column": (make_clash_of_folder_and_column, "has a column 'language', and its"),
    "ids that are distinct in a topic": (make_compound_key, "gold.tsv: the id '0' occurs 3 times"),
    "such ids of runs": (make_compound_key_of_runs, "gold.tsv: the id '0' occurs 3 times"),
    "no header": (make_no_header, "gold.tsv has no column 'level'"),
    "no header, no names": (make_no_header_and_no_names, "Which column of results.csv"),
    "no header, equal cells": (make_no_header_with_equal_cells, "two columns named 'A1'"),
    "a quote that is not closed": (make_open_quote, "the record that begins in line 7 "),
    "such a quote in a long file": (make_open_quote_of_a_long_file, "that begins in line 7 "),
    "a quote before more text": (make_quote_before_text, "the record that begins in line 7 "),
    "quotes that swallow rows": (make_swallowed_rows, "the record that begins in line 7 "),
    "a bad line": (make_bad_line, "begins in line 26 ('A1,A2,B1') has 3 columns"),
    "a bad line of a run": (make_bad_line_of_a_run, "b.csv cannot be read: the record that begins"),
    "another encoding": (make_latin_1, "results.csv is not UTF-8"),
    "too little memory": (make_little_memory, "there is not enough memory"),
    "hardly any memory": (make_hardly_any_memory, "there is not enough memory"),
    "systems, no header": (make_systems_without_header, "two columns named 'A1'"),
    "joined files, no header": (make_joined_files_without_header, "holds the gold levels"),
    "narrow files, no header": (make_narrow_joined_files_without_header, "no column 'level'"),
    "runs, no header": (make_runs_without_header, "holds the gold levels"),
    "regression, no header": (make_regression_without_header, "two columns named '1.5'"),
    "joined regression": (make_joined_regression_without_header, "holds the targets"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_remedy_copied_from_the_message_works(case):
    make, said = CASES[case]
    name, *arguments = make()
    command = (name, *QUICK, *arguments)
    ran = run(*command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert said in ran.err
    remedy = re.search(r"pass (--[^;]+?)[.;](?:\s|$)", ran.err)[1].split()
    mended = run(*command, *remedy)
    assert (mended.code, mended.err) == (0, "")


# --- partitions ----------------------------------------------------------------------------------


def test_folders_are_columns_when_asked_for():
    found = report(write_partitions(), "--hive", "--by", "language", *QUICK)
    assert {name: part["n"] for name, part in found["by"].items()} == {"de": 12, "en": 12}
    assert filled(found) == filled(report(write_pairs("all.parquet"), *QUICK))


def test_partitions_may_be_text_and_their_names_escaped(here):
    for folder in ("topic=a%2Fb", "topic=__HIVE_DEFAULT_PARTITION__"):
        (here / "data" / folder).mkdir(parents=True)
        write_rows(f"data/{folder}/part.csv", PAIRS, header=("gold", "predicted"), delimiter=",")
    (here / "data" / "_SUCCESS.csv").write_text("")
    found = report("data", "--hive", "--by", "topic", *QUICK)
    assert [(name, part["n"]) for name, part in found["by"].items()] == [
        ("a/b", 24),
        ("(none)", 24),
    ]


def test_a_folder_never_replaces_a_column_of_a_file(here):
    folder = here / "gold=C2"
    folder.mkdir()
    write_pairs(folder / "part.parquet")
    assert filled(report("gold=C2/part.parquet", *QUICK)) == filled(
        report(write_pairs("all.parquet"), *QUICK)
    )


def test_files_may_have_their_columns_in_another_order():
    write_pairs("part-0.parquet")
    swapped = pa.table({"predicted": [x for _, x in PAIRS], "gold": [x for x, _ in PAIRS]})
    pq.write_table(swapped, "part-1.parquet")
    twice = report("part-*.parquet", *QUICK)
    once = report("part-0.parquet", *QUICK)
    assert filled(twice) == {cell: 2 * count for cell, count in filled(once).items()}


def test_partitions_without_rows_change_nothing():
    write_pairs("part-0.parquet")
    write_pairs("part-1.parquet", [], gold=pa.nulls(0, "string"), predicted=pa.nulls(0, "string"))
    write_rows("part-2.csv", [], header=("gold", "predicted"), delimiter=",")
    whole = filled(report("part-0.parquet", *QUICK))
    assert filled(report("part-*", *QUICK)) == whole
    assert filled(report("part-2.csv", "part-0.parquet", "part-1.parquet", *QUICK)) == whole


# --- sources that are broken ---------------------------------------------------------------------


def test_a_partition_with_another_schema_is_named(here):
    write_pairs("part-0.parquet")
    pq.write_table(pa.table({"gold": ["A1"], "answer": ["A1"]}), "part-1.parquet")
    message = refused(here, "part-*.parquet")
    assert "part-1.parquet has no column 'predicted'" in message


def test_a_corrupt_row_group_is_named_by_its_file(here):
    pq.write_table(pa.table({"id": list(range(24)), "gold": [x for x, _ in PAIRS]}), "gold.parquet")
    guesses = pa.table({"id": list(range(24)), "predicted": [f"{x}" for _, x in PAIRS]})
    pq.write_table(guesses, "run.parquet", row_group_size=12, use_dictionary=False)
    group = pq.ParquetFile("run.parquet").metadata.row_group(1).column(1)
    content = bytearray((here / "run.parquet").read_bytes())
    start = group.data_page_offset
    content[start : start + group.total_compressed_size] = b"\xff" * group.total_compressed_size
    (here / "run.parquet").write_bytes(bytes(content))
    message = refused(here, "run.parquet", "--gold-file", "gold.parquet", "--id", "id")
    assert "run.parquet cannot be read" in message


def test_a_gold_column_without_labels_is_an_error(here):
    pq.write_table(
        pa.table({"gold": pa.nulls(3, pa.string()), "predicted": ["A1"] * 3}), "some.parquet"
    )
    assert "gold labels are missing" in refused(here, "some.parquet")
    message = refused(here, "some.parquet", "--scale", "cefr", "--missing", "drop")
    assert "all 3 have a missing label. They are from some.parquet." in message


def test_a_stray_label_of_a_join_is_named_by_its_file(here):
    write_rows("gold.csv", [("1", "A1"), ("2", "A2")], header=("id", "gold"), delimiter=",")
    write_rows("run.csv", [("1", "A1"), ("2", "Z")], header=("id", "predicted"), delimiter=",")
    message = refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id", "--scale", "cefr")
    assert "Label 'Z' (id 2 of run.csv of column 'predicted')" in message


# --- keys ----------------------------------------------------------------------------------------


def test_keys_with_commas_and_quotes_stay_apart():
    keys = [("a,b", "c"), ("a", "b,c"), ('"a', 'b"'), ('"a,b"', "")]
    labels = ["A1", "A2", "B1", "B2"]
    rows = [{"x": x, "y": y, "gold": z} for (x, y), z in zip(keys[:3], labels, strict=False)]
    write("gold.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    renamed = [{"predicted" if k == "gold" else k: v for k, v in row.items()} for row in rows]
    write("run.jsonl", "".join(json.dumps(row) + "\n" for row in reversed(renamed)))
    found = report("run.jsonl", "--gold-file", "gold.jsonl", "--id", "x,y", *QUICK)
    assert filled(found) == {(x, x): 1 for x in labels[:3]}


def test_a_column_whose_name_has_a_comma_is_one_key():
    write("gold.csv", '"a,b",gold\n1,A1\n2,A2\n')
    write("run.csv", '"a,b",predicted\n2,A2\n1,A1\n')
    found = report("run.csv", "--gold-file", "gold.csv", "--id", "a,b", *QUICK)
    assert found["metrics"]["accuracy"]["value"] == 1


def test_regressions_are_joined_by_several_columns():
    rows = [(f"T{k % 2}", str(k // 2), str(k)) for k in range(20)]
    write_rows("gold.csv", rows, header=("topic", "id", "target"), delimiter=",")
    write_rows("run.csv", rows[::-1], header=("topic", "id", "predicted"), delimiter=",")
    joined = ("run.csv", "--gold-file", "gold.csv", "--metrics", "rmse", "--interval", "none")
    refusal = run("evaluate-regression", *joined, "--id", "id")
    assert "pass --id topic,id." in refusal.err
    found = run("evaluate-regression", *joined, "--id", "topic,id", "--format", "json")
    assert json.loads(found.out)["metrics"]["rmse"]["value"] == 0


# --- quotes and headers --------------------------------------------------------------------------


def test_stray_quotes_are_characters_without_quoting():
    essays = make_essays((5, '"Hello, he said'), (9, 'and left"'))
    assert report(essays, "--quote", "none", *QUICK)["n"] == len(PAIRS)
    assert report(essays, "--quote", "double", *QUICK)["n"] == len(PAIRS) - 4


def test_texts_of_several_lines_in_quotes_are_no_stray_quotes():
    essays = make_essays((5, '"Hello,\n\nhe said\tand\nleft"'))
    assert report(essays, *QUICK)["n"] == len(PAIRS)
    lines = "".join(f'"a,\nb",{gold},{guess}\n' for gold, guess in PAIRS)
    assert report(write("some.csv", f"text,gold,predicted\n{lines}"), *QUICK)["n"] == len(PAIRS)


def test_names_of_columns_are_as_many_as_columns(here):
    name = write_rows("some.csv", PAIRS, delimiter=",")
    flags = ("--header", "none", "--columns", "id,gold,predicted")
    assert "has 2 columns, and --columns names 3" in refused(here, name, *flags)
    assert "--header none goes with --columns" in refused(here, name, "--header", "none")
    assert "--header none goes with --columns" in refused(here, name, *flags[2:])


@pytest.mark.parametrize("widths", [(2, 3), (1, 1)])
def test_columns_that_no_names_fit_are_to_get_a_line_of_names(here, widths):
    for name, width in zip(("gold.csv", "run.csv"), widths, strict=True):
        rows = [[str(k + 10 * column) for column in range(width)] for k in range(4)]
        write_rows(name, rows, delimiter=",")
    message = refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id")
    assert message.endswith("put a line with the names of its columns above it.")


@pytest.mark.parametrize(
    ("given", "proposed"),
    [("300000KB", "1200000KB"), ("0.3GB", "1.2GB"), ("9000000000 B", "36000000000B")],
)
def test_more_memory_is_proposed_in_digits_that_the_flag_takes(given, proposed):
    reader = SimpleNamespace(options=SimpleNamespace(memory=given))
    assert file_problems._suggest_memory(reader).endswith(f"pass --memory {proposed}.")
    assert MEMORY.fullmatch(proposed)


@pytest.mark.parametrize("size", ["0MB", "0.0 GB", "00B"])
def test_no_memory_is_no_size(here, size):
    name = write_rows("some.csv", PAIRS, header=("gold", "predicted"), delimiter=",")
    message = refused(here, name, "--memory", size)
    assert f"--memory takes a size such as 500MB or 2GB, not {size!r}" in message


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_first_row_counts_without_a_header(mark):
    write("some.csv", mark + "A1,A2\nB1,B1\n")
    flags = ("--header", "none", "--columns", "gold,predicted")
    cells = {("A1", "A2"): 1, ("B1", "B1"): 1}
    assert filled(report("some.csv", *flags, *QUICK)) == cells
    assert filled(report("some.csv", *flags, "--bad-lines", "skip", *QUICK)) == cells


def test_a_scale_may_begin_with_a_minus():
    name = write("some.csv", "gold,predicted\n-1,0\n0,0\n1,1\n")
    assert report(name, "--scale", "-1..1", *QUICK)["scale"] == [-1, 0, 1]
    assert report(name, "--scale", "-1,0,1", *QUICK)["n"] == 3


# --- bad lines -----------------------------------------------------------------------------------


def test_a_repeated_id_and_a_stray_label_are_named_with_their_place(here):
    write("gold.csv", "id,gold\n1,A1\n2,B1\n")
    write("run.csv", "id,predicted\n1,A1\n2,B1\n2,B2\n1,A1\n")
    message = refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id")
    assert "run.csv: the id '1' occurs 2 times, and 1 more ids occur several times." in message
    write_rows("a.csv", PAIRS, header=("gold", "predicted"), delimiter=",")
    write_rows("b.csv", [*PAIRS, ("X9", "A1")], header=("gold", "predicted"), delimiter=",")
    assert "(row 25 of b.csv of column 'gold')" in refused(here, "a.csv", "b.csv")


SKIP = ("--bad-lines", "skip")
BAD = """id,gold,predicted,text
1,A1,A1,x
2,A2

3,A2,B1,"two
lines, ""here"" too"
4,B1,B1,x,y,z
5,B1,B2,x,,
6,B1
"""
GOOD = {("A1", "A1"): 1, ("A2", "B1"): 1, ("B1", "B2"): 1}
SKIPPED = (
    "3 lines of some.csv were left out, with more or fewer columns than 4: the first is line 3"
)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_bad_lines_are_refused_or_left_out_and_counted(here, end):
    write("some.csv", BAD.replace("\n", end).encode())
    message = refused(here, "some.csv", *QUICK)
    assert "line 3 ('2,A2') has 2 columns, and there should be 4." in message
    assert "--bad-lines skip" in message
    found = report("some.csv", *SKIP, *QUICK)
    assert filled(found) == GOOD
    assert found["source"]["notes"][0] == f"{SKIPPED} ('2,A2')."


def test_the_first_bad_line_may_stand_below_texts_of_several_lines():
    write("some.csv", BAD.replace("2,A2\n", ""))
    (note, *_) = report("some.csv", *SKIP, *QUICK)["source"]["notes"]
    assert "2 lines of some.csv" in note
    assert "line 6 ('4,B1,B1,x,y,z')" in note


def test_packed_files_are_read_without_their_bad_lines(here):
    for name in ("a.csv.gz", "b.csv.gz"):
        write(name, gzip.compress(BAD.encode()))
    found = report("a.csv.gz", "b.csv.gz", *SKIP, *QUICK)
    assert filled(found) == {cell: 2 * count for cell, count in GOOD.items()}
    assert [note[:23] for note in found["source"]["notes"][:2]] == [
        "3 lines of a.csv.gz wer",
        "3 lines of b.csv.gz wer",
    ]
    assert "join by --id" in refused(
        here, "a.csv.gz", "--gold-file", "b.csv.gz", "--row-order", *SKIP
    )


BEGIN = "id,gold,predicted\n1,A1,A1\n2,A2\n"


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ('3,A1,"A1\n4,A1,A1\n', "line 4 ('3,A1,\"A1') has a quote that is not closed"),
        ('3,A1,"A1\n4,A1,A1\n5,A1,"x"y\n', "line 4 ('3,A1,\"A1') has a quote"),
        ('3,"A1,A1\n4",A1,A1\n5,A1,A1\n', "line 4 ('3,\"A1,A1') has 4 columns"),
    ],
)
def test_a_quote_that_swallows_rows_is_an_error_where_bad_lines_are_left_out(here, rest, problem):
    message = refused(here, write("some.csv", BEGIN + rest), *SKIP)
    assert problem in message
    assert "--bad-lines" not in message


def test_rows_that_a_text_of_a_tsv_file_swallowed_are_found_below_bad_lines(here):
    rows = 'id\tgold\tpredicted\na\tA1\tA1\nb\tA2\nc\t"A2\tA2\nd\t A1"\tA1\n'
    assert "begins in line 4" in refused(here, write("some.tsv", rows), *SKIP)


def test_bad_lines_are_the_same_whatever_the_size_of_the_buffers():
    lines = [f"{k},A1" if k % 7 == 0 else f"{k},A1,B1" for k in range(5_000)]
    write("some.csv", "\n".join(["id,gold,predicted", *lines]))
    for size in (200, 10_000, 1_000_000):
        with open_sources(FileOptions(bad_lines="skip"), longest_line=size) as reader:
            (source,) = reader.describe_files(["some.csv"])
            assert source.count_rows() == sum("B1" in line for line in lines)
            (note,) = reader.notes
            assert note.startswith("715 lines of some.csv were left out")
            assert note.endswith("the first is line 2 ('0,A1').")


def test_a_row_that_is_longer_than_any_is_an_error_where_bad_lines_are_left_out():
    write("some.csv", "id,gold\n1,A1\n" + "x" * 900 + ",A1\n")
    with (
        pytest.raises(BadFile, match="more than"),
        open_sources(FileOptions(bad_lines="skip"), longest_line=200) as reader,
    ):
        reader.describe_files(["some.csv"])


PROBABILITIES = "id,gold,predicted,y,p_A1,p_A2\n" + "".join(
    f"{k},{label},{label},{k * k % 17},{p},{1 - p}\n"
    for k, (label, p) in enumerate([("A1", 0.75), ("A2", 0.25)] * 10)
)


@pytest.mark.parametrize(
    "command",
    [
        "evaluate",
        "evaluate --predicted predicted --probabilities p_",
        "evaluate --probabilities p_",
        "evaluate --probabilities p_ --groups id",
        "evaluate-regression --target y --predicted id",
        "evaluate-regression --target y --predicted id --residuals p_A1",
        "compare --systems predicted,id --map map.json",
        "meta --systems predicted --cases 2",
        "decode --probabilities p_",
    ],
)
def test_every_command_counts_bad_lines_once(command):
    write("some.csv", PROBABILITIES + "x,A1\n")
    write("map.json", json.dumps({str(k): "A1" for k in range(20)}))
    name, *flags = command.split()
    scale = [] if name == "evaluate-regression" else ["--gold", "gold", "--scale", "A1,A2"]
    ran = run(name, "some.csv", *flags, *scale, *SKIP, "--resamples", "100")
    assert ran.code == 0, ran.err
    assert " ".join((ran.out + ran.err).split()).count("1 line of some.csv was left out") == 1


def test_a_reading_that_skips_nothing_is_the_usual_one():
    write_rows("some.csv", PAIRS, header=("gold", "predicted"), delimiter=",")
    write("quoted.csv", 'text,gold,predicted\n"a\nb, ""c""",A1,A2\nx,B1,B1\n')
    for name in ("some.csv", "quoted.csv"):
        assert report(name, *SKIP, *QUICK) == report(name, *QUICK)


def test_a_size_of_memory_has_a_unit(here):
    name = write_rows("some.csv", PAIRS, header=("gold", "predicted"), delimiter=",")
    assert "--memory takes a size such as 500MB" in refused(here, name, "--memory", "much")
