"""Decimal commas and thousands, from every file and for every command that reads numbers."""

import csv
import json

import openpyxl
import pytest
from command import run

from ordinate.tuning.regress import predict_regression, tune_regression

LEVELS, HEADER = ("low", "mid", "high"), ["id", "gold", "w", "y", "p", "p_low", "p_mid", "p_high"]
NUMBERS = [(k + 0.5, 1000.25 + k * 7.5, 1003.75 + k * 7.25, 0.25, 0.5, 0.25) for k in range(30)]
OPTIONS = {
    "weights": ("evaluate", "--predicted", "gold", "--weights", "w"),
    "probabilities": ("evaluate", "--probabilities", "p_"),
    "probabilities by group": ("evaluate", "--probabilities", "p_", "--groups", "id"),
    "skipping": ("evaluate", "--predicted", "gold", "--weights", "w", "--bad-lines", "skip"),
    "scores": ("evaluate", "--predicted", "y", "--edges", "1070,1140"),
    "decode": ("decode", "--probabilities", "p_", "--metric", "mae"),
    "regression": ("evaluate-regression", "--target", "y", "--predicted", "p", "--weights", "w"),
    "joined": ("evaluate-regression", "--target", "y", "--predicted", "p", "--id", "id"),
    "compare": ("compare", "--systems", "g2,g3", "--weights", "w"),
}


def spell(number, mark):
    text = f"{number:,.3f}"
    return text if mark == "." else text.translate(str.maketrans(",.", ".,"))


def write_rows(path, mark=None, delimiter=";"):
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow([*HEADER, "g2", "g3"])
        for k, row in enumerate(NUMBERS):
            level, cells = LEVELS[k % 3], (spell(x, mark) if mark else repr(x) for x in row)
            out.writerow([f"1.{k:03}", level, *cells, level, "mid"])
    return path


def read_report(path, name, *more):
    command, *options = OPTIONS[name]
    scale = [] if "regression" in command else ["--scale", ",".join(LEVELS)]
    gold = [] if scale == [] else ["--gold", "gold"]
    joined = ["--gold-file", path] if name == "joined" else []
    ran = run(command, path, *options, *scale, *gold, *joined, *more, "--format", "json")
    if command == "decode" and ran.code == 0:
        return {"levels": ran.out, "report": _drop_source(json.loads(ran.err))}
    return _drop_source(json.loads(ran.out)) if ran.code == 0 else ran.err


def _drop_source(found):
    return {key: x for key, x in found.items() if key not in {"source", "provenance"}}


@pytest.mark.parametrize("mark", [",", "."])
@pytest.mark.parametrize("name", OPTIONS)
def test_numbers_with_decimal_commas_and_thousands_are_those_with_points(tmp_path, name, mark):
    plain = read_report(write_rows(tmp_path / "some.csv"), name)
    assert isinstance(plain, dict), plain
    written = write_rows(tmp_path / "some.csv", mark, {",": ";", ".": ","}[mark])
    assert read_report(written, name, "--decimal", mark) == plain
    refused = read_report(written, name)
    if mark == "," or "regression" in OPTIONS[name][0]:  # only there are numbers above 1,000
        assert f"--decimal {mark}" in refused


@pytest.mark.parametrize("name", ["weights", "probabilities", "scores", "regression", "joined"])
def test_a_point_is_no_decimal_comma(tmp_path, name):
    said = read_report(write_rows(tmp_path / "some.csv"), name, "--decimal", ",")
    assert "(--decimal ,)" in said


def test_a_model_is_tuned_and_used_on_a_spreadsheet_with_decimal_commas(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    sheet = book.create_sheet("Dichte")
    sheet.append(["a", "b", "y"])
    for k in range(40):  # numbers and texts in one column, as where a part was pasted
        cells = (k + 0.125, 1000.5 - k % 7, 3.0 * k)
        sheet.append([spell(x, ",") if k % 5 == 0 else x for x in cells])
    book.save(tmp_path / "some.xlsx")
    named = {"decimal": ",", "sheet": "Dichte"}
    tuned = tune_regression(tmp_path / "some.xlsx", "y", models="poly_ridge", trials=1, **named)
    found = predict_regression(tuned, tmp_path / "some.xlsx", **named)
    assert found.values == pytest.approx([3.0 * k for k in range(40)], abs=1)
