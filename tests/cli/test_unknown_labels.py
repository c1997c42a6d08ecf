"""Labels that the scale does not have: one error, a proposed map, tidied labels, cut scores."""

import csv
import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from command import run
from evaluate_reports import filled, report, write
from refusals import refused

import ordinate
from ordinate.errors import BadOption, BadScale, OffScale
from ordinate.tuning.experiment.folder import Experiment

pytestmark = pytest.mark.usefixtures("here")

MESSY = ["b2", " B2", "B2+", "n/a", "B 1", "Cl", "B1.", "b2", "A1", "C2"]
CLEAN = ["B2", "B2", "B2", None, "B1", "C1", "B1", "B2", "A1", "C2"]
NEAREST = {"b2": "B2", " B2": "B2", "B2+": "B2", "n/a": None, "B 1": "B1", "Cl": "C1", "B1.": "B1"}
PREDICTED = ["B2"] * 8 + ["A1", "c2"]
LEVELS = "1..6"
SCORES = [0.7, 1.5, 2.49, 3.2, 4.6, 6.1]
EDGES = [1.5, 2.5, 3.5, 4.5, 5.5]
CUT = [1, 2, 2, 3, 5, 6]


def write_columns(name: str, **columns: list[object]) -> str:
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return name


def count_rows(gold: list[object], predicted: list[object]) -> dict[tuple[str, str], int]:
    pairs = [(str(a), str(b)) for a, b in zip(gold, predicted, strict=True) if a is not None]
    return {pair: pairs.count(pair) for pair in pairs}


MESSY_COLUMNS = {
    "columns": lambda: ((MESSY, PREDICTED), {}),
    "frame": lambda: (
        (pl.DataFrame({"g": MESSY, "p": PREDICTED}),),
        {"gold": "g", "predicted": "p"},
    ),
    "lazy frame": lambda: (
        (pl.LazyFrame({"g": MESSY, "p": PREDICTED}),),
        {"gold": "g", "predicted": "p"},
    ),
}


@pytest.mark.parametrize("source", MESSY_COLUMNS)
def test_one_error_lists_all_unknown_labels_of_both_columns_and_its_map_is_the_way_out(source):
    columns, names = MESSY_COLUMNS[source]()
    with pytest.raises(OffScale, match=r"'b2' \(2: B2\?\).*'n/a' \(1\).*label_map=") as caught:
        ordinate.evaluate(*columns, **names)
    assert caught.value.proposed_map == NEAREST | {"c2": "C2"}
    found = ordinate.evaluate(
        *columns, **names, label_map=caught.value.proposed_map, missing="drop", interval=None
    )
    assert found.confusion_matrix.n == 9
    assert found.metrics["accuracy"].value == pytest.approx(6 / 9)


def test_systems_side_by_side_list_their_unknown_labels_together():
    with pytest.raises(OffScale) as caught:
        ordinate.compare(MESSY, {"a": PREDICTED, "b": ["C3"] * 10})
    assert caught.value.proposed_map == NEAREST | {"c2": "C2", "C3": None}


def test_a_proposed_map_is_written_looked_through_and_used(here):
    write_columns("some.csv", gold=MESSY, predicted=PREDICTED)
    assert "--propose-map" in refused(here, "some.csv", outputs=False)
    ran = run("evaluate", "some.csv", "--propose-map", "map.csv")
    assert ran.code == 0
    assert "7 of 8 unknown labels" in ran.out
    with Path("map.csv").open(newline="", encoding="utf-8") as file:
        assert dict(csv.reader(file)) == {"from": "to", "c2": "C2"} | {
            label: level or "" for label, level in NEAREST.items()
        }
    found = report("some.csv", "--map", "map.csv", "--missing", "drop")
    assert filled(found) == count_rows(CLEAN, [*PREDICTED[:9], "C2"])


def test_a_map_in_use_is_completed_by_the_proposal():
    write_columns("some.csv", gold=["top", "b1"], predicted=["B1", "B1"])
    write("map.csv", "from,to\ntop,c2\n")
    ran = run("evaluate", "some.csv", "--map", "map.csv", "--propose-map", "more.csv")
    assert ran.code == 0
    found = report("some.csv", "--map", "more.csv")
    assert filled(found) == {("C2", "B1"): 1, ("B1", "B1"): 1}


@pytest.mark.parametrize("scale", [(), ("--scale", "cefr")])
def test_tidied_labels_are_a_declared_step_that_the_report_names(scale):
    write_columns("some.csv", gold=["b2", " B1 ", "Ｃ１", "C1"], predicted=["B2", "B1", "c1", "C1"])
    found = report("some.csv", "--tidy-labels", *scale)
    assert filled(found) == {("B2", "B2"): 1, ("B1", "B1"): 1, ("C1", "C1"): 2}
    (note,) = [x for x in found["source"]["notes"] if "tidied" in x]
    assert "'b2' as B2" in note
    assert "' B1 ' as B1" in note
    assert found["scale"] == ["A1", "A2", "B1", "B2", "C1", "C2"]


@pytest.mark.parametrize("source", MESSY_COLUMNS)
def test_tidied_labels_in_python(source):
    columns, names = MESSY_COLUMNS[source]()
    rest = {"B2+": "B2", "n/a": None, "B 1": "B1", "Cl": "C1", "B1.": "B1"}
    found = ordinate.evaluate(
        *columns, **names, label_map=rest, tidy_labels=True, missing="drop", interval=None
    )
    assert found.confusion_matrix.n == 9
    assert any("'c2' as C2" in note for note in found.origin.notes)


def test_levels_that_differ_in_case_alone_are_not_merged():
    with pytest.raises(OffScale):
        ordinate.evaluate(["a", "A "], ["a", "A"], ["a", "A"], tidy_labels=True)


def test_a_proposed_scale_has_one_spelling_of_each_level():
    labels = ["good", "Good", "good.", "fair", " fair", "bad"]
    with pytest.raises(BadScale, match="scale='Good,bad,fair'"):
        ordinate.evaluate(labels, labels)
    with pytest.raises(BadScale, match=r"scale='1\.\.4'"):
        ordinate.evaluate(["1", "2", " 3", "4", "n/a", "sehr gut"], ["1"] * 6)


# --- experiments ----------------------------------------------------------------------------------


def test_init_maps_and_tidies_labels_and_later_commands_know():
    texts = [f"text {k}" for k in range(40)]
    labels = ["b1", "B2 ", "Bl", "B2"] * 10
    write_columns("texts.csv", text=texts, level=labels)
    init = ("init", "study", "--train", "texts.csv")
    assert "'Bl' (10: B1?)" in run(*init).err
    assert run(*init, "--tidy-labels", "--propose-map", "map.csv").code == 0
    assert Path("map.csv").read_text(encoding="utf-8") == "from,to\nBl,B1\n"
    assert run(*init, "--tidy-labels", "--map", "map.csv").code == 0
    experiment = Experiment.open("study")
    gold = experiment.dataset("texts").gold(experiment.scale())
    assert set(gold.tolist()) == {2, 3}
    assert run("check", "-e", "study").code == 0


# --- scores ---------------------------------------------------------------------------------------


def test_scores_lead_to_commands_that_work_when_copied(here):
    write_columns("some.csv", gold=[1, 2, 2, 3, 5, 6], predicted=SCORES)
    message = refused(here, "some.csv", "--scale", LEVELS, outputs=False)
    assert "CutPoints" in message
    advised = shlex.split(message[message.index("--edges") :])[:2]
    assert advised == ["--edges", "1.5,2.5,3.5,4.5,5.5"]
    assert set(filled(report("some.csv", "--scale", LEVELS, *advised))) == {
        (str(level), str(level)) for level in CUT
    }
    assert "ordinate evaluate-regression" in message
    files = ("some.csv", "--target", "gold", "--predicted", "predicted")
    assert run("evaluate-regression", *files).code == 0


@pytest.mark.parametrize(
    "source",
    [
        lambda: ((CUT, SCORES), {}),
        lambda: ((pl.LazyFrame({"g": CUT, "p": SCORES}),), {"gold": "g", "predicted": "p"}),
    ],
    ids=["columns", "lazy frame"],
)
def test_scores_are_cut_at_edges(source):
    columns, names = source()
    found = ordinate.evaluate(*columns, **names, scale=LEVELS, edges=EDGES, interval=None)
    assert found.metrics["accuracy"].value == pytest.approx(1)
    assert any("cut at 1.5" in note for note in found.origin.notes)
    with pytest.raises(BadOption, match="5 edges"):
        ordinate.evaluate(*columns, **names, scale=LEVELS, edges=[1.5])


def test_systems_are_cut_at_edges_and_gold_is_not():
    words = [["A1", "A2", "B1", "B2", "C1", "C2"][level - 1] for level in CUT]
    found = ordinate.compare(words, {"a": SCORES, "b": words}, edges=EDGES, metrics="accuracy")
    assert [x.estimate.value for x in found.leaderboards["accuracy"].standings] == pytest.approx(
        [1, 1]
    )
    write_columns("some.csv", gold=words, a=SCORES, b=words)
    ran = run(
        *("compare", "some.csv", "--systems", "a,b", "--metrics", "accuracy", "--format", "json"),
        *("--edges", "1.5,2.5,3.5,4.5,5.5"),
    )
    notes = json.loads(ran.out)["source"]["notes"]
    assert any("cut at 1.5" in note for note in notes)


@pytest.mark.parametrize("edges", [[2, 1], [1, float("nan")], ["x"], [1, 1]])
def test_edges_rise(edges):
    with pytest.raises(BadOption, match="rising numbers"):
        ordinate.evaluate([1], [1], "1..3", edges=edges)
