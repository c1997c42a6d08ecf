"""`ordinate meta`: files in, the same judgement as in Python, and one message for bad input."""

import json
import re
import shlex

import numpy as np
import pytest
from command import read_values, run
from panels import panel_of, sampled

from ordinate.cli.meta import EXAMPLES
from ordinate.examples import locate_example
from ordinate.meta.meta_evaluation import EVALUATED_METRICS, evaluate_metrics

CASES, SIZE = 12, 15
NAMES = ("a", "b", "c")
GOLD, SYSTEMS = sampled(3, CASES * SIZE, 4, (0.5, 0.9, 1.4))
TOPICS = [f"t{index // SIZE:02}" for index in range(CASES * SIZE)]
SCALE = ("--scale", "L0,L1,L2")
WIDE = ("results.csv", "--gold", "level", "--systems", "a,b,c", *SCALE)
RUNS = ("runs/*.tsv", "--gold-file", "gold.tsv", *SCALE)
QUICK = ("--resamples", "100")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = [TOPICS, GOLD, *SYSTEMS.values()]
    rows = [f"{t},L{g},L{a},L{b},L{c}" for t, g, a, b, c in zip(*columns, strict=True)]
    (tmp_path / "results.csv").write_text("\n".join(["topic,level,a,b,c", *rows]) + "\n")
    (tmp_path / "runs").mkdir()
    files = {"gold.tsv": GOLD}
    files |= {f"runs/{n}.tsv": answers for n, answers in zip(NAMES, SYSTEMS.values(), strict=True)}
    for name, levels in files.items():
        lines = [
            f"{t}\ti{k}\tL{level}" for k, (t, level) in enumerate(zip(TOPICS, levels, strict=True))
        ]
        (tmp_path / name).write_text("\n".join(["entity\ttweet\tpolarity", *lines]) + "\n")


NAMED = ("--test-case", "entity", "--id", "tweet", "--value", "polarity")


def judged(*arguments):
    ran = run("meta", *arguments, *QUICK, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return read_values(ran.out)


def expected(metrics=None, groups=TOPICS, **options):
    panel = panel_of(GOLD, dict(zip(NAMES, SYSTEMS.values(), strict=True)), 3, groups=groups)
    found = evaluate_metrics(panel, metrics, resamples=100, **options).to_dict()
    return json.loads(json.dumps(found))


def without_source(found):
    return {key: value for key, value in found.items() if key not in {"source", "notes"}}


def test_columns_of_one_file_are_judged_as_in_python():
    found = judged(*WIDE, "--test-case", "topic")
    assert without_source(found) == without_source(expected())
    assert list(found["metrics"]) == list(EVALUATED_METRICS)
    assert found["test_cases"] == CASES


def test_one_system_has_the_values_that_python_gives():
    alone = ["a" if one == "a,b,c" else one for one in WIDE]
    found = judged(*alone, "--test-case", "topic")
    values = expected()["metrics"]["cem_ord"]["values"]["a"]
    assert found["metrics"]["cem_ord"]["values"] == {"a": values}


def test_runs_in_their_own_files_give_the_same_judgement_as_columns():
    found = judged(*RUNS, *NAMED)
    assert without_source(found) == without_source(expected())
    assert found["source"]["match_counts"]["a"]["matched"] == CASES * SIZE


def test_without_test_cases_the_items_are_split_at_random():
    found = judged(*WIDE, "--cases", "6", "--seed", "3", "--metrics", "mae,cem_ord")
    assert without_source(found) == without_source(
        expected(["mae", "cem_ord"], None, cases=6, seed=3)
    )
    assert found["test_cases_at_random"] is True
    assert any("split at random into 6 parts" in note for note in found["notes"])


def test_a_single_test_case_is_split_like_none(tmp_path):
    for file in (tmp_path / "gold.tsv", *tmp_path.glob("runs/*")):
        file.write_text(re.sub(r"(?m)^t\d\d\t", "t\t", file.read_text().partition("\n")[2]))
    found = judged(*RUNS, "--cases", "6", "--metrics", "mae")
    assert without_source(found) == without_source(expected("mae", None, cases=6))
    assert any(note.startswith("t is the only test case: ") for note in found["notes"])


@pytest.mark.parametrize("runs", [["runs"], ["runs/*.tsv"], ["runs/a.tsv", "runs/b.tsv",
                                  "runs/c.tsv", "runs/gold.tsv"]])  # fmt: skip
def test_the_gold_file_among_the_runs_is_left_out_with_a_note(runs, tmp_path):
    (tmp_path / "gold.tsv").rename(tmp_path / "runs" / "gold.tsv")
    found = judged(*runs, "--gold-file", "runs/gold.tsv", *SCALE, *NAMED, "--metrics", "mae")
    assert found["systems"] == list(NAMES)
    assert "runs/gold.tsv is the gold file, and no run." in found["notes"]


def test_the_help_fits_into_a_terminal():
    assert max(map(len, run("meta", "--help").out.partition("examples:")[0].splitlines())) <= 80


def test_options_are_those_of_python():
    options = (
        "--significance-level",
        "0.2",
        "--interval",
        "0.8",
        "--unanimity",
        "strict",
        "--seed",
        "2",
    )
    lists = ("--metrics", "mae,weighted_kappa(power=1)", "--references", "accuracy,mae")
    found = judged(*WIDE, "--test-case", "topic", *options, *lists)
    assert without_source(found) == without_source(
        expected(
            ["mae", "weighted_kappa(power=1)"],
            references=["accuracy", "mae"],
            alpha=0.2,
            level=0.8,
            unanimity="strict",
            seed=2,
        )
    )


def test_irregular_lines_are_refused_and_with_lenient_counted(tmp_path):
    with (tmp_path / "runs" / "b.tsv").open("a") as file:
        file.write("t00\tnobody\tL1\n")
    refused = run("meta", *RUNS, *NAMED, *QUICK)
    assert (refused.code, refused.out) == (2, "")
    assert "id that gold lacks" in refused.err
    found = judged(*RUNS, *NAMED, "--lenient")
    (one,) = found["irregular"]
    assert one["file"].endswith("b.tsv")
    assert (one["kind"], one["count"], one["line"]) == ("id that gold lacks", 1, 182)
    assert without_source(found) == without_source(expected()) | {"irregular": [one]}
    text = run("meta", *RUNS, *NAMED, *QUICK, "--lenient").out
    assert re.search(r"id that gold lacks +1 +1 +runs/b\.tsv:182 +t00\\tnobody\\tL1", text)


def test_missing_answers_are_dropped_for_all_or_count_as_wrong(tmp_path):
    file = tmp_path / "runs" / "c.tsv"
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    assert run("meta", *RUNS, *NAMED, *QUICK).code == 2
    assert judged(*RUNS, *NAMED, "--lenient")["n"] == CASES * SIZE - 1
    worst = ("--lenient", "--missing", "worst", "--references", "accuracy,mae")
    found = judged(*RUNS, *NAMED, *worst)
    assert found["n"] == CASES * SIZE
    assert found["metrics"]["pearson"]["reason"].startswith("it has no meaning")


@pytest.mark.parametrize("line", re.findall(r"^  (ordinate .*)$", EXAMPLES, re.MULTILINE))
def test_every_example_runs(line, tmp_path):
    if "--test-case" not in line:  # then files of runs have no header
        for file in (tmp_path / "gold.tsv", *tmp_path.glob("runs/*")):
            file.write_text(file.read_text().partition("\n")[2])
    ran = run(*shlex.split(line)[1:], *SCALE, *QUICK)
    assert (ran.code, ran.err) == (0, "")
    assert "coverage" in ran.out or "-o" in line


def test_the_shipped_example_can_be_judged():
    systems = "rater_2,tfidf,forest,transformer,ensemble"
    found = judged(locate_example("systems"), "--gold", "gold", "--systems", systems)
    values = [row["coverage"]["value"] for row in found["metrics"].values()]
    assert np.all(np.abs(values) <= 1)


def test_a_report_is_not_overwritten_without_force(tmp_path):
    out = tmp_path / "meta.csv"
    first = ("meta", *WIDE, *QUICK, "--metrics", "mae", "--format", "csv", "-o", out)
    assert run(*first).code == 0
    assert out.read_text().startswith("metric,reference,coverage,")
    assert run(*first).code == 2
    assert run(*first, "--force").code == 0
    assert run("meta", *RUNS, *NAMED, *QUICK, "-o", "gold.tsv", "--force").code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("results.csv", "--gold", "level", "--systems", "a,b,x"), "no column 'x'"),
        (("results.csv", "--gold", "level", "--systems", "a,b,c", "--test-case", "x"), "no column"),
        (("runs/*.tsv",), "Name the file of gold levels with --gold"),
        (("runs/*.tsv", "--gold-file", "nothing.tsv"), "nothing.tsv"),
        ((*WIDE, "--value", "x"), "--value is for runs in their own files"),
        ((*WIDE, "--id", "x"), "--id is for runs in their own files"),
        ((*WIDE, "--metrics", "nope"), "no metric 'nope'"),
        ((*WIDE, "--references", "nope"), "no metric 'nope'"),
        ((*WIDE, "--cases", "1"), "split into 2 to 180"),
        ((*WIDE, "--significance-level", "2"), "alpha is the level of tests"),
        ((*WIDE, "--interval", "95"), "level of intervals"),
        ((*WIDE, "--resamples", "5"), "5 resamples are too few"),
    ],
)
def test_bad_input_has_one_message(options, message):
    ran = run("meta", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
