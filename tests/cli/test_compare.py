"""`ordinate compare`: both ways of input give the result of Python; bad input is one line."""

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import Ran, check_example, list_examples, read_values, run

from ordinate.cli.main import build_parser
from ordinate.results.comparison import compare

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
SYSTEMS = ("a", "b", "c")
METRICS = ("--metrics", "cem_ord,mae,weighted_kappa(power=1)")


pytestmark = pytest.mark.usefixtures("here")


def items(n: int = 120, seed: int = 2) -> list[dict]:
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        gold = int(rng.integers(0, 6))
        row = {"id": f"e{number}", "gold": CEFR[gold], "writer": f"w{rng.integers(0, 15)}"}
        row["w"] = float(rng.integers(1, 9)) / 4
        for system, rate in zip(SYSTEMS, (0.3, 0.5, 0.9), strict=True):
            off = int(rng.integers(-1, 2)) if rng.random() < rate else 0
            row[system] = CEFR[int(np.clip(gold + off, 0, 5))]
        rows.append(row)
    return rows


ROWS = items()


def write(name: str, content: "str | list[dict]") -> str:
    if isinstance(content, list):
        lines = [["" if x is None else str(x) for x in row.values()] for row in content]
        mark = "\t" if name.endswith(".tsv") else ","
        content = "".join(mark.join(line) + "\n" for line in [list(content[0]), *lines])
    Path(name).write_text(content, encoding="utf-8")
    return name


def split(rows: list[dict], predicted: str = "predicted") -> tuple[str, ...]:
    """Write gold and runs to files of their own, the runs from the last item to the first."""
    write("gold.csv", [{k: row[k] for k in ("id", "gold", "writer", "w")} for row in rows])
    for system in SYSTEMS:
        write(f"{system}.csv", [{"id": r["id"], predicted: r[system]} for r in reversed(rows)])
    return ("gold.csv", *(f"{system}.csv" for system in SYSTEMS), "--id", "id")


def wide(rows: list[dict]) -> tuple[str, ...]:
    return (write("all.csv", rows), "--systems", ",".join(SYSTEMS))


WAYS = {"columns": wide, "runs": split}


def report(*arguments) -> dict:
    """Return the JSON of a comparison that must succeed."""
    ran = run("compare", *arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    return read_values(ran.out)


def facts(result: dict) -> dict:
    return {key: value for key, value in result.items() if key != "source"}


def in_python(rows: list[dict], **options) -> dict:
    """Return what the library says of the same items."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    systems = {name: columns[name] for name in SYSTEMS}
    metrics = METRICS[1]
    for option in ("groups", "weights"):
        if option in options:
            options[option] = columns[options[option]]
    result = compare(columns["gold"], systems, metrics=metrics, **{"scale": "cefr"} | options)
    return json.loads(json.dumps(facts(result.to_dict())))


# --- the same result -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_the_result_is_that_of_python(way):
    assert facts(report(*WAYS[way](ROWS), *METRICS)) == in_python(ROWS)


@pytest.mark.parametrize("way", WAYS)
def test_weights_and_groups_work_together(way):
    found = report(*WAYS[way](ROWS), *METRICS, "--weights", "w", "--groups", "writer")
    assert facts(found) == in_python(ROWS, weights="w", groups="writer")
    assert found["groups"] == 15


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_missing_predictions_follow_the_policy(way, missing):
    rows = [row | {"b": None} if k % 9 == 0 else row for k, row in enumerate(ROWS)]
    found = report(*WAYS[way](rows), *METRICS, "--missing", missing)
    assert facts(found) == in_python(rows, missing=missing)


def test_an_id_that_a_run_lacks_is_a_missing_prediction():
    asked = split(ROWS)
    write("b.csv", [{"id": r["id"], "predicted": r["b"]} for r in ROWS[5:]])
    rows = [row | {"b": None} for row in ROWS[:5]] + ROWS[5:]
    found = report(*asked, *METRICS, "--missing", "drop")
    assert facts(found) == in_python(rows, missing="drop")
    assert "b has no row for 5 of 120 items." in found["source"]["notes"]
    whole = {"matched": 120, "missing": 0, "unknown": 0}
    lacking = {"matched": 115, "missing": 5, "unknown": 0}
    assert found["source"]["match_counts"] == {"a": whole, "b": lacking, "c": whole}
    assert "predicted" not in found["source"]


@pytest.mark.parametrize("way", WAYS)
def test_labels_are_renamed_before_the_scale_sees_them(way):
    rows = [row | {key: row[key].lower() for key in ("gold", *SYSTEMS)} for row in ROWS]
    write("map.json", json.dumps({level.lower(): level for level in CEFR}))
    assert facts(report(*WAYS[way](rows), *METRICS, "--map", "map.json")) == in_python(ROWS)


def test_other_delimiters_and_encodings_are_read():
    text = "ид;gold;a;b\n1;é;é;x\n2;x;x;x\n3;é;x;é\n"
    Path("some.csv").write_bytes(text.encode("utf-16"))
    asked = ("--systems", "a,b", "--scale", "x,é", "--delimiter", ";", "--encoding", "utf-16")
    assert report("some.csv", *asked, "--metrics", "mae")["n"] == 3


def test_names_of_systems_may_have_commas_and_colons():
    write("some.csv", 'gold,"x,y",m:1,m:2\nA1,A1,A2,A1\nB1,B1,B1,B2\n')
    asked = ("some.csv", "--systems", '"x,y",m:1,m:2', "--metrics", "mae")
    found = report(*asked, "--pairs", '"x,y:m:2",m:1:m:2')
    assert found["systems"] == ["x,y", "m:1", "m:2"]
    named = [(test["first"], test["second"]) for test in found["tests"]]
    assert named == [("x,y", "m:2"), ("m:1", "m:2")]


def test_systems_that_answer_the_same_are_identical():
    rows = [row | {"b": row["a"]} for row in ROWS]
    found = report(*wide(rows), *METRICS)
    for board in found["metrics"].values():
        (pair,) = [p for p in board["pairs"] if {p["first"], p["second"]} == {"a", "b"}]
        assert (pair["difference"], pair["p"], pair["verdict"]) == (0, 1, "identical")
        assert (pair["low"], pair["high"], pair["p_adjusted"]) == (0, 0, 1)
        assert board["systems"]["a"]["rank"] == board["systems"]["b"]["rank"]


@pytest.mark.slow
def test_hundreds_of_runs_are_compared():
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 6, 40)
    write("gold.csv", [{"id": k, "gold": CEFR[level]} for k, level in enumerate(gold)])
    for number in range(500):
        answers = np.clip(gold + rng.integers(-1, 2, 40), 0, 5)
        write(f"r{number}.csv", [{"id": k, "predicted": CEFR[x]} for k, x in enumerate(answers)])
    found = report("gold.csv", "r*.csv", "--id", "id", "--metrics", "mae", "--resamples", "500")
    assert len(found["systems"]) == 500
    assert found["against"] == "leader"


# --- the forms of the report ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_what_goes_to_a_file_is_what_goes_to_the_terminal(form):
    asked = (*wide(ROWS), "--metrics", "mae", "--format", form)
    shown = run("compare", *asked)
    assert (shown.code, shown.err) == (0, "")
    assert run("compare", *asked, "-o", "out") == Ran(0, "", "")
    assert Path("out").read_text("utf-8") == shown.out


def test_the_text_says_who_leads_and_where_it_was_read():
    ran = run("compare", *wide(ROWS), "--gold", "gold", "--metrics", "mae")
    words = " ".join(ran.out.split())
    assert "3 systems, 120 items" in words
    assert "a leads on mae" in words
    assert "Read from all.csv. Gold: gold." in words
    assert "No scale was declared" in words


def test_the_csv_has_a_record_for_each_metric_and_system():
    ran = run("compare", *wide(ROWS), "--metrics", "mae,accuracy", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert {(row["metric"], row["system"]) for row in rows} == {
        (metric, system) for metric in ("mae", "accuracy") for system in SYSTEMS
    }


# --- files that are written ----------------------------------------------------------------------


def test_nothing_is_overwritten_without_force():
    asked = (*wide(ROWS), "--metrics", "mae")
    write("out.txt", "kept")
    refused = run("compare", *asked, "-o", "out.txt")
    assert (refused.code, refused.out) == (2, "")
    assert "--force" in refused.err
    assert Path("out.txt").read_text() == "kept"
    assert run("compare", *asked, "-o", "out.txt", "--force").code == 0
    assert Path("out.txt").read_text().startswith("3 systems")


@pytest.mark.parametrize("pattern", [False, True])
def test_no_input_is_overwritten_even_with_force(pattern):
    split(ROWS)
    write("map.csv", "from,to\nx,A1\n")
    files = ("gold.csv", "[abc].csv") if pattern else ("gold.csv", "a.csv", "b.csv", "c.csv")
    for name in ("gold.csv", "b.csv", "map.csv"):
        before = Path(name).read_bytes()
        ran = run("compare", *files, "--id", "id", "--map", "map.csv", "-o", f"./{name}", "--force")
        assert (ran.code, Path(name).read_bytes()) == (2, before)
        assert f"{name} is read" in ran.err


def test_a_failure_leaves_what_was_there_even_with_force(here):
    write("all.csv", "gold,a,b\nA1,ZZ,A1\n")
    write("out.json", "kept")
    asked = ("all.csv", "--systems", "a,b", "--scale", "cefr", "-o", "out.json", "--force")
    assert run("compare", *asked).code == 2
    assert Path("out.json").read_text() == "kept"
    assert sorted(path.name for path in here.iterdir()) == ["all.csv", "out.json"]


# --- bad input -----------------------------------------------------------------------------------


def refused(*arguments) -> str:
    """Run a comparison that must fail, and return its one line."""
    ran = run("compare", *arguments, "-o", "out.json")
    assert (ran.code, ran.out) == (2, "")
    assert not Path("out.json").exists()
    assert re.fullmatch(r"ordinate( compare)?: \S.*\n", ran.err), ran.err
    message = ran.err.rstrip("\n")
    assert message.isprintable()
    assert not re.search(r"SELECT|LINE \d|read_(csv|json|parquet)|Traceback|_items\b", message)
    assert len(message) < 1000
    return message


def test_one_system_is_nothing_to_compare():
    assert "2 to 500 systems, not 1" in refused(write("all.csv", ROWS), "--systems", "a")
    split(ROWS)
    assert "2 to 500 systems, not 1" in refused("gold.csv", "a.csv", "--id", "id")


def test_one_file_without_systems_shows_how_to_name_them():
    message = refused(write("all.csv", ROWS), "--gold", "gold")
    assert "--systems b,c" in message
    assert "'writer'" in message


def test_runs_without_an_id_are_refused():
    files = split(ROWS)[:-2]
    assert "--id" in refused(*files)
    write("b.csv", [{"id": r["id"], "predicted": r["b"]} for r in ROWS[5:]])
    assert "--id" in refused(*files)


def test_runs_of_another_length_lack_predictions():
    asked = split(ROWS)
    write("b.csv", [{"id": r["id"], "predicted": r["b"]} for r in ROWS[7:]])
    message = refused(*asked)
    assert "7 of 120 predictions of b are missing (id e0, id e1, id e2, id e3, id e4, …)" in message
    assert "--missing drop" in message
    assert "--missing worst" in message


@pytest.mark.parametrize("name", ["gold.csv", "b.csv"])
def test_an_id_twice_is_refused(name):
    asked = split(ROWS)
    with Path(name).open("a") as file:
        file.write("e3,A1,w1,1\n" if name == "gold.csv" else "e3,A1\n")
    message = refused(*asked)
    assert f"{name}: the id 'e3' occurs 2 times" in message


def test_a_run_without_the_id_column_is_named():
    asked = split(ROWS)
    write("b.csv", "key,predicted\ne1,A1\n")
    assert "b.csv has no column 'id'" in refused(*asked)


@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("way", WAYS)
def test_a_system_without_predictions_is_named(way, missing):
    rows = [row | {"c": None} for row in ROWS]
    message = refused(*WAYS[way](rows), "--missing", missing)
    assert "All 120 predictions of c are missing" in message


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_label_is_named_with_its_place(way):
    rows = [row | {"c": "B3"} if k == 9 else row for k, row in enumerate(ROWS)]
    place = {"columns": "row 10 of column 'c'", "runs": "id e9 of c.csv of column 'predicted'"}
    message = refused(*WAYS[way](rows), "--scale", "cefr")
    assert f"'B3' ({place[way]})" in message


@pytest.mark.parametrize(
    "asked",
    [
        ("--gold", "golden"),
        ("--weights", "golden"),
        ("--groups", "golden"),
        ("--systems", "golden"),
    ],
)
def test_an_unknown_column_is_named_with_the_closest(asked):
    message = refused(*wide(ROWS), *asked)
    assert "all.csv has no column 'golden'" in message
    assert "'gold'" in message


@pytest.mark.parametrize("asked", [("--against", "aa"), ("--pairs", "aa:b"), ("--pairs", "b:aa")])
def test_an_unknown_system_is_named(asked):
    assert "There is no system 'aa'" in refused(*wide(ROWS), *asked)


OPTIONS = {
    ("--pairs", "a"): "a:b",
    ("--pairs", "a:"): "a:b",
    ("--pairs", ":b"): "a:b",
    ("--pairs", ""): "--pairs",
    ("--pairs", "a:a"): "two different systems",
    ("--margin", "cem_ord"): "METRIC=VALUE",
    ("--margin", "cem_ord="): "METRIC=VALUE",
    ("--margin", "=0.1"): "METRIC=VALUE",
    ("--margin", "cem_ord=x"): "METRIC=VALUE",
    ("--margin", "cem_ord=nan"): "METRIC=VALUE",
    ("--margin", "cem_ord=0"): "above 0",
    ("--margin", "cem_ord=-1"): "above 0",
    ("--margin", "cem_ord=inf"): "above 0",
    ("--margin", "acuracy=1"): "'accuracy'",
    ("--margin", "purity=0.1"): "not compared|not a metric",
    ("--systems", ""): "--systems",
    ("--systems", "a,,b"): "--systems",
    ("--systems", "a,a"): "named twice",
    ("--interval", "0"): "level",
    ("--interval", "1"): "level",
    ("--interval", "95"): "level",
    ("--interval", "x"): "--interval",
    ("--resamples", "3"): "resamples",
    ("--resamples", "2.5"): "--resamples",
    ("--seed", "-1"): "seed",
    ("--correction", "bonferroni"): "--correction",
    ("--missing", "ignore"): "--missing",
    ("--format", "xml"): "--format",
    ("--metrics", "acuracy"): "'accuracy'",
    ("--scale", "A1"): "scale",
    ("--delimiter", "ab"): "--delimiter",
    ("--id", "id"): "one or the other",
    ("--met", "mae"): "--help",
}


@pytest.mark.parametrize("asked", OPTIONS, ids=" ".join)
def test_what_an_option_does_not_take_is_refused(asked):
    assert re.search(OPTIONS[asked], refused(*wide(ROWS), *asked))


def test_what_cannot_be_read_is_named():
    split(ROWS)
    assert "'absent.csv'" in refused("gold.csv", "a.csv", "absent.csv", "--id", "id")
    write("b.csv", "id,predicted\ne1\n")
    assert "b.csv" in refused("gold.csv", "a.csv", "b.csv", "--id", "id")
    assert "twice" in refused("gold.csv", "a.csv", "a.csv", "--id", "id")


# --- help ----------------------------------------------------------------------------------------


def lay_out(line: str) -> None:
    """Make the files of an example, with the columns that it names."""
    options = build_parser().parse_args(shlex.split(line)[1:])
    given = vars(options)
    gold, labels = given.get("gold", "gold"), ["A1", "B1", "C1", "B2", "A2", "C2"] * 2
    if options.scale == "1..5":
        columns = {name: [1, 5, 3, 2, 4, 3] for name in (gold, *given["systems"])}
        pq.write_table(pa.table(columns | {"writer": list("uvwxyz")}), options.files[0])
    elif "target" in given:
        names = [given["target"], *given["systems"]]
        rows = [{name: 600 + 7 * k + k % (2 + n) for n, name in enumerate(names)} for k in range(9)]
        write(options.files[0], rows)
    elif "systems" in given:
        names = [gold, *given["systems"]]
        rows = [dict.fromkeys(names, x) | {"topic": k % 6} for k, x in enumerate(labels)]
        write("rows.csv" if "sql" in given else options.files[0], rows)
        if "sql" in given:
            with duckdb.connect("runs.db") as connection:
                connection.execute("create table essays as from 'rows.csv'")
    else:
        Path("runs").mkdir()
        suffix = Path(options.files[0]).suffix
        for column, name in (
            (gold, "gold"),
            (options.predicted, "runs/a"),
            (options.predicted, "runs/b"),
        ):
            keys = [dict.fromkeys(options.id.split(","), k) for k in range(len(labels))]
            rows = [key | {column: x} for key, x in zip(keys, labels, strict=True)]
            write(f"{name}{suffix}", rows)


@pytest.mark.parametrize("line", list_examples("compare"))
def test_every_example_runs(line):
    lay_out(line)
    check_example(line)


def test_the_help_explains_every_option():
    shown = run("compare", "--help").out + run("compare", "--help-files").out
    options = (
        "--gold --systems --id --predicted --scale --map --weights --groups --metrics --missing "
        "--against --correction --margin --pairs --interval --resamples --seed --format --output "
        "--force --delimiter --encoding --target --unit"
    )
    for option in options.split():
        explained = re.search(rf"^  (-o.*?, )?{option}\b.*(\n {{6,}}.+)?", shown, re.MULTILINE)
        assert explained, option
        assert len(explained[0].split()) > 3, option
    assert len(list_examples("compare")) >= 4


def test_help_loads_no_numpy():
    script = "import sys; from ordinate.cli.main import main; main(['compare', '--help'])"
    script = f"try:\n    {script}\nexcept SystemExit: print('numpy' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ran.stdout.endswith("False\n")
