"""Files as tables: what their folders are called is no data, and no row of them is lost."""

import csv
import gzip
import json
import random

import duckdb
import pytest
from command import read_values, run
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from law_examples import examples

from ordinate.errors import BadInput
from ordinate.readers.duckdb_connection import LONGEST_LINE, read_rows
from ordinate.readers.file_formats import open_sources

SHORT_LINE = 200_000  # bytes: a file with several buffers is still small

# --- folders named column=value ------------------------------------------------------------------

ROWS = {
    "gold": ["A1", "A2", "B1", "B2", "C1", "C2"] * 5,
    "predicted": ["A1", "A2", "B1", "B2", "C1", "C1"] * 5,
    "x": [float(k % 11) for k in range(30)],
    "y": [2.0 * (k % 11) + 0.01 * k for k in range(30)],
    "p": [2.0 * (k % 11) for k in range(30)],
}
COMMANDS = {
    "evaluate": ("evaluate", "{}", "--interval", "none"),
    "compare": ("compare", "{}", "--systems", "predicted,gold2", "--metrics", "accuracy"),
    "regression": (
        *("evaluate-regression", "{}", "--target", "y"),
        *("--predicted", "p", "--interval", "none"),
    ),
    "tune-regression": (
        *("tune-regression", "{}", "--target", "y", "--features", "x,p", "--trials", "1"),
        *("--models", "poly_ridge", "--folds", "2", "-e", "{out}"),
    ),
}
NAMES = st.sampled_from([*ROWS, "gold2", "other", "c0", "json"])
VALUES = st.text("abcXYZ019._- ", min_size=1, max_size=5).filter(lambda text: text.strip(" ."))


def written(path, form):
    """The same rows as Parquet, CSV or JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    rows = [row | {"gold2": row["gold"]} for row in rows]
    if form == "parquet":
        (path.parent / "rows.json").write_text(json.dumps(rows))
        duckdb.sql(
            f"COPY (FROM read_json_auto('{path.parent}/rows.json', hive_partitioning=false)) "
            f"TO '{path}' (FORMAT parquet)"
        )
        (path.parent / "rows.json").unlink()
    elif form == "csv":
        with path.open("w", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answer(command, path, out):
    """What a command says of a file, but for where it lies."""
    words = [word.format(path, out=out) for word in COMMANDS[command]]
    ran = run(*words, "--format", "json")
    assert ran.code == 0
    found = read_values(ran.out)
    for key in ("source", "data", "run", "winner", "models", "name"):
        found.pop(key, None)
    return found


def test_parquet_in_a_folder_named_predicted_c2_has_its_own_predictions(tmp_path):
    path = written(tmp_path / "predicted=C2" / "x.parquet", "parquet")
    assert answer("evaluate", path, None)["metrics"]["accuracy"]["value"] == pytest.approx(5 / 6)


@pytest.mark.parametrize(("form", "folder"), [("csv", "c0=C2"), ("jsonl", "json=C2")])
def test_texts_in_a_folder_named_like_a_column_have_their_own_labels(tmp_path, form, folder):
    path = written(tmp_path / folder / f"x.{form}", form)
    assert answer("evaluate", path, None)["metrics"]["accuracy"]["value"] == pytest.approx(5 / 6)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What each command says of a file in a folder with a plain name."""
    root = tmp_path_factory.mktemp("plain")
    path = written(root / "x.parquet", "parquet")
    return {command: answer(command, path, root / "out") for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
@given(folders=st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=3))
@examples(5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_names_of_folders_do_not_change_the_answer(command, plain, tmp_path_factory, folders):
    root = tmp_path_factory.mktemp("named")
    inner = root.joinpath(*(f"{name}={value}" for name, value in folders))
    path = written(inner / "x.parquet", "parquet")
    assert answer(command, path, root / "out") == plain[command]


# --- long rows -----------------------------------------------------------------------------------


def rows_of(path, **limits):
    """How many rows and letters are read of a file."""
    with open_sources(**limits) as reader:
        source = reader.describe_files([str(path)])[0]
        letters = "SELECT count(*), coalesce(sum(length(c2)), 0) FROM "
        return read_rows(reader.connection, letters + source.sql, source.name)[0]


@pytest.mark.parametrize(
    "text", ["x" * (2 * LONGEST_LINE + 1), '"' + "a line\n" * (2 * LONGEST_LINE // 7 + 1) + '"']
)
def test_a_last_row_of_more_than_32_mb_is_not_dropped_but_refused(tmp_path, text):
    path = tmp_path / "long.csv"
    path.write_text("gold,predicted,text\n" + "A1,A1,x\n" * 10 + f"A1,A2,{text}\n")
    ran = run("evaluate", path, "--scale", "cefr")
    assert (ran.code, ran.out) == (2, "")
    assert "the row in line 12 has more than 16,000,000 bytes" in ran.err


def test_quoted_line_breaks_above_32_mb_are_read(tmp_path):
    path = tmp_path / "quoted.csv"
    text = "A1,A2,fine\r\n" * 100_000
    path.write_text("gold,predicted,text\r\n" + f'A1,A1,"{text}"\r\n' * 30, newline="")
    assert path.stat().st_size > 2 * LONGEST_LINE
    assert rows_of(path) == (30, 30 * len(text))


def csv_file(path, texts, end="\n"):
    """A valid file with these texts in its last column."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator=end)
        out.writerow(["gold", "predicted", "text"])
        out.writerows([["A1", "A2", text] for text in texts])
    return path


@pytest.mark.parametrize("seed", range(20))
def test_a_file_is_read_whole_or_refused(tmp_path, seed):
    chance = random.Random(seed)  # noqa: S311 - of a test
    end = chance.choice(["\n", "\r\n", "\r"])
    pieces = chance.sample(["plain ", 'say "hi" ', "a,b,", f"A1,A2,x{end}", f"word{end}", '""'], 3)
    most = chance.choice([20, 2_000, 20_000])
    count = 3_000_000 // most // 20
    texts = [chance.choice(pieces) * chance.randint(0, most) for _ in range(count)]
    texts = [text[: SHORT_LINE // 3] for text in texts]
    long = chance.random() < 0.5
    if long:
        size = chance.choice([1.1, 2.1, 4.0])
        texts[chance.choice([0, -1, -1, len(texts) // 2])] = "y" * int(SHORT_LINE * size)
    path = csv_file(tmp_path / "any.csv", texts, end)
    if long:
        with pytest.raises(BadInput, match="cannot be read"):
            rows_of(path, longest_line=SHORT_LINE)
    else:
        found = rows_of(path, longest_line=SHORT_LINE)
        assert found == (len(texts), sum(map(len, texts)))


HEADER, ROW = "gold,predicted,text\n", "A1,A1,x\n"
BROKEN = {
    "a quote is not closed": HEADER + ROW * 100 + 'A1,C2,"open\n' + "A1,C2,x\n" * 899,
    "the last quote is not closed": HEADER + ROW * 10 + 'A1,A2,"open',
    "a row is short": HEADER + ROW * 10 + "A1\n" + ROW,
    "a quote ends within a cell": HEADER + ROW * 10 + 'A1,A2,"a"b\n' + ROW,
}
LARGE = HEADER + ROW * 100_000  # several buffers
QUOTED = HEADER + 'A1,A2,"two\nlines"\n' * 50_000


@pytest.mark.parametrize("start", ["", LARGE, QUOTED])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_file_is_refused_however_large_it_is(tmp_path, broken, start, packed):
    path = tmp_path / ("broken.csv.gz" if packed else "broken.csv")
    text = (start + BROKEN[broken].removeprefix(HEADER) if start else BROKEN[broken]).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(BadInput, match="cannot be read"):
        rows_of(path, longest_line=SHORT_LINE)


@pytest.mark.parametrize("tail", ["\n \n", "\nA1\n", "\nA1,A2\n", '\n""\n', "\n \nA1,A2,w\n"])
def test_a_long_row_before_a_malformed_line_is_refused(tmp_path, tail):
    path = tmp_path / "long.csv"
    path.write_text(HEADER + ROW * 10 + "A1,A2," + "x" * 500_000 + tail)
    with pytest.raises(BadInput, match="cannot be read"):
        rows_of(path, longest_line=SHORT_LINE)


def test_quotes_within_plain_cells_are_read_as_they_stand(tmp_path):
    path = tmp_path / "inches.csv"
    path.write_text(LARGE + 'A1,A2,a 5" disk\n' + ROW)
    assert rows_of(path, longest_line=SHORT_LINE)[0] == 100_002


def test_a_folder_named_like_an_option_of_the_reader_changes_nothing(tmp_path):
    for folder in ("parallel=true", "parallel=false"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parallel=true/x.csv").write_text(HEADER + "A1\n")
    (tmp_path / "parallel=false/x.csv").write_text(HEADER + ROW)
    with pytest.raises(BadInput, match="cannot be read"):
        rows_of(tmp_path / "parallel=true/x.csv")


@pytest.mark.parametrize("end", ["", ",", ",\n\n"])
def test_a_json_array_that_was_cut_off_is_refused(tmp_path, end):
    path = tmp_path / "cut.json"
    path.write_text("[" + ",".join(['{"gold": "A1", "predicted": "A1"}'] * 10) + end)
    ran = run("evaluate", path, "--scale", "cefr")
    assert (ran.code, ran.out) == (2, "")
    path.write_text("[" + ",".join(['{"gold": "A1", "predicted": "A1"}'] * 10) + "]\n")
    assert run("evaluate", path, "--scale", "cefr").code == 0
