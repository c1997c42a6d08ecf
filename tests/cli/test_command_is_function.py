"""A command is the function of its name: the same options give the same JSON, of any source."""

import json
import shlex
import sqlite3
from contextlib import closing
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import run
from hypothesis import given, settings
from hypothesis import strategies as st
from item_sources import write_sources

import ordinate
from ordinate import ConfidenceIntervals, Files, Query
from ordinate.cli.flags import list_flag_types
from ordinate.cli.options import CaseColumns, IntervalOptions, LabelOptions
from ordinate.errors import OrdinateError
from ordinate.meta import evaluate_metrics, find_properties
from ordinate.readers.columns import ItemColumns
from ordinate.results.metric_catalogue import MetricCatalogue

LEVELS = np.array(["A1", "A2", "B1", "B2", "C1", "C2"])
SELECT = "select * from items"
SCALES = "case,scale\nx,cefr\ny,cefr\nz,cefr\n"


class Option(NamedTuple):
    """An option as flags of the command, by name, and as arguments of the function."""

    flags: dict[str, str | None]
    arguments: dict[str, object]


def same(**names: str) -> Option:
    """Return options whose values are written alike."""
    return Option({f"--{x.replace('_', '-')}": y for x, y in names.items()}, names)


OPTIONS = {
    "scale": same(scale="A1,A2,B1,B2,C1,C2"),
    "metrics": same(metrics="cem_ord,weighted_kappa(power=1)"),
    "all_metrics": same(metrics="all"),
    "weights": same(weights="weight"),
    "by": same(by="language"),
    "groups": same(groups="writer"),
    "second_rater": same(second_rater="second"),
    "average_over": same(average_over="writer"),
    "fixed_cases": Option(
        {"--average-over": "writer", "--fixed-cases": None},
        {"average_over": "writer", "fixed_cases": True},
    ),
    "drop": same(predicted="gappy", missing="drop"),
    "worst": same(predicted="gappy", missing="worst"),
    "label_map": Option(
        {"--predicted": "foreign", "--map": "map.json"},
        {"predicted": "foreign", "label_map": {"beginner": "A1"}},
    ),
    "tidy_labels": Option(
        {"--predicted": "untidy", "--tidy-labels": None},
        {"predicted": "untidy", "tidy_labels": True},
    ),
    "edges": Option(
        {"--predicted": "score", "--edges": "1.5,2.5,3.5,4.5,5.5", "--scale": "cefr"},
        {"predicted": "score", "edges": [1.5, 2.5, 3.5, 4.5, 5.5], "scale": "cefr"},
    ),
    "error_attribution": same(error_attribution="mae,accuracy"),
    "probabilities": same(probabilities="p_"),
    "renormalize": Option(
        {"--probabilities": "q_", "--renormalize": None},
        {"probabilities": "q_", "renormalize": True},
    ),
    "metrics_of_probabilities": same(metrics="mae,brier,ece(bins=5)", probabilities="p_"),
    "interval": Option({"--interval": "0.8"}, {"interval": 0.8}),
    "no_interval": Option({"--interval": "none"}, {"interval": None}),
    "resamples": Option(
        {"--resamples": "100", "--seed": "3", "--interval-method": "percentile"},
        {"interval": ConfidenceIntervals(resamples=100, seed=3, method="percentile")},
    ),
    "stratified": Option(
        {"--interval-method": "stratified"}, {"interval": ConfidenceIntervals(stratified=True)}
    ),
    "scale_by": Option(
        {"--scale-by": "writer=scales.csv"},
        {"cases": "writer", "scale_by": dict.fromkeys("xyz", "cefr")},
    ),
    "items": Option({"--items": "wrong.csv"}, {"items": "wrong.csv"}),
    "gold_file": Option(
        {"--gold-file": "gold.csv", "--id": "id"}, {"gold_file": "gold.csv", "id": "id"}
    ),
    "row_order": Option(
        {"--gold-file": "gold.csv", "--row-order": None},
        {"gold_file": "gold.csv", "row_order": True},
    ),
    "memory": same(memory="500MB"),
}
OF_FILES = {"gold_file", "id", "row_order", "memory"}
SOURCES = ("items.csv", "items.parquet", "duckdb", "sqlite", "pandas", "polars")
# What a source cannot serve, and why.
NOT_SERVED = {
    "items": "the engine that reads files writes their rows; those of other sources are at hand",
    "gold_file": "frames and databases are joined where they are, before they are handed over",
    "row_order": "as gold_file",
    "memory": "it is for the engine that reads files",
}


def make_items(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    gold = rng.integers(0, 6, n)
    predicted = np.clip(gold + rng.integers(-1, 2, n), 0, 5)
    rows = np.eye(6)[predicted] * 8 + rng.integers(1, 4, (n, 6))
    rows = rows / rows.sum(axis=1, keepdims=True)
    named = LEVELS[predicted]
    exact = (rows * 1024).round() / 1024  # the same in every engine
    exact[:, 0] = 1 - exact[:, 1:].sum(axis=1)
    return pd.DataFrame(
        {
            "id": [f"e{k:02}" for k in range(n)],
            "gold": LEVELS[gold],
            "predicted": named,
            "second": LEVELS[np.clip(gold + rng.integers(0, 2, n), 0, 5)],
            "gappy": [None if k % 9 == 4 else x for k, x in enumerate(named)],
            "foreign": np.where(named == "A1", "beginner", named),
            "untidy": [f" {x.lower()}" for x in named],
            "score": predicted + 1.25,
            "weight": rng.integers(1, 4, n) / 2,
            "language": np.array(["de", "en", "fr"])[rng.integers(0, 3, n)],
            "writer": np.array(["x", "y", "z"])[rng.integers(0, 3, n)],
            **{f"p_{level}": exact[:, k] for k, level in enumerate(LEVELS)},
            **{f"q_{level}": rows[:, k].round(2) for k, level in enumerate(LEVELS)},
        }
    )


ITEMS = make_items()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The items in files and databases, and what options read beside them."""
    found = tmp_path_factory.mktemp("sources")
    write_sources(found, ITEMS)
    ITEMS[["id", "gold"]].to_csv(found / "gold.csv", index=False)
    (found / "runs").mkdir()
    for name in ("predicted", "second", "foreign"):
        run_of = ITEMS[["id", name]].replace("beginner", "A2").rename(columns={name: "predicted"})
        run_of.to_csv(found / "runs" / f"{name}.csv", index=False)
    (found / "scales.csv").write_text(SCALES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        yield found


def join(*names: str) -> Option:
    """Return several options at once, with the usual metrics and columns unless they say others."""
    flags = {"--metrics": "accuracy,mae,linear_kappa", "--gold": "gold", "--predicted": "predicted"}
    arguments = {"metrics": "accuracy,mae,linear_kappa", "gold": "gold", "predicted": "predicted"}
    for name in names:
        flags |= OPTIONS[name].flags
        arguments |= OPTIONS[name].arguments
    return Option(flags, arguments)


def run_command(source: str, flags: dict[str, str | None]):
    """Return the report as JSON, and the items that were written; None where it is refused."""
    if source in {"duckdb", "sqlite"}:
        files = ("--sql", f"{source}:///items.{source}", "--query", SELECT)
    else:
        files = (source if source.startswith("items.") else "items.csv",)
    return run_words(*files, *(word for pair in flags.items() for word in pair if word is not None))


@cache
def run_words(*words: str):
    ran = run("evaluate", *words, "--format", "json")
    assert ran.code == (2 if ran.err else 0), ran.err
    return None if ran.code else (json.loads(ran.out), take_items())


def call_function(source: str, arguments: dict[str, object]):
    """Return the same of the function."""
    of_files = {name: arguments.pop(name) for name in OF_FILES & arguments.keys()}
    function = ordinate.evaluate_cases if "cases" in arguments else ordinate.evaluate
    try:
        if source.startswith("items."):
            found = function(Files(source, **of_files), **arguments)
        elif source == "pandas":
            found = function(ITEMS, **arguments)
        elif source == "polars":
            found = function(pl.from_pandas(ITEMS), **arguments)
        else:
            connect = duckdb.connect if source == "duckdb" else sqlite3.connect
            with closing(connect(f"items.{source}")) as connection:
                found = function(Query(connection, SELECT), **arguments)
    except (OrdinateError, TypeError):
        return None
    return json.loads(found.to_json()), take_items()


def take_items() -> str | None:
    path = Path("wrong.csv")
    text = path.read_text() if path.exists() else None
    path.unlink(missing_ok=True)
    return text


def check(source: str, *names: str) -> None:
    """Check that both do the same, or that both refuse what makes no sense."""
    option = join(*names)
    found, wanted = call_function(source, dict(option.arguments)), run_command(source, option.flags)
    if source in {"pandas", "polars"}:  # which no command reads: the numbers are those of a file
        if found is None or wanted is None:
            assert found is wanted
            return
        found, wanted = (strip_origin(each[0]) for each in (found, wanted))
    assert close(found, wanted)


def strip_origin(report):
    """Return a report without where its items came from."""
    return {x: y for x, y in report.items() if x not in {"source", "provenance"}}


def close(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(close(one[x], two[x]) for x in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(close, one, two))
    if isinstance(one, float):
        return one == pytest.approx(two, rel=1e-9, abs=1e-12)
    return one == two


def serves(source: str, *names: str) -> bool:
    return source.startswith("items.") or not NOT_SERVED.keys() & set(names)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("source", "name"), list(product(SOURCES, OPTIONS)))
def test_an_option_alone_does_the_same(source, name):
    if serves(source, name):
        check(source, name)
    elif source in {"duckdb", "sqlite"}:
        assert run_command(source, join(name).flags) is None, NOT_SERVED[name]
    elif name not in OF_FILES:
        assert call_function(source, dict(join(name).arguments)) is None, NOT_SERVED[name]


@pytest.mark.usefixtures("folder")
@settings(max_examples=40)
@given(st.sampled_from(SOURCES), st.tuples(*[st.sampled_from(sorted(OPTIONS))] * 2))
def test_two_options_do_the_same_or_are_refused_by_both(source, names):
    if serves(source, *names):
        check(source, *names)


def write_text(name: str, separator: str = ",", encoding: str = "utf-8", **options) -> str:
    frame = ITEMS[["gold", "predicted", "score", "weight"]]
    frame.to_csv(name, sep=separator, encoding=encoding, index=False, **options)
    return name


FORMATS = {
    "delimiter": (lambda: write_text("a.txt", "|"), same(delimiter="|")),
    "encoding": (lambda: write_text("b.csv", encoding="utf-16"), same(encoding="utf-16")),
    "quote": (lambda: write_text("c.csv"), same(quote="none")),
    "header": (
        lambda: write_text("d.csv", header=False),
        Option(
            {"--header": "none", "--columns": "gold,predicted,score,weight"},
            {"header": "none", "columns": ("gold", "predicted", "score", "weight")},
        ),
    ),
    "decimal": (
        lambda: write_text("e.csv", ";", decimal=","),
        Option({"--decimal": ",", "--weights": "weight"}, {"decimal": ",", "weights": "weight"}),
    ),
    "sheet": (lambda: ITEMS.to_excel("f.xlsx", sheet_name="one") or "f.xlsx", same(sheet="one")),
    "bad_lines": (lambda: write_text("h.csv"), same(bad_lines="skip")),
    "hive": (
        lambda: Path("part=x").mkdir(exist_ok=True) or write_text("part=x/g.csv"),
        Option({"--hive": None, "--by": "part"}, {"hive": True, "by": "part"}),
    ),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", FORMATS)
def test_a_format_of_files_does_the_same(name):
    write, option = FORMATS[name]
    path = write()
    of_task = {x: y for x, y in option.arguments.items() if x in {"by", "weights"}}
    of_files = {x: y for x, y in option.arguments.items() if x not in of_task}
    words = [word for pair in option.flags.items() for word in pair if word is not None]
    ran = run("evaluate", path, *words, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == json.loads(
        ordinate.evaluate(Files(path, **of_files), **of_task).to_json()
    )


def test_every_flag_of_a_setting_is_tried():
    options = [*OPTIONS.values(), *(option for _, option in FORMATS.values()), join()]
    tried = {flag.removeprefix("--").replace("-", "_") for x in options for flag in x.flags}
    known = {*list_flag_types(ItemColumns, LabelOptions, CaseColumns, IntervalOptions)}
    other_tasks = {"target", "systems", "lower", "upper", "order"}
    assert known - tried == other_tasks


# Commands with one way of input: what is typed, and the call that says the same.
COMMANDS = {
    "metrics cem_ord": lambda: MetricCatalogue.of("cem_ord"),
    "metrics --of regression": lambda: MetricCatalogue.list_all("regression"),
    "properties mae 'weighted_kappa(power=1)' --search --most-items 2": lambda: find_properties(
        "mae,weighted_kappa(power=1)", search=True, most_items=2
    ),
    "properties --explain quadratic_kappa monotonicity": lambda: find_properties(
        "quadratic_kappa", "monotonicity"
    ),
    "decode items.csv --probabilities p_ --gold gold --metric quadratic_kappa --id id --resamples "
    "100 --scale A1,A2,B1,B2,C1,C2 --interval 0.9 --class-weights 2,1,1,1,1,2": lambda: (
        ordinate.decode(
            "items.csv",
            metric="quadratic_kappa",
            probabilities="p_",
            gold="gold",
            id="id",
            resamples=100,
            scale="A1,A2,B1,B2,C1,C2",
            interval=0.9,
            class_weights=[2, 1, 1, 1, 1, 2],
        )
    ),
    "decode items.csv --probabilities p_ --fit items.parquet --metric mae --seed 3": lambda: (
        ordinate.decode("items.csv", "items.parquet", "mae", probabilities="p_", seed=3)
    ),
    "power items.csv --gold gold --systems predicted,second --metric mae --difference 0.1 --power "
    "0.9 --interval 0.9 --sizes 100,200 --groups writer --resamples 100 --seed 2": lambda: (
        ordinate.power(
            "items.csv",
            ["predicted", "second"],
            "mae",
            0.1,
            gold="gold",
            power=0.9,
            interval=0.9,
            items=[100, 200],
            groups="writer",
            resamples=100,
            seed=2,
        )
    ),
    f"power --sql sqlite:///items.sqlite --query '{SELECT}' --gold gold --systems gappy --missing "
    "drop": lambda: ordinate.power(
        {name: ITEMS[name].to_list() for name in ("gold", "gappy")},
        ["gappy"],
        gold="gold",
        missing="drop",
    ),
    "meta gold.csv runs --id id --gold gold --predicted predicted --cases 4 --metrics mae,accuracy "
    "--references cem_ord --seed 3 --resamples 100 --significance-level 0.1 --unanimity strict": (
        lambda: evaluate_metrics(
            Files(["gold.csv", "runs"], id="id"),
            "mae,accuracy",
            "cem_ord",
            gold="gold",
            predicted="predicted",
            cases=4,
            seed=3,
            resamples=100,
            alpha=0.1,
            unanimity="strict",
        )
    ),
    "meta items.parquet --gold gold --systems predicted,second,untidy --tidy-labels --scale cefr "
    "--groups writer --interval 0.8 --resamples 100": lambda: evaluate_metrics(
        "items.parquet",
        systems=["predicted", "second", "untidy"],
        gold="gold",
        scale="cefr",
        tidy_labels=True,
        groups="writer",
        level=0.8,
        resamples=100,
    ),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("typed", COMMANDS, ids=lambda typed: " ".join(typed.split()[:4]))
def test_a_command_is_the_function_of_its_name(typed, tmp_path):
    words = shlex.split(typed)
    levels = ["-o", str(tmp_path / "levels.csv")] if words[0] == "decode" else []
    ran = run(*words, "--format", "json", *levels)
    assert ran.code == 0, ran.err
    result = COMMANDS[typed]()
    found, wanted = json.loads(ran.out), json.loads(result.to_json())
    if "--sql" in words:  # in place of which it got columns
        found, wanted = strip_origin(found), strip_origin(wanted)
    assert close(found, wanted)
    if levels:
        assert Path(levels[1]).read_text() == result.to_csv("levels")
