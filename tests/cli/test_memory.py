"""What large inputs need: memory that does not explode, and refusals before the work."""

import csv
import json
import random
import re
import subprocess
import sys

import duckdb
import numpy as np
import pytest
from command import run

from ordinate.errors import BadInput
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.counting import MOST_CELLS
from ordinate.tuning.experiment.frame_files import save_frame

COMMAND = (sys.executable, "-m", "ordinate")
CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
GIGABYTE = 1 << 30


def table(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def run_within(limit, *arguments):
    """Run a command in a process of so much address space."""
    resource = pytest.importorskip("resource", reason="only POSIX confines a process")

    def confine():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=confine,
    )


def peak(*arguments):
    """Run a command, and return the megabytes that it needed at most."""
    script = (
        "import sys; from pathlib import Path; from ordinate.cli.main import main\n"
        "code = main(sys.argv[1:])\n"
        "print(Path('/proc/self/status').read_text(), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(re.search(r"VmHWM:\s+(\d+) kB", ran.stderr)[1]) / 1024


# --- systems -------------------------------------------------------------------------------------


def systems(folder, count, rows=20):
    """A file of so many systems, and the flags that name them."""
    chance = random.Random(count)  # noqa: S311 - of a test
    names = [f"s{k}" for k in range(count)]
    cells = [[chance.choice(CEFR) for _ in range(count + 1)] for _ in range(rows)]
    path = table(folder / "all.csv", ["gold", *names], cells)
    return ("compare", path, "--gold", "gold", "--systems", ",".join(names))


def compare_500_systems(folder, *more):
    ran = run_within(4 * GIGABYTE, *systems(folder, 500), *more, "--format", "json")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(json.loads(ran.stdout)["systems"]) == 500


def test_500_systems_are_compared_in_4_gb(tmp_path):
    compare_500_systems(tmp_path, "--metrics", "mae", "--resamples", "200")


@pytest.mark.slow
def test_500_systems_are_compared_in_4_gb_by_all_default_metrics(tmp_path):
    compare_500_systems(tmp_path)


@pytest.mark.slow
def test_500_systems_on_300_levels_are_compared_in_4_gb(tmp_path):
    command, path, *rest = systems(tmp_path, 500)
    numbers = {label: str(50 * k + 1) for k, label in enumerate(CEFR)}
    rows = [[numbers.get(x, x) for x in row] for row in csv.reader(path.read_text().splitlines())]
    table(path, rows[0], rows[1:])
    few = ("--scale", "1..300", "--metrics", "mae", "--resamples", "100")
    assert run_within(4 * GIGABYTE, command, path, *rest, *few).returncode == 0


def test_501_systems_are_refused_in_4_gb(tmp_path):
    ran = run_within(4 * GIGABYTE, *systems(tmp_path, 501))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Comparing takes 2 to 500 systems, not 501." in ran.stderr


@pytest.mark.parametrize("count", [501, 5_000])
def test_more_systems_are_refused_before_they_are_read(tmp_path, count):
    asked = systems(tmp_path, count, rows=1)
    asked[1].write_bytes(b"\xff\xfe\x00 nothing that could be read")
    ran = run(*asked)
    assert (ran.code, ran.out) == (2, "")
    assert f"Comparing takes 2 to 500 systems, not {count}." in ran.err


def test_more_runs_are_refused_before_they_are_read(tmp_path):
    for k in range(502):
        (tmp_path / f"r{k}.csv").write_bytes(b"\xff\xfe\x00 nothing that could be read")
    ran = run("compare", tmp_path / "r0.csv", tmp_path / "r[1-9]*.csv", "--id", "id")
    assert (ran.code, ran.out) == (2, "")
    assert "Comparing takes 2 to 500 systems, not 501." in ran.err


def test_too_many_systems_for_a_judgement_of_metrics_are_refused_before_they_are_read(tmp_path):
    _, path, *rest = systems(tmp_path, 11_000, rows=1)
    path.write_bytes(b"\xff\xfe\x00 nothing that could be read")
    ran = run("meta", path, *rest)
    assert (ran.code, ran.out) == (2, "")
    assert "11,000 systems have too many pairs to look at in 10 test cases" in ran.err


def test_too_many_models_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "all.csv"
    path.write_bytes(b"\xff\xfe\x00 nothing that could be read")
    against = ",".join(f"m{k}" for k in range(501))
    ran = run("compare", path, "--target", "y", "--systems", against)
    assert (ran.code, ran.out) == (2, "")
    assert "Comparing takes 2 to 500 systems, not 501." in ran.err


def test_a_plan_for_three_systems_is_refused_before_they_are_read(tmp_path):
    (tmp_path / "all.csv").write_bytes(b"\xff\xfe\x00 nothing that could be read")
    ran = run("power", tmp_path / "all.csv", "--gold", "gold", "--systems", "a,b,c")
    assert (ran.code, ran.out) == (2, "")
    assert "A plan takes one system or two, not 3." in ran.err


# --- levels --------------------------------------------------------------------------------------


def levels(folder, items):
    """A file of items on 300 levels."""
    chance = random.Random(items)  # noqa: S311 - of a test
    gold = [chance.randint(1, 300) for _ in range(items)]
    off = [chance.randint(-20, 20) for _ in range(items)]
    rows = [(g, min(300, max(1, g + d))) for g, d in zip(gold, off, strict=True)]
    return table(folder / "levels.csv", ["gold", "predicted"], rows), ("--scale", "1..300")


def test_300_levels_are_evaluated_in_500_mb(tmp_path):
    path, scale = levels(tmp_path, 12)
    few = ("--metrics", "quadratic_kappa,cem_ord", "--resamples", "100")
    assert peak("evaluate", path, *scale, *few) < 500


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [(), ("--metrics", "all", "--resamples", "100")])
def test_300_levels_and_2000_items_are_evaluated_in_500_mb(tmp_path, metrics):
    path, scale = levels(tmp_path, 2_000 if not metrics else 100)
    assert peak("evaluate", path, *scale, *metrics) < 500


def test_two_systems_of_300_levels_in_groups_are_compared_in_1_gb(tmp_path):
    chance = random.Random(3)  # noqa: S311 - of a test
    rows = [[*(chance.randint(1, 300) for _ in range(3)), f"w{k % 4}"] for k in range(8)]
    path = table(tmp_path / "two.csv", ["gold", "a", "b", "writer"], rows)
    two = ("compare", path, "--gold", "gold", "--systems", "a,b", "--scale", "1..300")
    quick = ("--metrics", "mae", "--resamples", "100")
    assert peak(*two, *quick) < 1_000
    assert peak(*two, *quick, "--groups", "writer") < 1_000


@pytest.mark.parametrize("size", [180, 182, 220, 300])
def test_a_comparison_on_many_levels_has_the_value_of_each_system_alone(size):
    """Cells of more than 181 levels have numbers that 16 bits do not hold."""
    chance = random.Random(size)  # noqa: S311 - of a test
    gold, one, other = ([chance.randint(1, size) for _ in range(50)] for _ in range(3))
    panel = Panel.of(gold, {"one": one, "other": other}, f"1..{size}")
    assert panel.confusion_matrix("one") == ConfusionMatrix.of(gold, one, f"1..{size}")
    assert (
        panel.pair_systems("one", "other").second.weights.tolist()
        == panel.confusion_matrix("other").weights.tolist()
    )


def test_groups_whose_tables_do_not_fit_into_memory_are_refused():
    count = MOST_CELLS // (300 * 301) + 1
    gold = [1] * count
    groups = factorize_column([f"g{k}" for k in range(count)])
    scale = ConfusionMatrix.of([1], [1], "1..300").scale
    with pytest.raises(BadInput, match="1,487 groups on a scale of 300 levels are too many"):
        ConfusionMatrix.count_by_group(gold, gold, scale, groups)
    panel = Panel.of(gold, {"a": gold, "b": gold}, "1..300", groups=groups)
    with pytest.raises(BadInput, match="at most 1,486 groups"):
        panel.count_by_group("a")
    with pytest.raises(BadInput, match="at most 1,486 groups"):
        _ = panel.pair_systems("a", "b", grouped=True).first


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_500_systems_are_compared_within_2_gigabytes_of_address_space(tmp_path, ending):
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 7, 5_000)
    names = [f"system_{k:03d}" for k in range(500)]
    columns = {"level": gold}
    for name in names:
        columns[name] = np.where(rng.random(len(gold)) < 0.6, gold, rng.integers(1, 7, len(gold)))
    path = tmp_path / f"systems.{ending}"
    if ending == "csv":
        table(path, list(columns), zip(*(x.tolist() for x in columns.values()), strict=True))
    else:
        save_frame(columns, path)
    flags = ("--gold", "level", "--systems", ",".join(names), "--scale", "1..6")
    more = ("--metrics", "accuracy", "--resamples", "100", "--format", "json")
    done = run_within(2 * GIGABYTE, "compare", path, *flags, *more)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n"] == len(gold)


# --- the bound that is asked for ------------------------------------------------------------------


@pytest.mark.slow
def test_a_join_of_ids_takes_the_memory_that_it_may_and_spills_the_rest(tmp_path):
    ids = "md5(range::VARCHAR) || md5(range::VARCHAR) AS id"
    for name in ("gold", "predicted"):
        rows = duckdb.sql("FROM range(2_000_000)").select(f"{ids}, 'A1' AS {name}")
        rows.write_parquet(str(tmp_path / f"{name}.parquet"))
    files = (tmp_path / "predicted.parquet", "--gold-file", tmp_path / "gold.parquet")
    command = ("evaluate", *files, "--id", "id", "--metrics", "accuracy", "--interval", "none")
    assert peak(*command, "--memory", "150MB") < 350 < peak(*command)
