"""Files as people have them: from the file to the page in at most two errors, which lead on."""

import csv
from pathlib import Path

import pytest
from command import run
from evaluate_reports import filled, report

pytestmark = pytest.mark.usefixtures("here")

GRADES = ["A1", "b1 ", "B2+", "n/a", "", "a 2", "\u04101", "c2", "B1", "A2", "C1", "B2"]
STARS = [("5 stars", (0.6, 0.2, 0.1, 0.05, 0.04)), ("1 star", (0.02, 0.02, 0.1, 0.2, 0.68))]


def write_rows(name, header, rows, delimiter=","):
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return name


def read_refusal(*words):
    ran = run(*words)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    return ran.err


def test_misspelt_and_missing_grades_reach_a_page_after_two_errors():
    rows = [(f"essay {k}", grade, "B1") for k, grade in enumerate(GRADES)]
    write_rows("grades.csv", ("Essay", "Human grade", "Model grade"), rows)
    files = ("evaluate", "grades.csv", "--gold", "Human grade", "--predicted", "Model grade")
    assert "--propose-map" in read_refusal(*files)
    assert run(*files, "--propose-map", "map.csv").code == 0
    with Path("map.csv").open(newline="", encoding="utf-8") as file:
        proposed = dict(csv.reader(file))
    assert {proposed.pop(x) for x in ("\u04101", "n/a")} == {"A1", ""}
    assert "--missing drop" in read_refusal(*files, "--map", "map.csv")
    way = ("--map", "map.csv", "--missing", "drop")
    assert run(*files, *way, "-o", "page.html").code == 0
    found = filled(report(*files[1:], *way))
    assert found == {("A1", "B1"): 2, ("A2", "B1"): 2, ("C1", "B1"): 1, ("C2", "B1"): 1} | {
        (level, "B1"): 2 for level in ("B1", "B2")
    }


def test_stars_in_words_with_rounded_probabilities_reach_a_page_after_two_errors():
    names = ["5 stars", "4 stars", "3 stars", "2 stars", "1 star"]
    rows = [(f"@u{k}", *pair) for k, pair in enumerate(STARS * 20)]
    cells = [(user, stars, *(f"{x:.2f}" for x in shares)) for user, stars, shares in rows]
    write_rows("stars.csv", ("user", "rating", *names), cells)
    options = ("--gold", "rating", "--probabilities", ",".join(names), "--scale", "stars5")
    files = ("evaluate", "stars.csv", *options)
    assert "--propose-map" in read_refusal(*files)
    assert run(*files, "--propose-map", "map.csv").code == 0
    assert "--renormalize" in read_refusal(*files, "--map", "map.csv")
    assert run(*files, "--map", "map.csv", "--renormalize", "-o", "page.html").code == 0
    found = report(*files[1:], "--map", "map.csv", "--renormalize")
    assert filled(found) == {("5", "5"): 20, ("1", "1"): 20}


def test_densities_with_decimal_commas_are_ready_to_tune_after_two_errors():
    cells = [(f"P-{k}", f"{k},5", f"17,{k}", "ja", f"1.{k + 208},61") for k in range(29)]
    cells.append(("P-29", "1,5", "k.A.", "nein", "863,9"))
    header = ("Probe", "Druck (bar)", "Masse [g/mol]", "Chlor", "Dichte (kg/m³)")
    write_rows("dichte.csv", header, cells, ";")
    files = ("tune-regression", "dichte.csv", "--target", header[-1], "-e", "found", "--dry-run")
    assert "--decimal ," in read_refusal(*files)
    assert "--missing drop" in read_refusal(*files, "--decimal", ",")
    ran = run(*files, "--decimal", ",", "--missing", "drop")
    assert ran.code == 0
    assert "'Druck (bar)', 'Masse [g/mol]'" in " ".join(ran.out.split())
    assert "29 items" in ran.out
