"""`ordinate evaluate`: labels, scales, weights and missing labels, metrics, and the report."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import Ran, run
from evaluate_reports import (
    CEFR,
    CELLS,
    GOLDEN,
    PAIRS,
    close,
    facts,
    filled,
    read_items,
    report,
    text,
    write,
)
from row_files import to_csv

from ordinate.metrics import find_metric, list_metrics
from ordinate.summaries import ConfusionMatrix

pytestmark = pytest.mark.usefixtures("here")

# --- renaming ------------------------------------------------------------------------------------

SPELT = "gold,predicted\nb1,B1\nB1,b2\nintermediate,B2\n"
MAPS = {
    "map.json": '{"b1": "B1", "b2": "B2", "intermediate": "B1"}',
    "marked.json": '\ufeff{"b1": "B1", "b2": "B2", "intermediate": "B1"}',
    "map.csv": "from,to\nb1,B1\nb2,B2\nintermediate,B1\n",
    "windows.csv": '\ufefffrom,to\r\n"b1",B1\r\nb2,B2\r\nintermediate,"B1"\r\n',
}


@pytest.mark.parametrize("name", MAPS)
def test_labels_are_renamed_before_the_scale_sees_them(name):
    write("some.csv", SPELT)
    found = report("some.csv", "--map", write(name, MAPS[name]), "--items", "wrong.csv")
    assert filled(found) == {("B1", "B1"): 1, ("B1", "B2"): 2}
    assert found["scale"] == list(CEFR)  # the preset is looked for among the new names
    assert read_items("wrong.csv") == [
        {"gold": "B1", "predicted": "b2", "steps_off": 1},
        {"gold": "intermediate", "predicted": "B2", "steps_off": 1},
    ]


def test_labels_can_change_places():
    write("some.csv", "gold,predicted\nA1,A1\nA1,A2\nA2,A2\nA2,B1\n")
    write("map.csv", "from,to\nA1,A2\nA2,A1\n")
    found = report("some.csv", "--map", "map.csv", "--items", "wrong.csv")
    assert filled(found) == {
        ("A2", "A2"): 1,
        ("A2", "A1"): 1,
        ("A1", "A1"): 1,
        ("A1", "B1"): 1,
    }
    assert read_items("wrong.csv") == [
        {"gold": "A1", "predicted": "A2", "steps_off": -1},
        {"gold": "A2", "predicted": "B1", "steps_off": 2},
    ]


def test_a_label_can_be_renamed_onto_one_that_is_renamed_itself():
    write("some.csv", "gold,predicted\nx,B1\nB1,x\nB1,B1\nB2,B2\n")
    write("map.csv", "from,to\nx,B1\nB1,B2\n")
    found = report("some.csv", "--map", "map.csv", "--items", "wrong.csv")
    assert filled(found) == {("B1", "B2"): 1, ("B2", "B1"): 1, ("B2", "B2"): 2}
    assert read_items("wrong.csv") == [
        {"gold": "x", "predicted": "B1", "steps_off": 1},
        {"gold": "B1", "predicted": "x", "steps_off": -1},
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("map.csv", "from,to\nunsure,\n"),
        ("map.json", '{"unsure": ""}'),
        ("null.json", '{"unsure": null}'),
    ],
)
def test_a_label_can_be_renamed_to_a_missing_one(name, content):
    write("some.csv", "gold,predicted\nA1,unsure\nB1,B1\n")
    found = report("some.csv", "--map", write(name, content), "--missing", "worst")
    assert (filled(found), found["unanswered"]) == ({("B1", "B1"): 1}, [1, 0, 0, 0, 0, 0])


def test_numbers_of_a_parquet_file_can_be_renamed():
    pq.write_table(pa.table({"gold": [0, 1], "predicted": [1, 1]}), "some.parquet")
    write("map.json", '{"0": "A1", "1": "B1"}')
    found = report("some.parquet", "--map", "map.json")
    assert filled(found) == {("A1", "B1"): 1, ("B1", "B1"): 1}


# --- scales, weights, groups, missing labels -----------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "labels"),
    [
        ("cefr", list(CEFR)),
        ("1..6", [1, 2, 3, 4, 5, 6]),
        ("low,mid,high", ["low", "mid", "high"]),
        (" low , mid ,high", ["low", "mid", "high"]),
        ('"a, b",c', ["a, b", "c"]),
        ("-2..1", [-2, -1, 0, 1]),
    ],
)
def test_the_scale_of_the_report_is_the_one_declared(here, scale, labels):
    rows = [{"gold": labels[0], "predicted": labels[1]}]
    (here / "some.csv").write_bytes(to_csv(rows))
    found = report("some.csv", f"--scale={scale}")
    assert found["scale"] == labels
    assert filled(found) == {(str(labels[0]), str(labels[1])): 1}


def test_an_absent_level_keeps_its_place():
    write("some.csv", "gold,predicted\nA1,C2\nC2,A1\n")
    assert report("some.csv", "--metrics", "mae")["metrics"]["mae"]["value"] == 5
    narrow = report("some.csv", "--metrics", "mae", "--scale", "A1,C2")
    assert narrow["metrics"]["mae"]["value"] == 1


def test_whole_weights_are_repetitions():
    write("weighted.csv", "gold,predicted,w\nA1,A2,3\nB1,B1,1\nC1,B1,0\nC2,C1,2\n")
    write("repeated.csv", "gold,predicted\n" + "A1,A2\n" * 3 + "B1,B1\n" + "C2,C1\n" * 2)
    weighted = report("weighted.csv", "--weights", "w", "--metrics", "all")
    repeated = report("repeated.csv", "--metrics", "all")
    for part in ("confusion_matrix", "metrics", "per_level", "weight"):
        assert close(weighted[part], repeated[part]), part
    assert (weighted["n"], repeated["n"]) == (3, 6)  # an item of weight 0 does not exist


def test_an_item_of_weight_0_may_hold_anything():
    write("some.csv", "gold,predicted,w\nA1,A2,1\nZZ,A1,0\n,A1,0\nA1,,0\n")
    assert filled(report("some.csv", "--weights", "w")) == {("A1", "A2"): 1}


def test_groups_are_what_each_group_is_alone(here):
    (here / "all.csv").write_bytes(to_csv(GOLDEN))
    asked = ("--gold", "level", "--predicted", "answer", "--scale", "cefr")
    asked += ("--weights", "weight", "--missing", "worst")
    whole = report("all.csv", *asked, "--by", "language")
    assert sum(part["n"] for part in whole["by"].values()) == whole["n"]
    for language in ("de", "fr", None):
        rows = [row for row in GOLDEN if row["language"] == language]
        (here / "group.csv").write_bytes(to_csv(rows))
        name = language or "(none)"
        assert close(facts(whole["by"][name]), facts(report("group.csv", *asked))), name


@pytest.mark.parametrize("name", ["(none)", "None", "NA", "all", "nan"])
def test_no_name_of_a_group_is_taken_for_a_missing_one(name):
    write("some.csv", f"gold,predicted,g\nA1,A1,{name}\nA1,A2,{name}\nB1,B2,\n")
    parts = report("some.csv", "--by", "g")["by"]
    assert sorted(part["n"] for part in parts.values()) == [1, 2]
    assert parts[name]["n"] == 2


def test_a_group_says_how_many_of_its_items_were_dropped():
    write("some.csv", "gold,predicted,g\nA1,A1,x\nA1,,x\nB1,,x\nB1,B1,y\n")
    found = report("some.csv", "--by", "g", "--missing", "drop")
    assert {group: part["dropped"] for group, part in found["by"].items()} == {"x": 2, "y": 0}


def test_what_becomes_of_missing_labels_is_said():
    write("some.csv", "gold,predicted\nA1,A1\nA1,\nB1,\nC1,C1\n")
    assert "Dropped for a missing label: 2 items" in text("some.csv", "--missing", "drop")
    assert "Without a prediction: 2 items" in text("some.csv", "--missing", "worst")


# --- metrics and --fail-under --------------------------------------------------------------------


def test_commas_in_parentheses_belong_to_the_metric():
    write("some.csv", PAIRS)
    asked = "mae, oci(beta1=0.5,gamma=1) ,weighted_kappa(power=1)"
    found = report("some.csv", "--metrics", asked)
    expressions = ["mae", "oci(beta1=0.5,gamma=1)", "weighted_kappa(power=1)"]
    assert list(found["metrics"]) == expressions
    table = ConfusionMatrix.of(*zip(*CELLS, strict=True), "cefr")
    for name in expressions:
        assert found["metrics"][name]["value"] == pytest.approx(float(find_metric(name)(table)))


def test_all_metrics_are_those_of_the_catalogue():
    found = report(write("some.csv", PAIRS), "--metrics", "all")
    assert list(found["metrics"]) == [m.name for m in list_metrics() if not m.required]


LIMITS = [  # on PAIRS: accuracy 1/3, mae 2/3, bias 0
    ("accuracy=0.3", 0),
    ("accuracy=0.4", 3),
    ("mae=0.7", 0),
    ("mae=0.5", 3),
    ("bias=0.1", 0),
    ("bias=-0.1", 0),
    ("accuracy_within(n=0)=0.4", 3),
    ("weighted_kappa(power=1)=-1", 0),
    ("accuracy=1e0", 3),
]


@pytest.mark.parametrize(("limit", "code"), LIMITS)
def test_a_metric_fails_where_it_is_worse_than_its_limit(limit, code):
    ran = run("evaluate", write("some.csv", PAIRS), "--fail-under", limit)
    assert ran.code == code
    assert ran.out.startswith("3 items")  # the report is written all the same
    assert ran.err.count("\n") == (code == 3)
    assert limit.rpartition("=")[0] in ran.err or not code


@pytest.mark.parametrize(("predicted", "code"), [("A2", 0), ("B1", 3)])
def test_bias_fails_by_its_distance_from_0(predicted, code):
    write("some.csv", f"gold,predicted\nA1,{predicted}\n")
    assert run("evaluate", "some.csv", "--fail-under", "bias=1.5").code == code
    write("other.csv", f"gold,predicted\n{predicted},A1\n")
    assert run("evaluate", "other.csv", "--fail-under", "bias=1.5").code == code


@pytest.mark.parametrize(
    ("limit", "code", "told"),
    [
        ("accuracy=0.6", 0, ""),
        ("accuracy=0.75", 0, "ordinate: warning: accuracy is 0.75 (95 % CI 0.6"),
        ("accuracy=0.9", 3, "0.825), significantly worse than 0.9."),
        ("mae=0.2", 0, "not significantly different from 0.2."),
        ("mae=0.1", 3, "significantly worse than 0.1."),
    ],
)
def test_the_interval_decides_if_asked_to(limit, code, told):
    write("some.csv", "gold,predicted\n" + "A1,A1\nA1,A2\nA2,A2\nB1,B1\n" * 25)
    asked = ("--fail-under", limit, "--fail-when", "significant")
    ran = run("evaluate", "some.csv", *asked)
    assert ran.code == code
    assert told in ran.err
    assert ran.err.count("\n") == bool(told)


def test_a_value_that_equals_its_limit_passes():
    write("some.csv", "gold,predicted\nA1,A1\nA1,A2\n")
    both = ("--fail-under", "accuracy=0.5", "--fail-under", "mae=0.5")
    assert run("evaluate", "some.csv", *both).code == 0


def test_an_undefined_metric_fails_its_limit():
    write("some.csv", "gold,predicted\nA1,A1\nA1,A1\n")
    ran = run("evaluate", "some.csv", "--fail-under", "kendall_tau_b=-1")
    assert ran.code == 3
    assert "undefined" in ran.err


def test_a_refused_metric_fails_its_limit():
    write("some.csv", "gold,predicted\nA1,A1\nA2,\n")
    asked = ("--missing", "worst", "--fail-under", "kendall_tau_b=-1")
    assert run("evaluate", "some.csv", *asked).code == 3


def test_each_limit_that_is_missed_has_its_line_and_the_report_is_kept():
    write("some.csv", PAIRS)
    limits = ("--fail-under", "mae=0.1", "--fail-under", "cem_ord=0", "--fail-under", "accuracy=1")
    ran = run("evaluate", "some.csv", *limits, "--metrics", "mae", "-o", "out.json")
    assert ran.code == 3
    mae, accuracy = ran.err.splitlines()
    assert mae.startswith("ordinate: mae")
    assert accuracy.startswith("ordinate: accuracy")
    assert Path("out.json").exists()


# --- the forms of the report ---------------------------------------------------------------------


def test_the_json_has_the_keys_that_it_promises():
    found = report(write("some.csv", PAIRS), "--metrics", "cem_ord,kendall_tau_b")
    assert (found["schema"], found["task"], found["n"]) == (1, "labels", 3)
    assert found["scale"] == list(CEFR)
    assert np.array(found["confusion_matrix"]).shape == (6, 6)
    assert [row["level"] for row in found["per_level"]] == list(CEFR)
    score = found["metrics"]["cem_ord"]
    assert {"value", "undefined", "levels_used", "baselines"} <= score.keys()
    assert score["baselines"].keys() == {"best_constant", "majority", "chance"}
    assert score["undefined"] is None
    undefined = found["metrics"]["kendall_tau_b"]["baselines"]["majority"]
    assert undefined["value"] is None
    assert undefined["undefined"]


@pytest.mark.parametrize("gold", ["A1\nA1", "A1\nA2", "A1\nC2\nC2"])
def test_the_json_of_all_metrics_is_strict_whatever_is_undefined(gold):
    write("some.csv", "gold,predicted\n" + "".join(f"{g},A1\n" for g in gold.split()))
    ran = run("evaluate", "some.csv", "--metrics", "all", "--format", "json")
    assert ran.code == 0
    found = json.loads(ran.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    for name, score in found["metrics"].items():
        assert (score["value"] is None) == bool(score["undefined"]), name


def test_the_csv_has_a_record_for_each_metric_and_group():
    write("some.csv", "gold,predicted,g\nA1,A1,x\nB1,B2,y\n")
    asked = ("--by", "g", "--metrics", "mae,accuracy", "--format", "csv")
    ran = run("evaluate", "some.csv", *asked)
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["group"], row["metric"]) for row in rows] == [
        (group, metric) for group in ("", "x", "y") for metric in ("mae", "accuracy")
    ]
    assert [float(row["value"]) for row in rows] == [0.5, 0.5, 0, 1, 1, 0]


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_what_goes_to_a_file_is_what_goes_to_a_wide_terminal(form, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    write("some.csv", "gold,predicted\nA1,é\né,é\n")
    asked = ("some.csv", "--scale", "A1,é", "--format", form)
    shown = run("evaluate", *asked, "--details")
    written = run("evaluate", *asked, "-o", "out")
    assert (shown.code, written) == (0, Ran(0, "", ""))
    assert Path("out").read_text("utf-8") == shown.out
    assert "é" in shown.out or form == "csv"
