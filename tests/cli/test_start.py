"""Starting is cheap, help helps, and every example in it runs."""

import ast
import gzip
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from command import check_example, list_examples, run

from ordinate.cli.main import COMMANDS, build_parser, main

HEAVY = {"scipy", "pandas", "polars", "pyarrow", "duckdb", "sklearn", "matplotlib", "narwhals"}
PAIRS = "gold,predicted\nA1,A1\nB1,B2\nC1,C1\nA2,A2\n"


def loaded(program: str, folder: Path) -> set[str]:
    """Return the packages that a program has loaded when it ends."""
    script = (
        "import contextlib, io, json, sys\n"
        "out = io.StringIO()\n"
        "with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):\n"
        f"    {program}\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return set(json.loads(ran.stdout))


def list_modules(program: str, folder: Path, pattern: str) -> list[str]:
    """Return the modules whose names match a pattern once a program is done."""
    script = (
        f"import re, sys\n{program}\nprint([x for x in sys.modules if re.search({pattern!r}, x)])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, check=True
    )
    return ast.literal_eval(ran.stdout.splitlines()[-1])


def test_importing_the_package_loads_nothing_heavy(tmp_path):
    assert not loaded("import ordinate", tmp_path) & HEAVY


def test_every_public_name_loads_nothing_heavy(tmp_path):
    program = "import ordinate; [getattr(ordinate, name) for name in ordinate.__all__]"
    assert not loaded(program, tmp_path) & HEAVY


def test_evaluating_lists_loads_nothing_heavy(tmp_path):
    program = "import ordinate; print(ordinate.evaluate(['A1', 'B1'], ['A1', 'B2'], 'cefr'))"
    assert not loaded(program, tmp_path) & HEAVY


@pytest.mark.parametrize("command", ["--help", "--version", "evaluate --help", "metrics --help"])
def test_help_loads_no_numpy(tmp_path, command):
    program = f"from ordinate.cli.main import main; main({command.split()})"
    assert not loaded(program, tmp_path) & (HEAVY | {"numpy"})


def test_a_command_that_is_wrong_loads_no_numpy(tmp_path):
    script = "from ordinate.cli.main import main; sys.stderr = out; main(['evaluate', '--nope'])"
    assert not loaded(script, tmp_path) & (HEAVY | {"numpy"})


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_evaluating_a_file_loads_only_the_engine(tmp_path, form):
    (tmp_path / "some.csv").write_text(PAIRS)
    asked = ["evaluate", "some.csv", "--format", form, "--items", "wrong.csv"]
    program = f"from ordinate.cli.main import main; assert main({asked}) == 0"
    assert not loaded(program, tmp_path) & (HEAVY - {"duckdb"})


OF_OTHERS = (
    r"_charts$|scale\.declaration_files$"
    r"|render\.(charts|forest_plots|svg|html|markup|records|atomic_files)$"
    r"|summaries\.(ensemble|paired|panel|prediction_intervals|probabilit|regression|reliability)"
    r"|inference\.(case_averages|prediction_swaps|regression|subgroup_differences|system_)"
    r"|metrics\.(calibration|proper_scores|regression)$"
    r"|readers\.(batches|databases|frame_items|panels|regression|reliability)"
    r"|results\.(calibration|case_|comparison|error_attribution|regression|thresholds)"
)


def test_evaluating_a_file_in_a_pipe_loads_nothing_of_other_tasks(tmp_path):
    (tmp_path / "some.csv").write_text(PAIRS)
    program = "from ordinate.cli.main import main; assert main(['evaluate', 'some.csv']) == 0"
    assert list_modules(program, tmp_path, OF_OTHERS) == []


@pytest.mark.parametrize("suffix", ["jsonl", "csv.gz"])
def test_other_files_load_only_the_engine_too(tmp_path, suffix):
    content = b'{"gold": "A1", "predicted": "A2"}\n' if suffix == "jsonl" else None
    (tmp_path / f"some.{suffix}").write_bytes(content or gzip.compress(PAIRS.encode()))
    program = f"from ordinate.cli.main import main; assert main(['evaluate', 'some.{suffix}']) == 0"
    assert not loaded(program, tmp_path) & (HEAVY - {"duckdb"})


def test_what_evaluates_loads_nothing_that_trains(tmp_path):
    (tmp_path / "some.csv").write_text(PAIRS)
    program = (
        "import ordinate\n"
        "from ordinate.cli.main import main\n"
        "ordinate.evaluate(['A1', 'B1'], ['A1', 'B2'], 'cefr')\n"
        "assert main(['evaluate', 'some.csv', '-o', 'report.html']) == 0"
    )
    assert list_modules(program, tmp_path, r"^ordinate\.tuning") == []


def test_the_catalogue_loads_nothing_heavy(tmp_path):
    program = "from ordinate.cli.main import main; assert main(['metrics']) == 0"
    assert not loaded(program, tmp_path) & HEAVY


# --- help ----------------------------------------------------------------------------------------


def help_of(capsys, *command: str) -> str:
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*command, "--help"])
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_help_of_all_names_every_command(capsys):
    shown = help_of(capsys)
    assert shown.startswith("usage: ordinate")
    assert "evaluate" in shown
    assert "metrics" in shown


def test_the_help_of_evaluate_explains_every_option(capsys):
    shown = help_of(capsys, "evaluate")
    shown += run("evaluate", "--help-files").out
    options = (
        "--gold --predicted --gold-file --id --row-order --scale --map --weights --by --metrics "
        "--missing --format --output --items --force --fail-under --fail-when --delimiter "
        "--encoding"
    )
    for option in options.split():
        name = option.removeprefix("--")
        pattern = rf"^  (-o.*?, )?--(\[no-\])?{name}\b.*(\n {{6,}}.+)?"
        explained = re.search(pattern, shown, re.MULTILINE)
        assert explained, option
        assert len(explained[0].split()) > 3, option
    for code in ("0", "2", "3", "130"):
        assert re.search(rf"exit codes:.*\b{code} ", shown)


def test_the_help_of_metrics_explains_itself(capsys):
    assert "examples:" in help_of(capsys, "metrics")


def test_help_and_version_work_as_a_process():
    for command in (["--help"], ["evaluate", "--help"], ["metrics", "--help"], ["--version"]):
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-m", "ordinate", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.startswith(("usage: ordinate", "ordinate "))


# --- the examples in the help --------------------------------------------------------------------


EVALUATE = [*list_examples("evaluate"), *list_examples("evaluate", "--help-files")]
METRICS = list_examples("metrics")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_stands_below_the_options_is_no_wider_than_a_page(command):
    _, _, below = run(command, "--help").out.partition("\nexamples:\n")
    assert max(map(len, below.splitlines()), default=0) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_is_understood(command):
    lines = [line for line in list_examples(command) if "ordinate " in line]
    assert lines
    for line in lines:
        words = shlex.split(line.rpartition("|")[2], comments=True)
        if words[0] == "ordinate":
            assert build_parser([words[1]]).parse_args(words[1:]).command == words[1], line


def _parquet(path: Path, columns: dict[str, list]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


def _lay_out_rows(folder: Path, options, columns: dict[str, list]) -> None:
    """Make what an example reads that is no file with a header: a database, partitions, rows."""
    labels = next(iter(columns.values()))
    if hasattr(options, "sql"):
        with sqlite3.connect(folder / "runs.db") as connection:
            connection.execute(f"create table essays ({', '.join(columns)})")
            rows = list(zip(*columns.values(), strict=True))
            connection.executemany("insert into essays values (?, ?)", rows)
    elif hasattr(options, "hive"):
        for language in ("de", "fr"):
            part = folder / "data" / f"language={language}"
            part.mkdir(parents=True)
            _parquet(part / "part.parquet", columns)
    else:
        for name in (options.gold_file, options.files[0]):
            (folder / name).write_text("".join(f"T\t{k}\t{x}\n" for k, x in enumerate(labels)))


def _lay_out(folder: Path, line: str) -> None:
    """Make the files of an example, with the columns that it names."""
    words = shlex.split(line.rpartition("|")[2])
    options = build_parser().parse_args(words[1:])
    given = vars(options)
    gold, predicted = given.get("gold", "gold"), given.get("predicted", "predicted")
    labels = ["low", "mid", "high"] if options.scale == "low,mid,high" else ["A1", "B1", "C1"]
    if {"sql", "hive", "header"} & given.keys():
        _lay_out_rows(folder, options, {gold: labels, predicted: labels})
        return
    if options.scale == "1..5":
        _parquet(
            folder / "results.parquet",
            {gold: [1, 5, 3], predicted: [1, 4, 3], "language": ["de", "fr", "de"]},
        )
        return
    if "gold_file" in given:
        rows = "".join(f"{k},{label}\n" for k, label in enumerate(labels))
        (folder / options.gold_file).write_text(f"{options.id},{gold}\n{rows}")
        answers = [{options.id: k, predicted: label} for k, label in enumerate(labels)]
        (folder / options.files[0]).write_text("".join(json.dumps(a) + "\n" for a in answers))
        return
    if "scale_by" in given:
        (folder / "ranges.csv").write_text("prompt,scale\na,0..3\nb,2..12\n")
        rows = "a,0,1\na,3,3\nb,12,10\nb,2,2\n"
        (folder / "essays.csv").write_text(f"prompt,{gold},{predicted}\n{rows}")
        return
    levels = ("A1", "A2", "B1", "B2", "C1", "C2")
    names = "".join(f",p_{level}" for level in levels)
    rows = "".join(
        f"{label},{label},{label},w{k},t{k % 2},"
        + ",".join(str(int(level == label)) for level in levels)
        + "\n"
        for k, label in enumerate((*labels, labels[0]))
    )
    content = f"{gold},{predicted},level_2,writer,topic{names}\n{rows}"
    for name in ("results.csv", "essays.csv"):
        (folder / name).write_text(content)
    if "*.csv" in line:
        (folder / "more results.csv").write_text(content)
    if "results.csv.gz" in line:
        (folder / "results.csv.gz").write_bytes(gzip.compress(content.encode()))


@pytest.mark.parametrize("line", [*EVALUATE, *METRICS])
def test_every_example_runs(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    if line in EVALUATE:
        _lay_out(tmp_path, line)
    check_example(line)


def test_the_module_of_the_examples_explains_itself():
    command = [sys.executable, "-m", "ordinate.examples"]
    ran = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "usage: python -m ordinate.examples" in ran.stdout
    ran = subprocess.run([*command, "no"], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2
    assert "choose from" in ran.stderr


TWO_CORES = pytest.mark.skipif(os.cpu_count() == 1, reason="takes two cores")


@pytest.mark.parametrize(
    ("given", "threads"), [(None, {1}), pytest.param("2", {2}, marks=TWO_CORES)]
)
def test_commands_with_threads_of_their_own_leave_one_to_the_library_of_matrices(
    tmp_path, given, threads
):
    """Unless somebody says otherwise."""
    script = (
        "import sys; from ordinate.cli.main import main\n"
        "code = main(['evaluate', 'levels.csv', '-o', 'report'])\n"
        "from threadpoolctl import threadpool_info\n"
        "print([x['num_threads'] for x in threadpool_info() if 'openblas' in x['filepath']])\n"
        "sys.exit(code)\n"
    )
    (tmp_path / "levels.csv").write_text(PAIRS)
    rest = {name: x for name, x in os.environ.items() if not name.endswith("_NUM_THREADS")}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=rest | ({"OPENBLAS_NUM_THREADS": given} if given else {}),
        check=True,
        timeout=60,
    )
    assert set(json.loads(ran.stdout)) <= threads
