"""`ordinate evaluate --average-over` and `--scale-by`: what Python gives, from files."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command import read_values, run

import ordinate
from ordinate.errors import BadInput
from ordinate.scale.declaration_files import read_case_scales

METRICS = "cem_ord,kendall_tau_b,mae"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_items(n: int = 200, seed: int = 6) -> list[dict]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        gold = int(rng.integers(1, 6))
        near = int(np.clip(gold + rng.integers(-1, 2), 1, 5))
        topic, language = f"t{rng.integers(0, 12)}", ("de", "fr")[int(rng.integers(0, 2))]
        rows.append({"gold": gold, "predicted": near, "topic": topic, "language": language})
    return rows


ITEMS = make_items()


def write(name: str, rows: list[dict]) -> str:
    with Path(name).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return name


def column(name: str, rows: list[dict] = ITEMS) -> list:
    return [row[name] for row in rows]


def read_report(*arguments) -> dict:
    found = run("evaluate", *arguments, "--format", "json")
    assert found.code == 0, found.err
    return read_values(found.out)


@pytest.mark.parametrize("fixed", [False, True])
def test_the_command_gives_what_python_gives(fixed):
    flags = ["--fixed-cases"] if fixed else []
    found = read_report(
        *(write("items.csv", ITEMS), "--scale", "1..5", "--metrics", METRICS),
        *("--average-over", "topic", "--by", "language", *flags),
    )
    expected = ordinate.evaluate(
        *(column("gold"), column("predicted"), "1..5", METRICS),
        average_over=column("topic"),
        by=column("language"),
        fixed_cases=fixed,
    ).to_dict()
    pairs = [(found, expected), *((found["by"][k], expected["by"][k]) for k in ("de", "fr"))]
    for part, other in pairs:
        assert part["average_over"].pop("column") == "topic"
        assert other["average_over"].pop("column") is None
        assert part["average_over"] == other["average_over"]


def test_probabilities_are_averaged_over_cases_too():
    rng = np.random.default_rng(2)
    rows = [
        row | {f"p_{k + 1}": x for k, x in enumerate(rng.dirichlet(np.ones(5)))} for row in ITEMS
    ]
    found = read_report(
        *(write("items.csv", rows), "--scale", "1..5", "--probabilities", "p_"),
        *("--metrics", "mae,brier", "--average-over", "topic"),
    )
    assert found["average_over"]["cases"] == 12


def test_a_report_on_cases_says_what_it_is():
    found = run("evaluate", write("items.csv", ITEMS), "--scale", "1..5", "--average-over", "topic")
    assert "Mean over 12 cases of topic: cem_ord" in " ".join(found.out.split())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--average-over", "topic", "--groups", "language"], "Clusters that cross cases"),
        (["--fixed-cases"], "Which cases are fixed?"),
        (["--average-over", "theme"], "no column 'theme'"),
        (["--scale-by", "topic"], "--scale-by takes COL=FILE"),
    ],
)
def test_what_makes_no_sense_is_one_message(flags, message):
    found = run("evaluate", write("items.csv", ITEMS), "--scale", "1..5", *flags)
    assert (found.code, found.out) == (2, "")
    assert message in found.err


# --- scales of cases ------------------------------------------------------------------------------


RANGES = {"1": (2, 12), "2": (0, 3), "3": (0, 60)}


def make_essays(n: int = 30) -> list[dict]:
    rng = np.random.default_rng(9)
    rows = []
    for prompt, (low, high) in RANGES.items():
        for gold in rng.integers(low, high + 1, n):
            near = int(np.clip(gold + rng.integers(-2, 3), low, high))
            rows.append({"prompt": int(prompt), "gold": int(gold), "predicted": near})
    return rows


ESSAYS = make_essays()


def write_scales(text: str, name: str = "scales.csv") -> str:
    Path(name).write_text(text)
    return name


CSV_SCALES = "prompt,scale\n" + "".join(f"{k},{low}..{high}\n" for k, (low, high) in RANGES.items())
JSON_SCALES = json.dumps({k: f"{low}..{high}" for k, (low, high) in RANGES.items()})


@pytest.mark.parametrize("text", [CSV_SCALES, JSON_SCALES])
def test_scales_by_case_give_what_python_gives(text):
    found = read_report(
        write("essays.csv", ESSAYS),
        "--scale-by",
        f"prompt={write_scales(text)}",
        "--metrics",
        METRICS,
    )
    expected = ordinate.evaluate_cases(
        *(column(name, ESSAYS) for name in ("gold", "predicted", "prompt")),
        {int(k): range(low, high + 1) for k, (low, high) in RANGES.items()},
        METRICS,
    ).to_dict()
    for plain in (found, expected):
        plain.pop("source")
        plain.pop("column")
    assert found == expected


def test_a_threshold_is_compared_with_the_mean():
    items, scales = write("essays.csv", ESSAYS), write_scales(CSV_SCALES)
    flags = ("--scale-by", f"prompt={scales}", "--fail-under")
    assert run("evaluate", items, *flags, "quadratic_kappa=0.5").code == 0
    assert run("evaluate", items, *flags, "quadratic_kappa=1").code == 3


@pytest.mark.parametrize(
    "flags",
    [
        ["--scale", "1..5"],
        ["--by", "prompt"],
        ["--second-rater", "gold"],
        ["--error-attribution", "mae"],
        ["--items", "wrong.csv"],
        ["--groups", "gold"],
        ["--average-over", "gold"],
        ["--interval-method", "bca"],
    ],
)
def test_what_needs_one_scale_is_refused_by_its_flag(flags):
    items, scales = write("essays.csv", ESSAYS), write_scales(CSV_SCALES)
    found = run("evaluate", items, "--scale-by", f"prompt={scales}", *flags)
    assert found.code == 2
    assert flags[0] in found.err


def test_a_case_without_a_scale_is_named_before_its_labels():
    items = write("essays.csv", [*ESSAYS, {"prompt": 4, "gold": 99, "predicted": 98}])
    found = run("evaluate", items, "--scale-by", f"prompt={write_scales(CSV_SCALES)}")
    assert (found.code, found.out) == (2, "")
    assert "Case '4' has no scale. Add each case to scale_by (--scale-by)." in found.err


def test_a_label_on_no_scale_asks_for_nothing_that_is_refused():
    items = write("essays.csv", [*ESSAYS, {"prompt": 3, "gold": 99, "predicted": 60}])
    found = run("evaluate", items, "--scale-by", f"prompt={write_scales(CSV_SCALES)}")
    assert found.code == 2
    assert "These are the labels of all scales of the cases together." in found.err
    assert "(--scale)" not in found.err


def test_the_file_of_scales_is_never_overwritten():
    items, scales = write("essays.csv", ESSAYS), write_scales(CSV_SCALES)
    found = run("evaluate", items, "--scale-by", f"prompt={scales}", "-o", scales, "--force")
    assert found.code == 2
    assert Path(scales).read_text() == CSV_SCALES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header whose second column is 'scale'"),
        ("case,range\n1,0..3\n", "no header whose second column is 'scale'"),
        ("case,scale\n", "has no scale"),
        ("case,scale\n1,0..3\n\n2,low,mid,high\n", "Line 4 of scales.csv has 4 columns"),
        ("case,scale\n1,0..3\n1,0..4\n", "gives the case '1' two scales"),
        ("case,scale\n1,0-3\n", "The case '1' of scales.csv: '0-3' is not a scale"),
        ('{"1": 3}', "The case '1' of scales.csv has no scale: 3"),
        ('{"1": "0..3", "1": "0..4"}', "gives the case '1' two scales"),
        ('{"1": ', "cannot be read"),
    ],
)
def test_a_bad_file_of_scales_says_where(text, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        read_case_scales(write_scales(text))


def test_scales_may_be_labels():
    text = 'case,scale\ntone,"low, mid, high"\n\n"level",cefr\n'
    found = read_case_scales(write_scales(text))
    assert [scale.labels for scale in found.values()] == [
        ("low", "mid", "high"),
        ("A1", "A2", "B1", "B2", "C1", "C2"),
    ]
    assert read_case_scales(write_scales('{"x": ["a", "b"]}'))["x"].labels == ("a", "b")


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(BadInput, match=r"The scales none\.csv cannot be read: No such file"):
        read_case_scales("none.csv")


# --- comparisons ----------------------------------------------------------------------------------


def test_a_comparison_over_cases_gives_what_python_gives():
    rng = np.random.default_rng(3)
    rows = [row | {"other": int(rng.integers(1, 6))} for row in ITEMS]
    arguments = (write("items.csv", rows), "--scale", "1..5", "--systems", "predicted,other")
    ran = run(
        *("compare", *arguments, "--metrics", METRICS, "--average-over", "topic"),
        *("--resamples", "200", "--format", "json"),
    )
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["average_over"]
    systems = {name: column(name, rows) for name in ("predicted", "other")}
    expected = ordinate.compare(
        *(column("gold", rows), systems, "1..5", METRICS),
        average_over=column("topic", rows),
        resamples=200,
    ).to_dict()["average_over"]
    assert (found.pop("column"), expected.pop("column")) == ("topic", None)
    assert found == expected
