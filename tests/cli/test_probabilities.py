"""`ordinate evaluate --probabilities`: a calibration report beside the labels, or of them."""

import csv
import io
import json
import math
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import naive_probabilities as naive
import numpy as np
import pandas as pd
import pytest
from command import run
from naive_probabilities import sample

from ordinate import evaluate
from ordinate.results.calibration import DEFAULT_METRICS, Calibration

LABELS = ("low", "mid", "high")
SCALE = ("--scale", "low,mid,high")
COLUMNS = ["p_low", "p_mid", "p_high"]
GOLD, ROWS = sample(150, 3, seed=1)
ROWS = ROWS.round(4)
ROWS[:, 0] = (1 - ROWS[:, 1] - ROWS[:, 2]).round(4)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def frame(**more):
    named = {f"p_{LABELS[k]}": ROWS[:, k] for k in (2, 0, 1)}
    ids = [f"e{k:03}" for k in range(150)]
    return pd.DataFrame({"essay": ids, "gold": np.array(LABELS)[GOLD], **named, **more})


def write(data, name="items.csv"):
    if name.endswith(".parquet"):
        data.to_parquet(name)
    elif ".jsonl" in name:
        data.to_json(name, orient="records", lines=True, double_precision=15)
    else:
        data.to_csv(name, index=False)
    return name


def report(*arguments):
    ran = run("evaluate", *arguments, *SCALE, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def text(*arguments):
    ran = run("evaluate", *arguments, *SCALE)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def refused(*arguments):
    ran = run("evaluate", *arguments, *SCALE)
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    return " ".join(ran.err.split())


def in_memory(**options):
    gold = np.array(LABELS)[GOLD]
    return json.loads(
        json.dumps(
            Calibration.of(gold, ROWS, scale="low,mid,high", columns="scale", **options).to_dict()
        )
    )


def close(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(close(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(close, one, two))
    if isinstance(one, float):
        return one == pytest.approx(two, rel=1e-9, abs=1e-12)
    return one == two


# --- the same numbers as in memory ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_the_section_is_that_of_the_columns_in_memory(name):
    found = report(write(frame(), name), "--gold", "gold", "--probabilities", "p_")
    assert close(found["probabilities"], in_memory())
    assert tuple(found["probabilities"]["metrics"]) == DEFAULT_METRICS


def test_a_loop_over_the_items_finds_the_same():
    metrics = report(write(frame()), "--probabilities", "p_")["probabilities"]["metrics"]
    for name in ("ece", "mce", "classwise_ece", "cumulative_ece", "brier", "log_loss", "rps"):
        wanted = getattr(naive, name)(GOLD.tolist(), ROWS.tolist())
        assert metrics[name]["value"] == pytest.approx(wanted, abs=1e-9)
        interval = metrics[name]["low"] is not None
        assert interval == (name in {"brier", "log_loss", "rps"})
        assert (metrics[name]["if_calibrated"] is None) == interval
        assert (metrics[name]["note"] is None) == interval


def test_columns_may_be_named_one_by_one():
    path = write(frame())
    whole = report(path, "--probabilities", "p_")
    for named in ("p_low,p_mid,p_high", "p_high,p_low,p_mid", "p_high, p_mid, p_low"):
        found = report(path, "--probabilities", named)
        assert close(found["probabilities"], whole["probabilities"])


def test_several_files_and_weights():
    weights = np.arange(150) % 3 / 2
    whole = frame(weight=weights)
    paths = write(whole[:40], "a.csv"), write(whole[40:], "b.jsonl")
    found = report(*paths, "--probabilities", "p_", "--weights", "weight")
    wanted = in_memory(weights=weights)
    for name in ("brier", "ece", "rps"):
        value = found["probabilities"]["metrics"][name]["value"]
        assert value == pytest.approx(wanted["metrics"][name]["value"], abs=1e-9)
    assert found["probabilities"]["n"] == found["n"] == int((weights > 0).sum())
    assert found["weight"] == weights.sum()


def test_gold_may_be_in_another_file():
    write(frame()[["essay", "gold"]].sample(frac=1, random_state=3), "gold.csv")
    path = write(frame().drop(columns="gold"), "run.csv")
    by_id = report(path, "--gold-file", "gold.csv", "--id", "essay", "--probabilities", "p_")
    assert close(by_id["probabilities"], in_memory())
    write(frame()[["gold"]], "gold.csv")
    by_row = report(path, "--gold-file", "gold.csv", "--row-order", "--probabilities", "p_")
    assert close(by_row["probabilities"], in_memory())


# --- labels --------------------------------------------------------------------------------------


def test_without_predictions_the_most_probable_level_is_taken():
    answers = np.array(LABELS)[ROWS.argmax(axis=1)]
    found = report(write(frame()), "--probabilities", "p_")
    beside = report(write(frame(answer=answers), "b.csv"), "--predicted", "answer")
    assert found["confusion_matrix"] == beside["confusion_matrix"]
    assert close(found["metrics"], beside["metrics"])
    assert found["source"]["predicted"] == "the most probable of p_low, p_mid, p_high"
    assert beside["probabilities"] is None


def test_with_predictions_both_are_judged():
    path = write(frame(answer="mid"))
    found = report(path, "--predicted", "answer", "--probabilities", "p_")
    assert found["probabilities"].pop("notes")[0].startswith("The most probable level is the pre")
    assert [row[1] for row in found["confusion_matrix"]] == [
        int((k == GOLD).sum()) for k in range(3)
    ]
    alone = in_memory()
    assert alone.pop("notes") == []
    assert close(found["probabilities"], alone)
    assert found["source"]["predicted"] == "answer"


@pytest.mark.parametrize("joined", [False, True])
def test_subgroups_and_missing_cells_beside_predictions_are_what_python_says(joined):
    labels = np.array(LABELS)[GOLD]
    table = frame(
        level=[None if k % 10 == 0 else x for k, x in enumerate(labels)],
        topic=[("a", None, "c")[k % 3] for k in range(150)],
        writer=[None if k % 2 else f"w{k % 20}" for k in range(150)],
    )
    columns = ("--predicted", "level", "--probabilities", "p_", "--by", "topic")
    columns += ("--groups", "writer", "--missing", "drop")
    if joined:
        write(table[["essay", "gold", "topic", "writer"]], "gold.csv")
        rest = write(table.drop(columns=["gold", "topic", "writer"]), "rest.csv")
        found = report(rest, *columns, "--gold-file", "gold.csv", "--id", "essay")
    else:
        found = report(write(table), *columns)
    expected = evaluate(
        table,
        gold="gold",
        predicted="level",
        probabilities="p_",
        by="topic",
        groups="writer",
        missing="drop",
        scale="low,mid,high",
    )
    wanted = json.loads(json.dumps(expected.to_dict()))
    assert found["n"] == found["probabilities"]["n"] == 60
    assert found["probabilities"]["dropped"] == found["dropped"] == 90
    assert [x["probabilities"]["n"] for x in found["by"].values()] == [20, 20, 20]
    if not joined:  # whose rows are those of other blocks
        assert close(found["probabilities"], wanted["probabilities"])
    for name, part in found["by"].items():
        own = wanted["by"][name]["probabilities"]["metrics"]
        for metric, score in part["probabilities"]["metrics"].items():
            assert score["value"] == pytest.approx(own[metric]["value"])


def test_without_probabilities_there_is_no_such_section():
    path = write(frame(predicted="mid"))
    assert report(path)["probabilities"] is None
    shown = text(path)
    assert "Confidence bins" not in shown
    assert "brier" not in shown


def test_dropped_items_are_counted_in_both():
    data = frame()
    data.loc[3, "gold"] = None
    data.loc[[7, 8], COLUMNS] = math.nan
    found = report(write(data), "--probabilities", "p_", "--missing", "drop")
    assert (found["n"], found["dropped"]) == (147, 3)
    assert (found["probabilities"]["n"], found["probabilities"]["dropped"]) == (147, 3)


def test_items_that_a_run_lacks_are_not_lost_in_silence():
    write(frame()[["essay", "gold"]], "gold.csv")
    path = write(frame().drop(columns="gold")[2:], "run.csv")
    where = ("--gold-file", "gold.csv", "--id", "essay", "--probabilities", "p_")
    told = refused(path, *where)
    assert "2 of 150 rows of probabilities are missing (id e000, id e001)" in told
    found = report(path, *where, "--missing", "drop")
    assert (found["n"], found["dropped"]) == (148, 2)


# --- options -------------------------------------------------------------------------------------


def test_bins_are_as_many_as_asked_for():
    path = write(frame())
    metrics = "brier,ece(bins=4)"
    found = report(path, "--probabilities", "p_", "--metrics", metrics)["probabilities"]
    assert close(found, in_memory(bins=4, metrics=metrics))
    assert [row["high"] for row in found["bins"]] == [0.25, 0.5, 0.75, 1.0]
    assert found["metrics"]["ece(bins=4)"]["value"] == pytest.approx(
        naive.ece(GOLD.tolist(), ROWS.tolist(), bins=4)
    )


@pytest.mark.parametrize("bins", ["0", "-1", "1001", "ten"])
def test_bins_that_make_no_sense_are_refused(bins):
    metric = f"ece(bins={bins})"
    assert "bins" in refused(write(frame()), "--probabilities", "p_", "--metrics", metric)


def test_metrics_of_both_kinds_may_be_named_together():
    path = write(frame())
    found = report(path, "--probabilities", "p_", "--metrics", "mae,brier,log_loss(clip=None)")
    assert list(found["metrics"]) == ["mae"]
    assert list(found["probabilities"]["metrics"]) == ["brier", "log_loss(clip=None)"]


def test_an_impossible_item_is_clipped_or_infinite():
    data = frame()
    data.loc[0, COLUMNS] = np.eye(3)[(GOLD[0] + 1) % 3]
    path = write(data)
    found = report(path, "--probabilities", "p_")["probabilities"]
    assert found["clipped"] == 1
    assert found["metrics"]["log_loss"]["value"] < 2
    infinite = report(path, "--probabilities", "p_", "--metrics", "log_loss(clip=None)")
    worth = infinite["probabilities"]["metrics"]["log_loss(clip=None)"]
    assert (worth["value"], worth["note"]) == (None, "it is infinite")
    assert "1 items had next to no probability" in " ".join(
        text(path, "--probabilities", "p_").split()
    )


def test_sums_near_1_are_renormalized_where_asked():
    data = frame()
    data[COLUMNS] *= 1.004
    path = write(data)
    told = refused(path, "--probabilities", "p_")
    assert "row 1" in told
    assert "sum to 1.004, not to 1. Pass --renormalize where" in told
    found = report(path, "--probabilities", "p_", "--renormalize")
    assert close(found["probabilities"], in_memory())


def test_intervals_can_be_left_out():
    path = write(frame())
    found = report(path, "--probabilities", "p_", "--interval", "none")["probabilities"]
    assert found["interval"] is None
    assert all(worth["low"] is None for worth in found["metrics"].values())


def test_the_seed_decides_and_runs_repeat():
    path = write(frame())
    one, two = (report(path, "--probabilities", "p_", "--seed", "5") for _ in range(2))
    other = report(path, "--probabilities", "p_", "--seed", "6")
    assert one == two
    assert one["probabilities"]["metrics"]["ece"] != other["probabilities"]["metrics"]["ece"]


# --- formats -------------------------------------------------------------------------------------


def test_the_text_has_metrics_bins_levels_and_terms():
    shown = text(write(frame()), "--probabilities", "p_")
    usual = (
        "Probabilities\n",
        "Confidence bins\n",
        "Calibration of the events\n",
        "Observed frequency at predicted probabilities\n",
        "Probabilities of the levels\n",
    )
    decomposed = "Where the scores come from\n"
    places = [shown.index(title) for title in usual]
    assert places == sorted(places)
    assert decomposed not in shown
    shown = text(write(frame()), "--probabilities", "p_", "--details")
    assert all(title in shown for title in (*usual, decomposed))
    assert "(0.60, 0.70]" in shown
    assert "(0.00, 0.10]" not in shown  # no item is in it


def test_csv_has_a_row_for_each_metric_of_both_kinds():
    ran = run("evaluate", write(frame()), *SCALE, "--probabilities", "p_", "--format", "csv")
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(ran.out))}
    assert set(DEFAULT_METRICS) | {"cem_ord", "mae"} <= set(rows)
    assert float(rows["brier"]["value"]) == pytest.approx(naive.brier(GOLD.tolist(), ROWS.tolist()))
    assert rows["ece"]["low"] == ""
    assert float(rows["rps"]["low"]) < float(rows["rps"]["value"]) < float(rows["rps"]["high"])


@pytest.mark.parametrize(
    ("form", "mark"), [("markdown", r"| cumulative\_ece |"), ("latex", r"cumulative\_ece")]
)
def test_other_formats_have_the_section(form, mark):
    ran = run("evaluate", write(frame()), *SCALE, "--probabilities", "p_", "--format", form)
    assert ran.code == 0
    assert mark in ran.out
    assert "Confidence bins" in ran.out


def test_a_report_is_written_to_a_file():
    path = write(frame())
    ran = run(
        "evaluate", path, *SCALE, "--probabilities", "p_", "--format", "json", "-o", "out.json"
    )
    assert (ran.code, ran.out) == (0, "")
    assert close(json.loads(Path("out.json").read_text())["probabilities"], in_memory())


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "told"),
    [(None, "finite"), ("-0.1", "at least 0"), ("0.9999", "sum to")],
)
def test_a_bad_cell_is_named_with_file_and_row(cell, told):
    data = frame()
    data["p_low"] = data["p_low"].astype(object)
    data.loc[11, "p_low"] = cell
    found = refused(write(data), "--probabilities", "p_")
    assert "items.csv: The probabilities of row 12, " in found
    assert told in found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--probabilities", "q_"), "no columns of probabilities that start with 'q_'"),
        (("--probabilities", "p_low,p_mid"), "Is there a column for each level"),
        (("--probabilities", "p_low,p_mid,p_hi"), "no column 'p_hi'. Did you mean 'p_high'"),
        (("--probabilities", ","), "--probabilities takes names"),
        (("--probabilities", "p_", "--missing", "worst"), "use --missing drop"),
        (("--metrics", "brier", "--predicted", "gold"), "which metrics need: pass --probabilities"),
        (("--renormalize", "--predicted", "gold"), "--renormalize has no meaning here"),
        (("--probabilities", "p_", "--metrics", "brie"), "no metric 'brie'"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said(arguments, told):
    assert told in refused(write(frame()), *arguments)


def test_missing_gold_is_named():
    data = frame()
    data.loc[20, "gold"] = None
    told = refused(write(data), "--probabilities", "p_")
    assert "items.csv: Gold labels are missing (row 21)" in told


# --- subgroups and standard input -----------------------------------------------------------------


def test_subgroups_of_probabilities_alone_are_what_python_says():
    topics, writers = np.array(["x", "y"])[np.arange(150) % 2], np.arange(150) // 5
    path = write(frame(topic=topics, writer=writers))
    found = report(path, "--probabilities", "p_", "--by", "topic", "--groups", "writer")
    labels = np.array(LABELS)[GOLD]
    expected = evaluate(
        *(labels, None, "low,mid,high"),
        probabilities=ROWS,
        columns="scale",
        by=topics,
        groups=writers,
    ).to_dict()
    for name in ("metrics", "by", "groups", "confusion_matrix"):
        assert close(found[name], json.loads(json.dumps(expected[name]))), name
    assert list(found["by"]) == ["x", "y"]
    assert found["source"]["predicted"] == "the most probable of p_low, p_mid, p_high"


def test_gold_in_another_file_has_no_subgroups_of_probabilities_alone():
    path = write(frame(topic="x"))
    write(frame()[["essay", "gold"]], "gold.csv")
    asked = ("--gold-file", "gold.csv", "--id", "essay", "--probabilities", "p_", "--by", "topic")
    assert "need the gold levels in the same file" in refused(path, *asked)


def test_standard_input_serves_predictions_and_probabilities(monkeypatch):
    path = write(frame(guess=np.array(LABELS)[ROWS.argmax(axis=1)]))
    asked = ("--predicted", "guess", "--probabilities", "p_")
    expected = report(path, *asked)
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as a shell does
        monkeypatch.setattr("sys.stdin", file)
        found = report("-", *asked)
    for name in ("metrics", "probabilities", "confusion_matrix"):
        assert found[name] == expected[name]
    assert found["source"]["files"] == ["standard input"]


def test_a_pipe_that_would_be_read_twice_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    message = refused("pipe", "--predicted", "guess", "--probabilities", "p_")
    assert "read twice: name a file in place of 'pipe'" in message


def test_probabilities_of_a_database_are_summed_up_there():
    data = frame(language=np.where(np.arange(150) % 2, "de", "it"))
    with closing(sqlite3.connect("runs.db")) as connection:
        data.to_sql("essays", connection, index=False)
    told = ("--gold", "gold", "--probabilities", "p_", "--by", "language")
    database = ("--sql", "sqlite:///runs.db", "--query", "select * from essays")
    found, usual = report(*database, *told), report(write(data), *told)
    assert found["confusion_matrix"] == usual["confusion_matrix"]
    assert found["source"]["predicted"] == "the most probable of p_low, p_mid, p_high"
    for part, other in ((found, usual), (found["by"]["de"], usual["by"]["de"])):
        ours, theirs = (x["probabilities"]["metrics"] for x in (part, other))
        for name in DEFAULT_METRICS:
            assert ours[name]["value"] == pytest.approx(theirs[name]["value"], rel=1e-12)
    assert found["probabilities"]["metrics"]["c_index"]["low"] is None
    assert "blocks of rows" in found["probabilities"]["metrics"]["c_index"]["note"]
