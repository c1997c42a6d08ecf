"""Sheets of spreadsheets, read as the CSV that a spreadsheet would export."""

import datetime as dt
import gzip
import json
import zipfile

import openpyxl
import pytest
from command import run

from ordinate.errors import BadInput, MissingExtra
from ordinate.readers import file_formats, spreadsheets
from ordinate.readers.columns import FileOptions
from ordinate.readers.file_formats import open_sources
from ordinate.readers.item_columns import read_labels

ROWS = [
    ["id", "level", "day", "at", "seen", 2024, None],
    [
        "=x",
        1.0,
        dt.date(2024, 1, 2),
        dt.datetime.fromisoformat("2024-01-02T03:04"),
        True,
        0.5,
        None,
    ],
    [7, "a\nb", None, dt.time(3, 4), False, 1e300, "x"],
    [None] * 7,
    ["", 3, None, None, None, 1234567, None],
]
TEXTS = {
    "id": ["=x", "7", None],
    "level": ["1", "a\nb", "3"],
    "day": ["2024-01-02", None, None],
    "at": ["2024-01-02 03:04:00", "03:04:00", None],
    "seen": ["true", "false", None],
    "2024": ["0.5", "1e+300", "1234567"],
    "(column 7)": [None, "x", None],
}


def save(path, **sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        for row in (added := book.create_sheet(name)) and rows:
            added.append(row)
        for row in added.iter_rows():
            for cell in row:
                cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type
    book.save(path)
    return path


def read_texts(path, **options):
    with open_sources(FileOptions(**options)) as reader:
        (source,) = reader.describe_files([str(path)])
        return {name: read_labels([source], name).tolist() for name in source.columns}


@pytest.mark.parametrize("name", ["some.xlsx", "some.XLSX", "some.bin", "some.xlsx.gz"])
def test_a_sheet_is_read_as_it_is_shown(tmp_path, name):
    packed = save(tmp_path / "first.xlsx", Daten=ROWS).read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(packed) if name.endswith("gz") else packed)
    assert read_texts(tmp_path / name) == TEXTS


def test_one_of_several_sheets_is_named(tmp_path):
    path = save(tmp_path / "some.xlsx", Daten=ROWS, leer=[])
    with pytest.raises(BadInput, match=r"several sheets: name one of 'Daten', 'leer' with sheet=…"):
        read_texts(path)
    with pytest.raises(BadInput, match=r"no sheet 'daten': name one of 'Daten', 'leer'"):
        read_texts(path, sheet="daten")
    assert read_texts(path, sheet="Daten") == TEXTS


def test_a_command_reads_a_sheet(tmp_path):
    path = save(tmp_path / "some.xlsx", a=[["gold", "predicted"], [1, 1.0], [2, 3], [3, 3]], b=[])
    ran = run("evaluate", path, "--scale", "1..3", "--sheet", "a", "--format", "json")
    assert json.loads(ran.out)["confusion_matrix"] == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_an_experiment_is_laid_out_from_one_of_several_sheets(tmp_path):
    texts = [[f"a text of words {k}", ["A1", "A2"][k % 2]] for k in range(20)]
    path = save(tmp_path / "some.xlsx", Notes=[], Essays=[["text", "level"], *texts])
    ran = run("init", tmp_path / "study", "--train", path)
    assert (ran.code, "--sheet" in ran.err) == (2, True)
    assert run("init", tmp_path / "study", "--train", path, "--sheet", "Essays").code == 0
    assert run("check", "-e", tmp_path / "study").code == 0


def test_a_sheet_that_would_take_all_memory_ends_in_one_line(tmp_path):
    path = save(tmp_path / "far.xlsx", a=[["gold", "predicted"]])
    book = openpyxl.load_workbook(path)
    book.active["XFD1048576"] = 1  # readers keep what lies between
    book.save(path)
    ran = run("evaluate", path)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "more than 4 GB" in ran.err


def test_what_unpacks_to_more_than_a_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(file_formats, "UNPACKED_BYTES", 10**6)
    text = b"gold,predicted\n" + b"A1,A1\n" * 10**6
    (tmp_path / "some.csv.gz").write_bytes(gzip.compress(text))
    path = save(tmp_path / "some.xlsx", a=[["gold", "predicted"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/more.xml", bytes(10**7))
    for name in ("some.csv.gz", "some.xlsx"):
        ran = run("evaluate", tmp_path / name)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "unpacks to more than" in ran.err
    monkeypatch.setattr(file_formats, "UNPACKED_BYTES", len(text))
    assert run("evaluate", tmp_path / "some.csv.gz").code == 0


def test_a_missing_reader_is_answered_with_the_line_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheets, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install 'ordinate\[excel\]'"):
        read_texts(save(tmp_path / "some.xlsx", a=ROWS))
