"""Files that cannot be read or joined: exit code 2, one helpful line, and nothing written."""

import gzip
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from evaluate_reports import write
from refusals import PAIRS, refuse_join, refused


def _parquet(n: int = 50) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"gold": ["A1"] * n, "predicted": ["A2"] * n}), out)
    return out.getvalue().to_pybytes()


def _stored(content: bytes, old: bytes, new: bytes) -> bytes:
    """Return gzip data in which a byte was changed on its way, so that its checksum is wrong."""
    packed = gzip.compress(content, compresslevel=0)
    assert packed.count(old) == 1
    return packed.replace(old, new)


LINE = b'{"gold":"A1","predicted":"A1"}\n'
MANY = b"A1,A1\n" * 30_000  # well beyond the first buffer

# --- files that cannot be read -------------------------------------------------------------------

# name of the case: file, content, what the message must say
FILES: dict[str, tuple[str, "str | bytes", tuple[str, ...]]] = {
    "empty": ("some.csv", "", ("some.csv", "empty")),
    "empty JSONL": ("some.jsonl", "", ("some.jsonl", "empty")),
    "empty Parquet": ("some.parquet", "", ("some.parquet", "empty")),
    "empty gzip": ("some.csv.gz", gzip.compress(b""), ("some.csv.gz", "empty|header")),
    "blank lines": ("some.csv", "\n\n\n", ("some.csv", "header|empty")),
    "blank JSONL": ("some.jsonl", "\n\n\n", ("some.jsonl",)),
    "header only": ("some.csv", "gold,predicted\n", ("some.csv", "no rows")),
    "header without line end": ("some.csv", "gold,predicted", ("some.csv", "no rows")),
    "Parquet without rows": ("some.parquet", _parquet(0), ("some.parquet", "no rows")),
    "JSON without objects": ("some.jsonl", "[1, 2]\n", ("some.jsonl",)),
    "too few fields": ("some.csv", "gold,predicted\nA1,A1\nB1\n", ("some.csv", "3", "B1")),
    "too many fields": (
        "some.csv",
        "gold,predicted\nA1,A1\nB1,B2,C1\n",
        ("some.csv", "3", "B1,B2"),
    ),
    "too many fields late": (
        "some.csv",
        PAIRS.encode() + MANY + b"A1,A1,A1\n",
        ("some.csv", "30005"),
    ),
    "unclosed quote": ("some.csv", 'gold,predicted\n"A1,A1\nB1,B2\n', ("some.csv", "2")),
    "letters after a quote": ("some.csv", 'gold,predicted\n"A1"x,A1\n', ("some.csv", "2")),
    "binary": ("some.csv", bytes(range(256)) * 4, ("some.csv", "binary")),
    "picture called JSONL": ("some.jsonl", b"\x89PNG\r\n\0\0\0\1", ("some.jsonl",)),
    "zip": ("some.xlsx", b"PK\x03\x04" + bytes(60), ("some.xlsx", "no spreadsheet")),
    "zstd": ("some.csv.zst", b"\x28\xb5\x2f\xfd" + bytes(20), ("some.csv.zst", "zstd")),
    "gzip cut": (
        "some.csv.gz",
        gzip.compress(PAIRS.encode())[:25],
        ("some.csv.gz", "damaged|gzip"),
    ),
    "gzip cut late": (
        "some.csv.gz",
        gzip.compress(PAIRS.encode() + MANY, compresslevel=0)[:-2000],
        ("some.csv.gz", "damaged|(?i:gzip)"),
    ),
    "gzip cut without suffix": (
        "some",
        gzip.compress(PAIRS.encode() * 100)[:30],
        ("some", "damaged|(?i:gzip)"),
    ),
    "gzip of JSONL cut": (
        "some.jsonl.gz",
        gzip.compress(LINE * 1000)[:40],
        ("some.jsonl.gz", "damaged|(?i:gzip)"),
    ),
    "gzip with a changed label": (
        "some.csv.gz",
        _stored(PAIRS.encode(), b"B1,B2", b"B1,B1"),
        ("some.csv.gz", "damaged|(?i:gzip)"),
    ),
    "gzip with a changed label late": (
        "some.csv.gz",
        _stored(PAIRS.encode() + MANY + b"C2,C2\n" + MANY, b"C2,C2", b"C2,C1"),
        ("some.csv.gz", "damaged|(?i:gzip)"),
    ),
    "gzip of JSONL with a changed label": (
        "some.jsonl.gz",
        _stored(LINE * 9 + b'{"gold":"C2","predicted":"C2"}\n', b'"C2"}', b'"C1"}'),
        ("some.jsonl.gz", "damaged|(?i:gzip)"),
    ),
    "Parquet cut": ("some.parquet", _parquet()[:-20], ("some.parquet",)),
    "Parquet cut to nothing": ("some.parquet", b"PAR1", ("some.parquet",)),
    "Parquet with a damaged page": (
        "some.parquet",
        _parquet()[:40] + b"\xff" * 20 + _parquet()[60:],
        ("some.parquet",),
    ),
    "CSV called Parquet": ("some.parquet", PAIRS, ("some.parquet",)),
    "not UTF-8": ("some.csv", b"gold,predicted\nA1,\xe91\n", ("some.csv", "UTF-8", "--encoding")),
    "not UTF-8 late": (
        "some.csv",
        PAIRS.encode() + MANY + b"A1,\xe91\n",
        ("some.csv", "(?i:utf-8)", "--encoding"),
    ),
    "JSONL not UTF-8": (
        "some.jsonl",
        b'{"gold":"A\xe9","predicted":"A1"}\n',
        ("some.jsonl", "--encoding"),
    ),
    "UTF-16 cut": ("some.csv", PAIRS.encode("utf-16")[:-1], ("some.csv", "utf-16", "--encoding")),
    "JSON cut": ("some.jsonl", LINE + b'{"gold":"A1","predic\n', ("some.jsonl", "2")),
    "no JSON": ("some.jsonl", LINE + b"A1,A1\n", ("some.jsonl", "line")),
    "two columns of one name": (
        "some.csv",
        "gold,predicted,note,note\nA1,A1,x,y\n",
        ("some.csv", "'note'"),
    ),
    "a key twice in JSON": (
        "some.jsonl",
        '{"gold":"A1","gold":"B1","predicted":"A1"}\n',
        ("some.jsonl", "gold"),
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_read_is_refused_by_name(here, case):
    name, content, said = FILES[case]
    message = refused(here, write(name, content))
    for part in said:
        assert re.search(part, message), message


@pytest.mark.parametrize("case", ["empty", "too few fields", "binary", "gzip cut", "not UTF-8"])
def test_a_gold_file_that_cannot_be_read_is_refused_by_name(here, case):
    name, content, said = FILES[case]
    write("run.csv", "id,predicted\n1,A1\n")
    message = refused(here, "run.csv", "--gold-file", write(name, content), "--id", "predicted")
    assert said[0] in message


def test_a_missing_file_is_named_with_the_closest(here):
    write("results.csv", PAIRS)
    message = refused(here, "result.csv")
    assert "'result.csv'" in message
    assert "Did you mean 'results.csv'" in message


@pytest.mark.parametrize("name", ["absent/some.csv", "*.csv", "some.csv/more", "", "x" * 300])
def test_what_is_not_there_is_refused(here, name):
    refused(here, name)


def test_a_folder_without_files_says_which_there_could_be(here):
    Path("runs").mkdir()
    Path("runs/notes.md").write_text("none")
    Path("runs/.hidden.csv").write_text(PAIRS)
    message = refused(here, "runs")
    assert "runs is a folder without files to read" in message
    assert ".csv, .tsv" in message
    assert "runs is a folder. Name files" in refused(here, "run*/", "--id", "x")


def test_one_bad_file_among_good_ones_is_the_one_named(here):
    write("a.csv", PAIRS)
    write("b.csv", "gold,predicted\nA1\n")
    message = refused(here, "a.csv", "b.csv")
    assert "b.csv" in message
    assert "a.csv" not in message


@pytest.mark.parametrize("encoding", ["klingon", "hex", "rot13", "base64"])
def test_what_is_no_encoding_is_refused(here, encoding):
    assert "encoding" in refused(here, write("some.csv", PAIRS), "--encoding", encoding)


def test_the_wrong_encoding_is_refused(here):
    write("some.csv", PAIRS + "C2,C2\n")
    assert "--encoding" in refused(here, "some.csv", "--encoding", "utf-16")


@pytest.mark.parametrize("delimiter", ["", "ab", '"', "\n", "\r", ",,"])
def test_what_cannot_separate_columns_is_refused(here, delimiter):
    message = refused(here, write("some.csv", PAIRS), "--delimiter", delimiter)
    assert "--delimiter" in message


def test_a_delimiter_that_the_file_does_not_have_shows_what_the_columns_are(here):
    message = refused(here, write("some.csv", PAIRS), "--delimiter", ";", "--gold", "gold")
    assert "'gold,predicted'" in message


# --- columns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--gold", "--predicted", "--weights", "--by"])
def test_a_missing_column_is_named_with_the_closest(here, flag):
    write("some.csv", "gold,predicted,weight,language\nA1,A1,1,de\n")
    message = refused(here, "some.csv", flag, "langauge")
    assert "some.csv" in message
    assert "'langauge'" in message
    assert "'language'" in message


def test_a_missing_column_without_a_close_one_lists_what_there_is(here):
    message = refused(here, write("some.csv", PAIRS), "--gold", "xyz")
    assert "'gold', 'predicted'" in message


def test_a_missing_column_of_a_later_file_names_that_file(here):
    write("a.csv", PAIRS)
    write("b.csv", "gold,guess\nA1,A1\n")
    assert "b.csv" in refused(here, "a.csv", "b.csv")


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("gold,y_true,predicted", "gold"),
        ("gold,predicted,y_pred", "predicted"),
        ("level,predicted,x", "gold"),
        ("gold,answer,x", "predicted"),
        ("Gold,gold,predicted", "gold"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_columns_are_guessed_only_without_doubt(here, header, role, suffix):
    names = header.split(",")
    if suffix == "csv":
        write("some.csv", f"{header}\nA1,A1,A1\n")
    else:
        write("some.jsonl", "{" + ",".join(f'"{name}":"A1"' for name in names) + "}\n")
    message = refused(here, f"some.{suffix}")
    assert f"--{role}" in message
    assert repr(names[0]) in message


# --- joins ---------------------------------------------------------------------------------------


GOLD = "id,gold\n1,A1\n2,B1\n"
RUN = "id,predicted\n1,A1\n2,B2\n"


def test_two_files_without_an_id_are_refused_with_both_ways_out(here):
    message = refuse_join(here, GOLD, RUN)
    assert "--id" in message
    assert "--row-order" in message


def test_unequal_lengths_in_row_order_are_refused_with_both_lengths(here):
    message = refuse_join(here, GOLD + "3,C1\n", RUN, "--row-order")
    assert "3 rows" in message
    assert "2" in message
    assert "--id" in message


@pytest.mark.parametrize("side", ["gold.csv", "run.csv"])
@pytest.mark.parametrize(("line", "said"), [("1,C1\n", "'1'"), (",C1\n,C1\n", "2 rows have no id")])
def test_ids_are_unique_and_never_missing(here, side, line, said):
    gold, answers = (GOLD + line, RUN) if side == "gold.csv" else (GOLD, RUN + line)
    message = refuse_join(here, gold, answers, "--id", "id")
    assert side in message
    assert said in message


def test_an_id_in_two_prediction_files_is_refused(here):
    write("gold.csv", GOLD)
    write("a.csv", RUN)
    write("b.csv", "id,predicted\n2,C1\n")
    message = refused(here, "a.csv", "b.csv", "--gold-file", "gold.csv", "--id", "id")
    assert "'2'" in message


@pytest.mark.parametrize("side", ["gold.csv", "run.csv"])
def test_a_file_without_the_id_column_is_named(here, side):
    gold = GOLD.replace("id", "ids") if side == "gold.csv" else GOLD
    answers = RUN.replace("id,", "ids,") if side == "run.csv" else RUN
    message = refuse_join(here, gold, answers, "--id", "id")
    assert side in message
    assert "'ids'" in message


def test_a_missing_gold_file_is_named(here):
    write("run.csv", RUN)
    message = refused(here, "run.csv", "--gold-file", "absent.csv", "--id", "id")
    assert "'absent.csv'" in message


def test_files_of_which_no_id_matches_are_refused(here):
    message = refuse_join(here, GOLD, "id,predicted\n8,A1\n9,B1\n", "--id", "id")
    assert "2 of 2 predictions are missing" in message


# --- maps ----------------------------------------------------------------------------------------

BAD_MAPS = {
    "absent": ("absent.json", None),
    "folder": ("folder", None),
    "empty": ("map.csv", ""),
    "cut JSON": ("map.json", '{"b1": "B1",'),
    "JSON list": ("map.json", '["b1", "B1"]'),
    "JSON text": ("map.json", '"b1"'),
    "nested JSON": ("map.json", '{"b1": {"to": "B1"}}'),
    "list in JSON": ("map.json", '{"b1": ["B1"]}'),
    "other header": ("map.csv", "old,new\nb1,B1\n"),
    "no header": ("map.csv", "b1,B1\n"),
    "three columns": ("map.csv", "from,to\nb1,B1,x\n"),
    "one column": ("map.csv", "from,to\nb1\n"),
    "semicolons": ("map.csv", "from;to\nb1;B1\n"),
    "binary": ("map.csv", bytes(range(256))),
    "one label to two": ("map.csv", "from,to\nb1,B1\nb1,B2\n"),
}


@pytest.mark.parametrize("case", BAD_MAPS)
def test_a_map_that_cannot_be_used_is_refused_by_name(here, case):
    name, content = BAD_MAPS[case]
    if case == "folder":
        Path(name).mkdir()
    elif content is not None:
        write(name, content)
    write("some.csv", PAIRS)
    assert name in refused(here, "some.csv", "--map", name)


def test_a_label_that_is_renamed_off_the_scale_is_named_with_its_row(here):
    write("some.csv", "gold,predicted\nA1,A1\nA1,x\n")
    write("map.csv", "from,to\nx,B9\n")
    message = refused(here, "some.csv", "--map", "map.csv", "--scale", "cefr")
    assert "'B9'" in message
    assert "row 2" in message


def test_a_database_of_another_engine_is_refused_without_fetching_what_reads_it(here):
    with closing(sqlite3.connect(here / "runs.db")) as connection:
        connection.execute("create table essays (gold text, predicted text)")
        connection.commit()
    database = ("--sql", "duckdb:///runs.db", "--query", "from essays")
    ran = run("evaluate", *database, "--gold", "gold", "--predicted", "predicted")
    assert ran.code == 2
    assert "duckdb:///runs.db cannot be opened" in ran.err
    assert "download" not in ran.err
