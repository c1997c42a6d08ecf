"""`ordinate compare` is `ordinate.compare`: the same options give the same JSON of any source."""

import json
import sqlite3
from contextlib import closing
from functools import cache
from itertools import product

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
from ordinate import Files, Query
from ordinate.errors import OrdinateError

SELECT = "select * from items"
SOURCES = ("items.csv", "items.parquet", "duckdb", "sqlite", "pandas", "polars")
LEVELS = {"gold": "gold", "systems": ["near", "far"], "scale": "A1,A2,B1,B2", "metrics": "mae"}
TARGET = {"target": "y", "systems": ["one", "two"], "metrics": "rmse,mae"}
OPTIONS = {  # of both tasks, as arguments
    "weights": {"weights": "weight"},
    "groups": {"groups": "writer"},
    "drop": {"missing": "drop"},
    "worst": {"missing": "worst"},
    "resamples": {"resamples": 150, "seed": 3},
    "interval": {"interval": 0.8},
    "no_interval": {"interval": None},
    "against": {"against": "leader"},
    "stranger": {"against": "nobody"},
    "holm": {"correction": "holm"},
    "margins": {"margins": {"mae": 0.25}},
    "metrics": {"metrics": "mae,bias"},
    "all": {"metrics": "all"},
    "pairs": {"pairs": ["near:far"]},
    "average_over": {"average_over": "writer"},
    "unit": {"unit": "kg"},
    "edges": {"edges": [1.5, 2.5, 3.5], "systems": ["one", "two"]},
    "label_map": {"label_map": {"beginner": "A1"}, "systems": ["near", "foreign"]},
    "tidy_labels": {"tidy_labels": True, "systems": ["near", "untidy"]},
    "gaps": {"systems": ["near", "gappy"]},
    "number_gaps": {"systems": ["one", "holes"], "missing": "drop"},
}
FLAGS = {
    "label_map": lambda _: ("--map", "map.json"),
    "tidy_labels": lambda _: ("--tidy-labels",),
    "edges": lambda x: ("--edges", ",".join(map(str, x))),
    "systems": lambda x: ("--systems", ",".join(x)),
    "pairs": lambda x: ("--pairs", ",".join(x)),
    "margins": lambda x: [w for k, v in x.items() for w in ("--margin", f"{k}={v}")],
    "interval": lambda x: ("--interval", "none" if x is None else str(x)),
}


def make_items(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    names, gold = np.array(["A1", "A2", "B1", "B2"]), rng.integers(0, 4, n)
    near, far = (names[np.clip(gold + rng.integers(-k, k + 1, n), 0, 3)] for k in (1, 2))
    y = (gold * 8 + rng.integers(0, 8, n)) / 8  # the same in every engine
    one, two = (y + rng.integers(-k, k + 1, n) / 16 + 0.5 for k in (8, 12))
    rare = np.arange(n) % 9 == 4
    return pd.DataFrame(
        {
            "gold": names[gold],
            "near": near,
            "far": far,
            "y": y,
            "one": one,
            "two": two,
            "gappy": [None if x else name for x, name in zip(rare, far, strict=True)],
            "holes": [None if x else value for x, value in zip(rare, two, strict=True)],
            "foreign": np.where(far == "A1", "beginner", far),
            "untidy": [f" {x.lower()}" for x in far],
            "weight": rng.integers(1, 4, n),
            "writer": np.array(list("abcdefgh"))[rng.integers(0, 8, n)],
        }
    )


ITEMS = make_items()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The items in files and databases."""
    found = tmp_path_factory.mktemp("sources")
    write_sources(found, ITEMS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        yield found


@cache
def run_command(*words: str):
    ran = run("compare", *words, "--format", "json")
    assert ran.code == (2 if ran.err else 0), ran.err
    return None if ran.code else json.loads(ran.out)


def call_function(source: str, arguments):
    try:
        if source.startswith("items."):
            found = ordinate.compare(Files(source), **arguments)
        elif source in {"pandas", "polars"}:
            frame = ITEMS if source == "pandas" else pl.from_pandas(ITEMS)
            found = ordinate.compare(frame, **arguments)
        else:
            connect = duckdb.connect if source == "duckdb" else sqlite3.connect
            with closing(connect(f"items.{source}")) as connection:
                found = ordinate.compare(Query(connection, SELECT), **arguments)
    except OrdinateError:
        return None
    return json.loads(found.to_json())


def check(source: str, usual, *names: str) -> None:
    """Check that both do the same, or that both refuse what makes no sense."""
    arguments = {"resamples": 120} | usual
    for name in names:
        arguments |= OPTIONS[name]
    files = ("--sql", f"{source}:///items.{source}", "--query", SELECT)
    if source not in {"duckdb", "sqlite"}:
        files = (source if source.startswith("items.") else "items.csv",)
    words = [
        str(word)
        for name, value in arguments.items()
        for word in FLAGS.get(name, lambda x, name=name: (f"--{name.replace('_', '-')}", x))(value)
    ]
    found, wanted = call_function(source, arguments), run_command(*files, *words)
    assert (found is None) == (wanted is None)
    if source in {"pandas", "polars"} and found:  # which no command reads: the numbers are those
        found, wanted = (  # of a file
            {x: y for x, y in each.items() if x not in {"source", "provenance"}}
            for each in (found, wanted)
        )
    assert found == wanted


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("usual", [LEVELS, TARGET], ids=["levels", "target"])
@pytest.mark.parametrize(("source", "name"), list(product(SOURCES, OPTIONS)))
def test_an_option_alone_does_the_same(source, name, usual):
    check(source, usual, name)


@pytest.mark.usefixtures("folder")
@settings(max_examples=40)
@given(
    st.sampled_from(SOURCES),
    st.sampled_from([LEVELS, TARGET]),
    st.tuples(*[st.sampled_from(sorted(OPTIONS))] * 2),
)
def test_two_options_do_the_same_or_are_refused_by_both(source, usual, names):
    check(source, usual, *names)


def test_files_of_runs_are_joined_by_both(folder):
    for name in ("gold", "near", "far"):
        column = "gold" if name == "gold" else "answer"
        rows = pd.DataFrame({"id": range(len(ITEMS)), column: ITEMS[name]})
        rows.to_csv(folder / f"{name}.csv", index=False)
    paths = ["gold.csv", "near.csv", "far.csv"]
    found = ordinate.compare(
        Files(paths, id="id"), gold="gold", predicted="answer", metrics="mae", resamples=120
    )
    words = ("--id", "id", "--predicted", "answer", "--metrics", "mae", "--resamples", "120")
    assert json.loads(found.to_json()) == run_command(*paths, "--gold", "gold", *words)
    assert found.systems == ("near", "far")
