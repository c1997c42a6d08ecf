"""Bad input: exit code 2, one helpful line on standard error, and nothing written."""

import gzip
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run

PAIRS = "gold,predicted\nA1,A1\nB1,B2\nC1,C1\n"
INTERNALS = re.compile(
    r"SELECT|LINE \d|\^\^|read_(csv|json|parquet)|struct_pack|sample_size"
    r"|\b__(gold|id|in_|predicted|weight)"
)
LONGEST = 1000  # characters that somebody still reads


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Work in an empty folder, with another one for temporary files."""
    (tmp_path / "work").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def _tree(folder: Path) -> dict[str, bytes | None]:
    """Return every file of a folder with its content; a folder has none."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refused(here: Path, *arguments: str, outputs: bool = True) -> str:
    """Run a command that must fail without a trace, and return its message."""
    before = _tree(here)
    wanted = ("-o", "out.json", "--items", "wrong.csv") if outputs else ()
    ran = run("evaluate", *arguments, *wanted)
    assert (ran.code, ran.out) == (2, "")
    assert _tree(here) == before
    assert re.fullmatch(r"ordinate( evaluate)?: \S.*\n", ran.err), ran.err  # one line
    message = ran.err.rstrip("\n")
    assert message.isprintable()
    assert not INTERNALS.search(message), message
    assert len(message) < LONGEST
    return message


def write(name: str, content: "str | bytes", encoding: str = "utf-8") -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return name


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
    "zip": ("some.xlsx", b"PK\x03\x04" + bytes(60), ("some.xlsx", "binary")),
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


def test_a_folder_is_refused_with_a_pattern_that_would_do(here):
    Path("runs").mkdir()
    Path("runs/a.csv").write_text(PAIRS)
    message = refused(here, "runs")
    assert "runs is a folder" in message
    assert "runs/*.csv" in message


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


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["gold", "predicted"])
def test_an_unknown_label_is_named_with_its_row(here, column):
    rows = [["A1", "A1"]] * 16 + [["A1", "A1"], ["B1", "B1"]]
    rows[16] = ["B3", "A1"] if column == "gold" else ["A1", "B3"]
    write("some.csv", "gold,predicted\n" + "".join(f"{g},{p}\n" for g, p in rows))
    message = refused(here, "some.csv", "--scale", "cefr")
    assert "'B3' (row 17 of column" in message
    assert repr(column) in message
    assert "A1 < A2 < B1 < B2 < C1 < C2" in message
    assert "--map" in message
    assert "--scale" in message


def test_an_unknown_label_of_a_later_file_names_that_file_and_its_row(here):
    write("a.csv", PAIRS)
    write("b.csv", "gold,predicted\nA1,A1\nA1,B7\n")
    message = refused(here, "a.csv", "b.csv", "--scale", "cefr")
    assert "'B7'" in message
    assert "row 2 of b.csv" in message


def test_an_unknown_label_of_a_join_is_named_with_its_id(here):
    write("gold.csv", "id,gold\ne1,A1\ne2,B1\n")
    write("run.csv", "id,predicted\ne2,B7\ne1,A1\n")
    message = refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id", "--scale", "cefr")
    assert "'B7'" in message
    assert "id e2" in message


@pytest.mark.parametrize(
    "label", ["NA", "a1", " A1", "A1 ", "NaN", "A1\n", "\x1b[31mA1", "'", "\u202eA1"]
)
def test_a_label_is_unknown_unless_it_is_on_the_scale_to_the_letter(here, label):
    write("some.csv", f'gold,predicted\nA1,A1\nA1,"{label}"\n')
    message = refused(here, "some.csv", "--scale", "cefr")
    assert "row 2" in message
    assert repr(label) in message


@pytest.mark.parametrize(
    ("n", "places"), [(1, "row 2"), (7, "row 2, row 3, row 4, row 5, row 6, …")]
)
@pytest.mark.parametrize("column", ["gold", "predicted"])
def test_missing_labels_are_counted_and_placed(here, column, n, places):
    line = ",A1\n" if column == "gold" else "A1,\n"
    write("some.csv", "gold,predicted\nA1,A1\n" + line * n + "A1,A2\n")
    message = refused(here, "some.csv")
    assert f"{n} of {n + 2} " in message
    assert f"({places})" in message
    assert "--missing drop" in message
    assert ("--missing worst" in message) == (column == "predicted")


def test_missing_predictions_of_a_join_are_named_by_id(here):
    write("gold.csv", "id,gold\n1,A1\n2,B1\n3,C1\n")
    write("run.csv", "id,predicted\n3,C1\n2,\n")
    message = refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id")
    assert "2 of 3 predictions are missing (id 1, id 2)" in message


def test_a_label_that_is_renamed_to_nothing_is_missing_at_its_row(here):
    write("some.csv", "gold,predicted\nA1,A1\nB1,unsure\n")
    write("map.csv", "from,to\nunsure,\n")
    message = refused(here, "some.csv", "--map", "map.csv")
    assert "1 of 2 predictions are missing (row 2)" in message


def test_gold_that_is_missing_cannot_be_counted_as_wrong(here):
    write("some.csv", "gold,predicted\nA1,A1\n,A1\n")
    message = refused(here, "some.csv", "--missing", "worst")
    assert "1 of 2 gold labels are missing (row 2)" in message


def test_there_must_be_something_left_to_evaluate(here):
    write("some.csv", "gold,predicted\n,A1\nA1,\n")
    assert "no items" in refused(here, "some.csv", "--missing", "drop", "--scale", "cefr")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("1,2", "--scale"),  # numbers identify no scale
        ("low,high", "--scale"),
        ("neutral,neutral", "more than one preset"),
        ("A1,low", "--scale"),
    ],
)
def test_labels_without_a_scale_are_refused(here, labels, said):
    assert said in refused(here, write("some.csv", f"gold,predicted\n{labels}\n"))


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ("A1", "two"),
        ("1..1", "two"),
        ("", "scale"),
        (",", "label"),
        ("A1,A1", "twice"),
        ("A1,,A2", "missing"),
        ("cerf", "'cefr'"),
        ("1..", "1..6"),
        ("1..1000000", "1,000,000"),
    ],
)
def test_what_is_no_scale_is_refused(here, scale, said):
    assert said in refused(here, write("some.csv", PAIRS), "--scale", scale)


# --- metrics and limits --------------------------------------------------------------------------

METRICS = {
    "acuracy": "'accuracy'",
    "kapa": "kappa",
    "cem-ord": "not a metric|cem_ord",
    "xyz": "ordinate metrics",
    "accuracy(": "not a metric",
    "accuracy)": "not a metric",
    "accuracy(n=1)": "no option 'n'",
    "accuracy_within(m=1)": "options are: n",
    "accuracy_within(n=-1)": "n=-1",
    "accuracy_within(n=1.5)": "n=1.5",
    "accuracy_within(n='a')": "n='a'",
    "accuracy_within(n=True)": "n=True",
    "accuracy_within(2)": "not a metric",
    "weighted_kappa(power=1e999)": "power=inf",
    "weighted_kappa(power=nan)": "power|not a metric",
    "weighted_kappa(power=)": "not a metric",
    "weighted_kappa(power=1,power=2)": "power",
    "weighted_kappa(**{'power': 1})": "not a metric|option",
    "rennie_srebro(penalty='none')": "'hinge', 'logistic', 'zero_one'",
    "rennie_srebro(penalty=[])": "penalty",
    "__import__('os').getcwd()": "not a metric",
    "accuracy.function": "not a metric",
    "all,accuracy": "'all'",
    "": "metric",
    ",": "metric",
}


@pytest.mark.parametrize("metrics", METRICS)
def test_what_is_no_metric_is_refused(here, metrics):
    message = refused(here, write("some.csv", PAIRS), "--metrics", metrics)
    assert re.search(METRICS[metrics], message), message


LIMITS = {
    "accuracy": "METRIC=VALUE",
    "accuracy=": "METRIC=VALUE",
    "=0.5": "METRIC=VALUE",
    "accuracy=much": "METRIC=VALUE",
    "accuracy=nan": "METRIC=VALUE",
    "accuracy=0,5": "METRIC=VALUE",
    "accuracy>0.5": "METRIC=VALUE",
    "weighted_kappa(power=1)": "METRIC=VALUE",
    "acuracy=0.5": "'accuracy'",
    "accuracy(n=1)=0.5": "no option 'n'",
    "": "METRIC=VALUE",
}


@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_no_limit_is_refused(here, limit):
    message = refused(here, write("some.csv", PAIRS), "--fail-under", limit)
    assert LIMITS[limit] in message


def test_a_bad_limit_is_refused_even_beside_one_that_fails(here):
    write("some.csv", PAIRS)
    refused(here, "some.csv", "--fail-under", "accuracy=1", "--fail-under", "accuracy=x")


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weight",
    ["-1", "-0.5", "x", "", "inf", "-inf", "nan", "1e999", "1,5", "0x10", "\x1b[1m", "a\nb"],
)
def test_a_bad_weight_is_named_with_its_row(here, weight):
    write("some.csv", f'gold,predicted,w\nA1,A1,1\nB1,B2,"{weight}"\n')
    message = refused(here, "some.csv", "--weights", "w")
    assert "row 2 of column 'w'" in message
    assert weight in message or not weight.isprintable()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), None])
def test_a_bad_weight_of_a_parquet_file_is_named_with_its_row(here, weight):
    columns = {"gold": ["A1", "B1"], "predicted": ["A1", "B1"], "w": [1.0, weight]}
    pq.write_table(pa.table(columns), "some.parquet")
    assert "row 2 of column 'w'" in refused(here, "some.parquet", "--weights", "w")


def test_a_missing_weight_of_a_join_is_named_by_id(here):
    write("gold.csv", "id,gold,w\n1,A1,1\n2,B1,\n")
    write("run.csv", "id,predicted\n2,B1\n1,A1\n")
    asked = ("--gold-file", "gold.csv", "--id", "id", "--weights", "w")
    assert "id 2 of column 'w'" in refused(here, "run.csv", *asked)


def test_weights_that_are_all_0_leave_nothing_to_evaluate(here):
    write("some.csv", "gold,predicted,w\nA1,A1,0\nB1,B2,0\n")
    message = refused(here, "some.csv", "--weights", "w")
    assert "weight" in message


def test_weights_whose_sum_is_no_number_are_refused(here):
    write("some.csv", "gold,predicted,w\nA1,A1,1e308\nA1,A1,1e308\n")
    assert "weight" in refused(here, "some.csv", "--weights", "w")


# --- joins ---------------------------------------------------------------------------------------


def _join(here, gold: str, answers: str, *more: str) -> str:
    write("gold.csv", gold)
    write("run.csv", answers)
    return refused(here, "run.csv", "--gold-file", "gold.csv", *more)


GOLD = "id,gold\n1,A1\n2,B1\n"
RUN = "id,predicted\n1,A1\n2,B2\n"


def test_two_files_without_an_id_are_refused_with_both_ways_out(here):
    message = _join(here, GOLD, RUN)
    assert "--id" in message
    assert "--row-order" in message


def test_unequal_lengths_in_row_order_are_refused_with_both_lengths(here):
    message = _join(here, GOLD + "3,C1\n", RUN, "--row-order")
    assert "3 rows" in message
    assert "2" in message
    assert "--id" in message


@pytest.mark.parametrize("side", ["gold.csv", "run.csv"])
@pytest.mark.parametrize(("line", "said"), [("1,C1\n", "'1'"), (",C1\n,C1\n", "2 rows have no id")])
def test_ids_are_unique_and_never_missing(here, side, line, said):
    gold, answers = (GOLD + line, RUN) if side == "gold.csv" else (GOLD, RUN + line)
    message = _join(here, gold, answers, "--id", "id")
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
    message = _join(here, gold, answers, "--id", "id")
    assert side in message
    assert "'ids'" in message


def test_a_missing_gold_file_is_named(here):
    write("run.csv", RUN)
    message = refused(here, "run.csv", "--gold-file", "absent.csv", "--id", "id")
    assert "'absent.csv'" in message


def test_files_of_which_no_id_matches_are_refused(here):
    message = _join(here, GOLD, "id,predicted\n8,A1\n9,B1\n", "--id", "id")
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


# --- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-o", "--output", "--items"])
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("absent/out.csv", "absent/out.csv"),
        ("kept.csv", "--force"),
        ("folder", "folder"),
        ("some.csv/out.csv", "some.csv/out.csv"),
        ("x" * 300, "xxx"),
        ("", "-o|--output|--items|name|file"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(here, flag, path, said):
    write("some.csv", PAIRS)
    write("kept.csv", "kept")
    Path("folder").mkdir()
    message = refused(here, "some.csv", flag, path, outputs=False)
    assert re.search(said, message)


def test_a_folder_is_no_output_even_with_force(here):
    write("some.csv", PAIRS)
    Path("folder").mkdir()
    for flag in ("-o", "--items"):
        assert "folder" in refused(here, "some.csv", flag, "folder", "--force", outputs=False)


# --- the command itself --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["some.csv", "--missing", "ignore"],
        ["some.csv", "--format", "xml"],
        ["some.csv", "--gold"],
        ["some.csv", "--unknown"],
        ["some.csv", "--met", "all"],  # no abbreviations: they break when options are added
    ],
)
def test_a_command_that_cannot_be_understood_is_one_line_that_says_where_to_read(here, arguments):
    write("some.csv", PAIRS)
    assert "--help" in refused(here, *arguments, outputs=False)


@pytest.mark.parametrize(
    "name", ["new\nline.csv", "\x1b[31mred.csv", "bell\x07.csv", "\u202egnp.csv"]
)
def test_no_file_name_can_drive_the_terminal(here, name):
    refused(here, write(name, ""))
    refused(here, write(name, "gold,predicted\nA1\n"))
    refused(here, write(name, "gold,predicted\n"))
    refused(here, name + "?absent")
    refused(here, write("some.csv", PAIRS), "--map", name, outputs=False)
    refused(here, "some.csv", "-o", name, outputs=False)
    refused(here, "some.csv", "-o", f"absent {name}/x", outputs=False)


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31mred", "x\x07", "\u202ex"])
def test_no_cell_can_drive_the_terminal(here, text):
    refused(here, write("some.csv", f'gold,predicted\n"{text}",A1\n'))
    refused(here, write("some.csv", f'gold,"{text}"\nA1,A1\n'))
    refused(here, write("some.csv", f'gold,predicted\nA1,"{text}",A1\n'))
    refused(here, write("some.csv", f'gold,predicted,w\nA1,A1,"{text}"\n'), "--weights", "w")
    refused(here, write("some.csv", PAIRS), "--scale", f'"{text}",b')
    write("gold.csv", f'id,gold\n"{text}",A1\n"{text}",A1\n')
    write("run.csv", f'id,predicted\n"{text}",A1\n')
    refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id")
    write("gold.csv", f'id,gold\n"{text}",\n')
    refused(here, "run.csv", "--gold-file", "gold.csv", "--id", "id", "--scale", "cefr")


def test_a_long_line_is_not_repeated_in_the_message(here):
    refused(here, write("some.csv", "gold,predicted,text\nA1,A1," + "word " * 20_000 + ",x\n"))


def test_a_long_label_is_not_repeated_in_the_message(here):
    refused(here, write("some.csv", "gold,predicted\nA1," + "word " * 20_000 + "\n"))
    refused(here, "some.csv", "--scale", "cefr")


def test_many_columns_are_not_all_listed(here):
    names = [f"a_rather_long_name_of_a_column_{k}" for k in range(500)]
    write("some.csv", ",".join(names) + "\n" + ",".join("x" * 500) + "\n")
    refused(here, "some.csv")


def test_a_refusal_leaves_no_temporary_copies(here):
    write("some[1].csv", "gold,predicted\nA1,ZZ\n", "utf-16")
    refused(here, "some[1].csv", "--scale", "cefr")
    assert not list((here / "temporary").iterdir())
