"""What a function does with the names of files that people give it."""

import pytest

import ordinate
from ordinate.errors import BadInput, BadOption

ROWS = "id,gold,predicted\n1,A,A\n2,B,A\n3,B,B\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text(ROWS)


@pytest.mark.parametrize("data", ["data/a.csv", "data", "data/*.csv", ["data/a.csv"]])
def test_items_never_take_the_place_of_a_file_that_is_read(tmp_path, data):
    (tmp_path / "link.csv").symlink_to(tmp_path / "data" / "a.csv")
    for items in ("data/a.csv", tmp_path / "link.csv"):
        with pytest.raises(BadOption, match=r"a\.csv is read, so it cannot be written too"):
            ordinate.evaluate(data, "predicted", "A,B", gold="gold", items=items, force=True)
    assert (tmp_path / "data" / "a.csv").read_text() == ROWS
    ordinate.evaluate(data, "predicted", "A,B", gold="gold", items="data/b.csv")


@pytest.mark.parametrize("data", ["", [""]])
def test_no_name_is_not_the_folder_where_one_is(data):
    with pytest.raises(BadInput, match="A file has no name"):
        ordinate.evaluate(data, "predicted", "A,B", gold="gold")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"id": "id"}, r"id=… and row_order=True say how to join a gold_file=…"),
        (
            {"gold_file": "data/a.csv", "id": "id", "row_order": True},
            "by id=… or by row_order=True",
        ),
        (
            {"gold_file": "data/a.csv", "row_order": True, "bad_lines": "skip"},
            "bad_lines='skip' le",
        ),
        ({"header": "none"}, "header='none' goes with columns=…"),
        ({"memory": "much"}, "memory=… takes a size"),
        ({"delimiter": "ab"}, "delimiter=… takes one character"),
        ({"delimiter": 3}, "delimiter=… takes a string, not 3"),
        ({"memory": 5}, "memory=… takes a string, not 5"),
        ({"quote": "x"}, "quote=… takes 'double' or 'none', not 'x'"),
        ({"decimal": ";"}, "decimal=… takes ',' or '.', not ';'"),
        ({"bad_lines": True}, "bad_lines=… takes 'error' or 'skip', not True"),
        ({"header": "none", "columns": "a,b"}, "columns=… takes a list of strings, not 'a,b'"),
        ({"gold_file": "data/a.csv", "id": ["id"]}, r"id=… takes a string, not \['id'\]"),
    ],
)
def test_errors_of_files_name_arguments_in_python(options, said):
    with pytest.raises((BadInput, BadOption), match=said):
        ordinate.evaluate(ordinate.Files("data/a.csv", **options), "predicted", "A,B", gold="gold")


def test_a_file_whose_lines_are_all_bad_says_so(tmp_path):
    (tmp_path / "a.csv").write_text("gold,predicted\nA\nB\n")
    with pytest.raises(BadInput, match=r"no line with 2 columns.*the first is line 2 \('A'\)"):
        ordinate.evaluate(
            ordinate.Files("a.csv", bad_lines="skip"), "predicted", "A,B", gold="gold"
        )


def test_maps_that_are_none_are_refused():
    with pytest.raises(BadOption, match=r"label_map='map\.json' is no label map"):
        ordinate.evaluate("data/a.csv", "predicted", "A,B", gold="gold", label_map="map.json")
    with pytest.raises(BadOption, match=r"margins=0\.1 names no metric"):
        ordinate.compare("data/a.csv", ["predicted", "gold"], "A,B", margins=0.1)
