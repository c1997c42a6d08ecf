"""`ordinate meta`: files in, the same judgement as in Python, and one message for bad input."""

import json
import re
import shlex
from pathlib import Path

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
JOINED = ("--groups", "entity", "--gold", "polarity", "--predicted", "polarity", *SCALE)
NAMED = ("--id", "entity,tweet", *JOINED)
RUNS = ("gold.tsv", "runs/*.tsv", *NAMED)
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
    found = judged(*WIDE, "--groups", "topic")
    assert without_source(found) == without_source(expected())
    assert list(found["metrics"]) == list(EVALUATED_METRICS)
    assert found["test_cases"] == CASES


def test_one_system_has_the_values_that_python_gives():
    alone = ["a" if one == "a,b,c" else one for one in WIDE]
    found = judged(*alone, "--groups", "topic")
    values = expected()["metrics"]["cem_ord"]["values"]["a"]
    assert found["metrics"]["cem_ord"]["values"] == {"a": values}


def test_a_folder_stands_for_the_runs_in_it(tmp_path):
    (tmp_path / "runs/.hidden.tsv").write_text("none")
    (tmp_path / "runs/notes.md").write_text("none")
    wanted = judged(*RUNS)
    (tmp_path / "runs/below.tsv").mkdir()
    assert wanted == judged("gold.tsv", "runs", *NAMED) == judged("gold.tsv", "runs/", *NAMED)


def test_runs_in_their_own_files_give_the_same_judgement_as_columns():
    found = judged(*RUNS)
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
        file.write_text(re.sub(r"(?m)^t\d\d\t", "t\t", file.read_text()))
    found = judged(*RUNS, "--cases", "6", "--metrics", "mae")
    assert without_source(found) == without_source(expected("mae", None, cases=6))
    assert any(note.startswith("t is the only test case: ") for note in found["notes"])


HEADERLESS = ("--header", "none", "--columns", "topic,tweet,level", "--id", "topic,tweet")
NAMELESS = (*HEADERLESS, "--groups", "topic", "--gold", "level", "--predicted", "level", *SCALE)
CAMPAIGN = ("gold.tsv", "runs/*.tsv", *NAMELESS)
KEYS = [(f"RL{k // 9:03}", str(28 + k % 9)) for k in range(CASES * SIZE)]  # in each topic the same
LEVELS_BY_SYSTEM = dict(zip(NAMES, SYSTEMS.values(), strict=True))


def write_campaign(quote='"', lacking=()):
    """Write gold and runs without a header, in their own order; some lines lack their label."""
    for name, levels in {"gold": GOLD, **LEVELS_BY_SYSTEM}.items():
        rows = [(*key, f"L{level}") for key, level in zip(KEYS, levels, strict=True)]
        rows = [row[:2] if (name, row[:2]) in lacking else row for row in rows]
        if name != "gold":
            rows = [rows[k] for k in np.random.default_rng(len(rows)).permutation(len(rows))]
        lines = ["\t".join(f"{quote}{cell}{quote}" for cell in row) for row in rows]
        path = Path("gold.tsv" if name == "gold" else f"runs/{name}.tsv")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("quote", ["", '"'])
def test_runs_of_a_campaign_without_headers_are_known_by_topic_and_tweet(quote):
    write_campaign(quote)
    found = judged(*CAMPAIGN)
    assert without_source(found) == without_source(expected(groups=[topic for topic, _ in KEYS]))
    assert found["source"]["files"] == ["gold.tsv", *(f"runs/{name}.tsv" for name in NAMES)]
    assert "pass --id topic,tweet." in run("meta", *CAMPAIGN, "--id", "tweet").err


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_bad_lines_of_a_campaign_are_left_out_and_lacking_items_are_missing(missing):
    lacking = {(name, KEYS[at]) for k, name in enumerate(NAMES) for at in range(k, 180, 30 + k)}
    write_campaign(lacking=lacking)
    flags = ("--missing", missing, "--references", "accuracy,mae")
    assert "--bad-lines skip" in run("meta", *CAMPAIGN, *flags).err
    found = judged(*CAMPAIGN, *flags, "--bad-lines", "skip")
    systems = {
        name: [None if (name, key) in lacking else x for key, x in zip(KEYS, levels, strict=True)]
        for name, levels in LEVELS_BY_SYSTEM.items()
    }
    panel = panel_of(GOLD, systems, 3, groups=[topic for topic, _ in KEYS], missing=missing)
    wanted = evaluate_metrics(panel, None, ["accuracy", "mae"], resamples=100).to_dict()
    assert without_source(found) == without_source(json.loads(json.dumps(wanted)))
    counts = {name: found["source"]["match_counts"][name]["missing"] for name in NAMES}
    assert counts == {name: sum(run == name for run, _ in lacking) for name in NAMES}


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
    found = judged(*WIDE, "--groups", "topic", *options, *lists)
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


@pytest.mark.parametrize(
    "line", re.findall(r"^  (ordinate .*)$", EXAMPLES.replace("\\\n   ", ""), re.MULTILINE)
)
def test_every_example_runs(line, tmp_path):
    for file in (tmp_path / "gold.tsv", *tmp_path.glob("runs/*")):
        _, _, rows = file.read_text().partition("\n")
        file.write_text(rows if "--header none" in line else f"topic\tid\tlevel\n{rows}")
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
    assert run("meta", *RUNS, *QUICK, "-o", "gold.tsv", "--force").code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("results.csv", "--gold", "level", "--systems", "a,b,x"), "no column 'x'"),
        (("results.csv", "--gold", "level", "--systems", "a,b,c", "--groups", "x"), "no column"),
        (("gold.tsv", "runs/*.tsv", *JOINED), "Name its column with --id"),
        (("nothing.tsv", "runs/*.tsv", *NAMED), "nothing.tsv"),
        ((*WIDE, "--id", "x"), "--id and --predicted are for runs in files of their own"),
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
