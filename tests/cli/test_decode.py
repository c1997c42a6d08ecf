"""`ordinate decode`: levels from a file are those of Python, and argmax always stands beside."""

import csv
import io
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from command import run
from hostile_texts import EXACT_TEXTS

import ordinate
from ordinate import Scale
from ordinate.cli.decode import EXAMPLES
from ordinate.postprocess.decoder import Decoder

LABELS = np.array(["A1", "A2", "B1", "B2", "C1", "C2"])
SHARES = np.array([0.05, 0.1, 0.3, 0.3, 0.2, 0.05])
NAMES = [f"p_{label}" for label in LABELS]
SCALE = Scale.of("cefr")
QUICK = ("--resamples", "100")


def rows_of(seed, n=120):
    rng = np.random.default_rng(seed)
    p = np.round(rng.dirichlet(4 * SHARES, n), 6)
    p[:, 2] += 1.0 - p.sum(axis=1)
    p = np.abs(p)
    gold = (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return p, LABELS[gold]


OOF, TEST = rows_of(0), rows_of(1)


def write(path, p, gold, names=NAMES, column="level"):
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["essay", column, *names])
        for k, (row, label) in enumerate(zip(p, gold, strict=True)):
            writer.writerow([f"e{k}", label, *map(repr, row.tolist())])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "oof.csv", *OOF)
    write(tmp_path / "test.csv", *TEST)
    return tmp_path


def levels(text):
    return list(csv.DictReader(io.StringIO(text)))


def decode(*arguments):
    ran = run("decode", *arguments, *QUICK)
    assert ran.code == 0, ran.err
    return ran


FITTED = ("--probabilities", "p_", "--fit", "oof.csv", "--gold", "level")


@pytest.mark.parametrize("metric", ["quadratic_kappa", "cem_ord", "mae", "f1_macro"])
def test_levels_from_a_file_are_those_of_python(metric):
    ran = decode("test.csv", *FITTED, "--metric", metric)
    found = levels(ran.out)
    decoder = Decoder(metric, SCALE).fit(*OOF)
    assert [row["decoded"] for row in found] == decoder.predict(TEST[0]).tolist()
    assert [row["argmax"] for row in found] == LABELS[TEST[0].argmax(axis=1)].tolist()
    assert [row["row"] for row in found] == [str(k) for k in range(1, 121)]


def test_the_report_shows_argmax_beside_decoded_on_the_default_metrics():
    ran = decode("test.csv", *FITTED, "--metric", "quadratic_kappa", "-o", "out.csv")
    assert ran.err == ""
    assert "120 rows decoded for quadratic_kappa" in ran.out
    assert "Fitted on oof.csv" in ran.out
    header = next(line for line in ran.out.splitlines() if line.startswith("metric"))
    assert header.split()[2:5] == ["argmax", "decoded", "difference"]
    for name in ordinate.evaluate(*(TEST[1],) * 2, scale="cefr").metrics:
        assert f"\n{name} " in ran.out
    assert "Decoding trades one metric for another" in ran.out
    assert "fitted on the rows that it is scored on" not in ran.out


def test_without_an_output_the_levels_go_to_standard_output_and_the_report_beside():
    ran = decode("test.csv", *FITTED, "--metric", "mse", "--id", "essay")
    assert ran.out.splitlines()[0] == "essay,argmax,decoded"
    assert levels(ran.out)[3]["essay"] == "e3"
    assert "rows decoded for mse" in ran.err


def test_json_has_both_values_and_their_paired_difference():
    ran = decode("test.csv", *FITTED, "--metric", "quadratic_kappa", "--format", "json", "-o", "x")
    found = json.loads(ran.out)
    decoded = Decoder("quadratic_kappa", SCALE).fit(*OOF).predict(TEST[0])
    argmax = LABELS[TEST[0].argmax(axis=1)]
    systems = {"decoded": decoded, "argmax": argmax}
    names = ["quadratic_kappa", "mae"]
    expected = ordinate.compare(TEST[1], systems, scale="cefr", metrics=names, resamples=100)
    for name in names:
        pair, one = expected.leaderboards[name].pairs[0], found["metrics"][name]
        sign = 1.0 if pair.first == "decoded" else -1.0
        assert one["difference"] == pytest.approx(one["decoded"] - one["argmax"])
        assert one["difference"] == pytest.approx(sign * pair.difference.value)
        limits = sorted((sign * pair.difference.low, sign * pair.difference.high))
        assert (one["low"], one["high"]) == pytest.approx(limits)
    assert (found["task"], found["method"], found["exact"]) == ("decode", "ratio", True)
    assert found["changed"] == int((decoded != argmax).sum())
    assert sum(found["levels"]["decoded"]) == found["n"] == found["scored"] == 120
    assert next(iter(found["metrics"])) == "quadratic_kappa"


def test_bias_differs_by_its_distance_from_zero():
    ran = decode("test.csv", *FITTED, "--metric", "mse", "--format", "json", "-o", "x")
    one = json.loads(ran.out)["metrics"]["bias"]
    assert one["difference"] == pytest.approx(abs(one["decoded"]) - abs(one["argmax"]))
    assert one["low"] <= one["difference"] <= one["high"]
    shown = " ".join(decode("test.csv", *FITTED, "--metric", "mse", "-o", "y").out.split())
    assert "the difference is that of the distances from 0: of bias, decoded is better" in shown


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_other_forms_are_written_too(form):
    ran = decode("test.csv", *FITTED, "--metric", "mae", "--format", form, "-o", "out.csv")
    assert "macro" in ran.out


def test_fitted_on_the_rows_that_are_scored_is_said_to_be_optimistic():
    same = ("--probabilities", "p_", "--gold", "level")
    ran = decode("oof.csv", *same, "--metric", "quadratic_kappa")
    assert "an optimistic bias" in ran.err
    assert "Out-of-fold probabilities belong there" in " ".join(ran.err.split())
    assert "optimistic bias" not in decode("oof.csv", *same, "--metric", "mae").err


def test_rows_without_gold_are_decoded_and_not_scored(here):
    gold = TEST[1].copy().astype(object)
    gold[10:] = ""
    write(here / "part.csv", TEST[0], gold)
    ran = decode("part.csv", *FITTED, "--metric", "mae", "--format", "json", "-o", "x")
    found = json.loads(ran.out)
    assert (found["n"], found["scored"]) == (120, 10)


def test_a_file_without_gold_is_scored_on_the_rows_fitted_on(here):
    write(here / "new.csv", *TEST, column="other")
    ran = decode("new.csv", *FITTED, "--metric", "cem_ord")
    assert "rows with gold of oof.csv" in ran.err
    assert "optimistic bias" in ran.err


def test_a_metric_for_which_shares_play_no_part_needs_no_gold(here):
    write(here / "new.csv", *TEST, column="other")
    ran = decode("new.csv", "--probabilities", "p_", "--metric", "mae", "--scale", "cefr")
    expected = Decoder("mae", SCALE).fit().predict(TEST[0]).tolist()
    assert [row["decoded"] for row in levels(ran.out)] == expected
    assert "No row has a gold level" in ran.err
    flat = ("--format", "csv", "-o", "x")
    ran = decode("new.csv", "--probabilities", "p_", "--metric", "mae", "--scale", "cefr", *flat)
    assert ran.out.startswith("decoded_for,rows,changed\nmae,120,")

    words = ("decode", "test.csv", "--probabilities", "p_", "--metric", "mae")
    declared = run(*words, "--scale", "cefr")
    found = run(*words)
    assert (found.code, found.out) == (0, declared.out)
    assert "every label seen is on the preset 'cefr'" in found.err


def test_columns_are_found_by_name_in_any_order(here):
    plain = decode("test.csv", *FITTED, "--metric", "quadratic_kappa").out
    listed = ",".join(reversed(NAMES))
    turned = ("--probabilities", listed, "--fit", "oof.csv", "--gold", "level")
    assert decode("test.csv", *turned, "--metric", "quadratic_kappa").out == plain
    for file, rows in (("oof2.csv", OOF), ("test2.csv", TEST)):
        write(here / file, *rows, names=[f"x{k}" for k in range(6)])
    numbered = ("--probabilities", "x0,x1,x2,x3,x4,x5", "--fit", "oof2.csv", "--gold", "level")
    ran = run("decode", "test2.csv", *numbered, "--metric", "quadratic_kappa")
    assert ran.code == 2
    assert "do not say which levels" in ran.err


def test_jsonl_and_parquet_give_the_same_levels(here):
    import pandas as pd

    frame = pd.read_csv("test.csv")
    frame.to_json(here / "test.jsonl", orient="records", lines=True, double_precision=15)
    frame.to_parquet(here / "test.parquet")
    plain = decode("test.csv", *FITTED, "--metric", "cem_ord").out
    assert decode("test.jsonl", *FITTED, "--metric", "cem_ord").out == plain
    assert decode("test.parquet", *FITTED, "--metric", "cem_ord").out == plain


@pytest.mark.parametrize("text", ["9,6,1,1,2,9", "A1=9,A2=6,B1=1,B2=1,C1=2,C2=9"])
def test_class_weights_are_undone(here, text):
    weights = np.array([9.0, 6, 1, 1, 2, 9])
    for file, (p, gold) in (("oof2.csv", OOF), ("test2.csv", TEST)):
        q = p * weights
        write(here / file, q / q.sum(axis=1, keepdims=True), gold)
    undone = ("--probabilities", "p_", "--fit", "oof2.csv", "--gold", "level")
    ran = decode("test2.csv", *undone, "--metric", "mae", "--class-weights", text)
    plain = decode("test.csv", *FITTED, "--metric", "mae")
    assert [r["decoded"] for r in levels(ran.out)] == [r["decoded"] for r in levels(plain.out)]
    assert "away from the shares of gold" not in ran.err
    noted = decode("test2.csv", *undone, "--metric", "mae").err
    assert "away from the shares of gold" in " ".join(noted.split())


def test_decoded_levels_are_read_back_as_they_were_written():
    labels = ["-B", "=x", "@user1", "+1", "--", "++"]
    with Path("test.csv").open("w", newline="", encoding="utf-8") as out:
        rows = ([x, labels[k % 6], *np.eye(6)[k % 6]] for k, x in enumerate(EXACT_TEXTS))
        csv.writer(out, lineterminator="\r\n").writerows([["essay", "level", *labels], *rows])
    named = (f"--probabilities={','.join(labels)}", f"--scale={','.join(labels)}")
    decode("test.csv", *named, "--gold", "level", "--metric", "mae", "--id", "essay", "-o", "o.csv")
    with Path("o.csv").open(newline="", encoding="utf-8") as file:
        assert [row["essay"] for row in csv.DictReader(file)] == EXACT_TEXTS
    beside = ("--gold-file", "test.csv", "--gold", "level", "--id", "essay")
    asked = (*beside, named[-1], "--predicted", "decoded", "--missing", "worst", "--format", "json")
    found = json.loads(run("evaluate", "o.csv", *asked).out)
    assert found["metrics"]["accuracy"]["value"] == 1.0
    assert found["n"] == len(EXACT_TEXTS)


def test_an_output_is_not_overwritten_unasked(here):
    (here / "out.csv").write_text("mine")
    ran = run("decode", "test.csv", *FITTED, "--metric", "mae", "-o", "out.csv")
    assert (ran.code, "exists already" in ran.err) == (2, True)
    assert (here / "out.csv").read_text() == "mine"
    decode("test.csv", *FITTED, "--metric", "mae", "-o", "out.csv", "--force")
    assert (here / "out.csv").read_text().startswith("row,argmax,decoded\n")
    for read in ("test.csv", "oof.csv"):
        ran = run("decode", "test.csv", *FITTED, "--metric", "mae", "-o", read, "--force")
        assert (ran.code, "is read, so it cannot be written" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "test.csv --probabilities q_ --gold level --metric mae",
            "no columns of probabilities that start with 'q_'",
        ),
        (
            "test.csv --probabilities p_A1,p_A2 --gold level --metric mae",
            "Is there a column for each level",
        ),
        ("test.csv --probabilities p_ --gold lvl --metric mae", "Did you mean 'level'"),
        ("test.csv --probabilities p_ --gold level --metric oci", "oci cannot be decoded"),
        ("test.csv --probabilities p_ --gold level --metric maee", "There is no metric 'maee'"),
        (
            "test.csv --probabilities p_A1,p_A2,p_B1,p_B2,p_C1,p_C2 --metric mae",
            "No scale was declared, and there are no labels to see it by",
        ),
        ("test.csv --probabilities p_ --metric cem_ord --scale cefr", "has no gold levels: name"),
        ("test.csv --probabilities p_ --gold essay --metric mae --scale cefr", "Label 'e0'"),
        ("nothing.csv --probabilities p_ --metric mae", "There is no file 'nothing.csv'"),
        ("*.csv --probabilities p_ --metric mae", "names 2 files"),
        (
            "test.csv --probabilities p_ --gold level --metric mae --class-weights 1,x",
            "--class-weights takes balanced",
        ),
        (
            "test.csv --probabilities p_ --gold level --metric mae --class-weights 1,2",
            "are no weights for A1",
        ),
        ("test.csv --probabilities p_ --gold level --metric mae --interval 2", "level"),
        ("test.csv --probabilities p_ --gold level --metric mae --id nr", "no column 'nr'"),
        (
            "test.csv --probabilities p_ --gold level --metric mae -o report.html",
            "-o levels.csv --format html > report.html",
        ),
    ],
)
def test_bad_input_has_one_message(arguments, message):
    ran = run("decode", *shlex.split(arguments))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_row_that_holds_no_probabilities_is_named(here):
    text = (here / "test.csv").read_text().splitlines()
    cells = text[3].split(",")
    text[3] = ",".join([*cells[:2], "much", *cells[3:]])
    (here / "test.csv").write_text("\n".join(text) + "\n")
    ran = run("decode", "test.csv", *FITTED, "--metric", "mae")
    assert ran.code == 2
    assert "test.csv: the probability 'much' (row 3 of column 'p_A1') is not a number" in ran.err


def test_rows_are_renormalized_where_asked_for(here):
    p = TEST[0].copy()
    p[0] = p[0] * 1.004
    write(here / "loose.csv", p, TEST[1])
    ran = run("decode", "loose.csv", *FITTED, "--metric", "mae")
    assert (ran.code, "--renormalize" in ran.err) == (2, True)
    plain = decode("test.csv", *FITTED, "--metric", "mae").out
    assert decode("loose.csv", *FITTED, "--metric", "mae", "--renormalize").out == plain


def test_the_examples_of_the_help_are_commands(here):
    import pandas as pd

    five = pd.read_csv("test.csv")[["essay", *NAMES[:5]]]
    five.columns = ["essay", *(f"p_{k}" for k in range(1, 6))]
    five.iloc[:, 1:] = five.iloc[:, 1:].div(five.iloc[:, 1:].sum(axis=1), axis=0)
    five.to_parquet(here / "test.parquet")
    for line in EXAMPLES.replace("\\\n", "").splitlines():
        if line.startswith("  ordinate"):
            _, *arguments = shlex.split(line)
            assert run(*arguments, "--force", *QUICK).code == 0, line


def test_a_scale_whose_labels_sort_otherwise_raises_no_doubt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k},{g},{p}\n" for k, (g, p) in enumerate(zip(*_three(), strict=True)))
    (tmp_path / "three.csv").write_text(f"id,gold,p_low,p_mid,p_high\n{rows}")
    asked = ("three.csv", "--probabilities", "p_", "--gold", "gold", "--metric", "mae")
    ran = run("decode", *asked, "--scale", "low,mid,high")
    assert ran.code == 0
    assert "scikit-learn" not in ran.err


def _three():
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(3), 60).round(6)
    table[:, 2] = 1 - table[:, 0] - table[:, 1]
    gold = [
        ["low", "mid", "high"][rng.choice(3, p=np.abs(row) / np.abs(row).sum())] for row in table
    ]
    return gold, [",".join(f"{x:.6f}" for x in row) for row in np.abs(table)]
