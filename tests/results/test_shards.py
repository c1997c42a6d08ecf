"""Shards: counted apart, they merge into what one pass counts."""

import json
import sqlite3
import tracemalloc
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from command import read_values
from hypothesis import given, settings
from hypothesis import strategies as st

from ordinate import Query
from ordinate.cli.main import main
from ordinate.errors import BadInput
from ordinate.readers.confusion import count_table
from ordinate.readers.panels import count_table_systems
from ordinate.readers.tables import open_table
from ordinate.results.shards import merge_shards, write_shard

NAMES = {"gold": "level", "predicted": "guess", "by": "language", "groups": "writer"}
FIELDS = ("matrix", "groups", "second_rater")


def make_rows(n=300):
    rng = np.random.default_rng(1)
    levels = rng.integers(3, size=(3, n)).astype(str)
    return pd.DataFrame(
        {
            **dict(zip(("level", "guess", "rival"), levels, strict=True)),
            "language": rng.choice(["de", "en", "it"], n),
            "writer": rng.integers(9, size=n).astype(str),
            "weight": rng.integers(1, 5, n) / 2.0,
        }
    )


def open_rows(rows):
    import duckdb

    return open_table(duckdb.connect().from_df(rows))


def write_parts(folder, parts, count):
    paths = [str(folder / f"{k}.json") for k in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        write_shard(count(open_rows(part)), type(folder)(path))
    return paths


def name_batches(data):
    """Return the matrices of clusters by cluster, whatever their order."""
    found = {}
    for name, batch in (("all", data.groups), *data.by):
        found |= {(name, x): batch[k] for k, x in enumerate(data.group_values)}
    return {key: matrix for key, matrix in found.items() if matrix.items.any()}


@settings(max_examples=5, deadline=None)
@given(bounds=st.lists(st.integers(1, 299), min_size=1, max_size=5, unique=True))
def test_shards_are_what_one_pass_counts(tmp_path_factory, bounds):
    rows = make_rows()
    parts = np.split(np.arange(len(rows)), sorted(bounds))
    names = NAMES | {"weights": "weight", "second_rater": "rival"}

    def count(table):
        return count_table(table, names, "0..2")

    folder = tmp_path_factory.mktemp("shards")
    paths = write_parts(folder, [rows.iloc[part] for part in parts], count)
    found, usual = merge_shards(paths[::-1]), count(open_rows(rows))
    assert found.matrix == usual.matrix
    assert name_batches(found) == name_batches(usual)
    assert [name for name, _ in found.by] == [name for name, _ in usual.by]
    assert found.second_rater.pooled == usual.second_rater.pooled


def test_shards_of_systems_merge(tmp_path):
    rows, systems = make_rows(), {"guess": "guess", "rival": "rival"}
    names = {"gold": "level", "groups": "writer"}

    def count(table):
        return count_table_systems(table, names, systems, "0..2")

    found = merge_shards(write_parts(tmp_path, [rows[:100], rows[100:]], count)).panel
    usual = count(open_rows(rows)).panel
    assert found.pair_systems("guess", "rival") == usual.pair_systems("guess", "rival")
    assert set(found.group_values) == set(usual.group_values)


def test_the_report_is_that_of_all_items(tmp_path, capsys):
    rows = make_rows()
    told = ["--gold", "level", "--predicted", "guess", "--scale", "0..2", "--by", "language"]
    for name, part in {"a": rows[:120], "b": rows[120:], "all": rows}.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    for name in "ab":
        shard = ["-o", str(tmp_path / f"{name}.json")]
        assert main(["count", str(tmp_path / f"{name}.csv"), *told, *shard]) == 0
    assert capsys.readouterr().out.endswith("b.json: 180 items.\n")
    shards = [str(tmp_path / f"{name}.json") for name in "ba"]
    assert main(["merge", *shards, "--format", "json"]) == 0
    merged = read_values(capsys.readouterr().out)
    assert main(["evaluate", str(tmp_path / "all.csv"), *told, "--format", "json"]) == 0
    usual = read_values(capsys.readouterr().out)
    assert merged.pop("source")["files"] != usual.pop("source")["files"]
    assert merged == usual


def test_odd_shards_are_refused(tmp_path):
    rows = make_rows()

    def write(name, **options):
        path = tmp_path / name
        write_shard(
            count_table(open_rows(rows), **({"names": NAMES, "scale": "0..2"} | options)), path
        )
        return str(path)

    usual = write("usual.json")
    (tmp_path / "odd.json").write_text("{}")
    with pytest.raises(BadInput, match="is no shard: write one with `ordinate count"):
        merge_shards([str(tmp_path / "odd.json")])
    with pytest.raises(BadInput, match=r"There is no file .*odd\.csv"):
        merge_shards([usual, str(tmp_path / "odd.csv")])
    with pytest.raises(BadInput, match=r"usual\.json is named twice: its items would count twice"):
        merge_shards([usual, str(tmp_path / ".." / tmp_path.name / "usual.json")])
    with pytest.raises(BadInput, match=r"finer\.json cannot be merged with .*usual\.json"):
        merge_shards([usual, write("finer.json", scale="0..3")])
    rival = write("rival.json", names=NAMES | {"predicted": "rival"})
    with pytest.raises(BadInput, match=r"rival\.json has the predictions of 'rival', and "):
        merge_shards([usual, rival])
    broken = json.loads((tmp_path / "usual.json").read_text())
    broken["matrix"]["items"] = [[1]]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    with pytest.raises(BadInput, match=r"broken\.json is damaged"):
        merge_shards([str(tmp_path / "broken.json")])


@pytest.mark.parametrize(
    ("argument", "column"), [("by", "language"), ("groups", "writer"), ("second_rater", "rival")]
)
@pytest.mark.parametrize("others", [{}, {"by": "language"}, {"groups": "writer"}])
@pytest.mark.parametrize("turned", [False, True])
def test_shards_that_were_not_counted_alike_are_refused(tmp_path, argument, column, others, turned):
    if argument in others:
        return
    names = {"gold": "level", "predicted": "guess", **others}
    for name, more in {"less": {}, "more": {argument: column}}.items():
        found = count_table(open_rows(make_rows()), names | more, "0..2")
        write_shard(found, tmp_path / f"{name}.json")
    shards = [str(tmp_path / name) for name in ("less.json", "more.json")]
    flag = "--" + argument.replace("_", "-")
    message = rf"more\.json was counted with {flag}, and .*less\.json without it\. Count both"
    with pytest.raises(BadInput, match=message):
        merge_shards(shards[::-1] if turned else shards)


def test_shards_of_systems_and_of_one_are_refused(tmp_path):
    table = open_rows(make_rows())
    names = {"gold": "level", "groups": "writer"}
    write_shard(count_table(table, names | {"predicted": "guess"}, "0..2"), tmp_path / "one.json")
    for name, named in {"many": names, "plain": {"gold": "level"}}.items():
        found = count_table_systems(table, named, {"a": "guess", "b": "rival"}, "0..2")
        write_shard(found, tmp_path / f"{name}.json")
    one, many, plain = (str(tmp_path / f"{name}.json") for name in ("one", "many", "plain"))
    with pytest.raises(BadInput, match=r"many\.json was counted with --systems, and .*one\.json"):
        merge_shards([one, many])
    with pytest.raises(BadInput, match=r"many\.json was counted with --groups, and .*plain\.json"):
        merge_shards([plain, many])


def test_shards_are_named_by_a_pattern(tmp_path):
    rows = make_rows()
    write_parts(tmp_path, [rows[:100], rows[100:]], lambda x: count_table(x, NAMES, "0..2"))
    assert merge_shards([str(tmp_path / "*.json")]).matrix.n == len(rows)


def test_gold_columns_of_two_names_are_noted(tmp_path):
    rows = make_rows()
    for name, table in {"a": rows, "b": rows.rename(columns={"level": "cefr"})}.items():
        names = {"gold": "level" if name == "a" else "cefr", "predicted": "guess"}
        write_shard(count_table(open_rows(table), names, "0..2"), tmp_path / f"{name}.json")
    found = merge_shards([str(tmp_path / f"{name}.json") for name in "ab"])
    expected = "The shards have their gold levels in several columns: 'level', 'cefr'."
    assert (found.matrix.n, found.notes) == (2 * len(rows), (expected,))


# --- spelling ------------------------------------------------------------------------------------

VALUES = {
    "date": (date(2024, 1, 1), date(2024, 1, 2)),
    "decimal": (Decimal("7.5"), Decimal(8)),
    "integer": (7, 10),
    "boolean": (False, True),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("systems", [False, True])
def test_values_of_databases_and_of_files_are_one(tmp_path, values, systems):
    """A file has them as strings, such as those that `str` makes."""
    rows = make_rows(200)
    rows["day"] = np.array([*values, None], object)[np.arange(200) % 2]
    paths = []
    for name, column in {"database": rows["day"], "file": rows["day"].map(str)}.items():
        table = open_rows(rows.assign(day=column))
        if systems:
            names, columns = {"gold": "level", "groups": "day"}, {"a": "guess", "b": "rival"}
            found = count_table_systems(table, names, columns, "0..2")
        else:
            names = NAMES | {"by": "day", "groups": "day"}
            found = count_table(table, names, "0..2")
        paths.append(str(tmp_path / f"{name}.json"))
        write_shard(found, type(tmp_path)(paths[-1]))
    both = merge_shards(paths)
    if systems:
        assert both.panel.group_values == tuple(map(str, values))
        assert both.panel.count_by_group("a").items.sum((1, 2)).tolist() == [200, 200]
    else:
        assert both.group_values == tuple(map(str, values))
        assert both.groups.items.sum((1, 2)).tolist() == [200, 200]
        found = {name: batch.items.sum((1, 2)).tolist() for name, batch in both.by}
        assert found == {str(values[0]): [200, 0], str(values[1]): [0, 200]}


@pytest.mark.parametrize("systems", [False, True])
def test_spellings_within_a_shard_are_one(tmp_path, systems):
    """Columns of SQLite may hold 7 and '7'."""
    rows = [("A1", "A2", "A1", writer) for writer in (7, "7", None, 8)]
    connection = sqlite3.connect(":memory:")
    connection.execute("create table items (gold, predicted, rival, writer)")
    connection.executemany("insert into items values (?, ?, ?, ?)", rows)
    table = open_table(Query(connection, "select * from items"))
    names, path = {"gold": "gold", "groups": "writer"}, tmp_path / "shard.json"
    if systems:
        columns = {"predicted": "predicted", "rival": "rival"}
        write_shard(count_table_systems(table, names, columns, "cefr", "drop"), path)
        found = merge_shards([str(path)]).panel
        assert found.group_values == ("7", "8")
        assert found.count_by_group("rival").items.sum((1, 2)).tolist() == [2, 1]
    else:
        given = names | {"predicted": "predicted", "by": "writer"}
        write_shard(count_table(table, given, "cefr", "drop"), path)
        found = merge_shards([str(path)])
        assert found.group_values == ("7", "8")
        assert found.groups.items.sum((1, 2)).tolist() == [2, 1]
        assert {name: part.n for name, part in found.by if part.n} == {"7": 2, "8": 1}
    connection.close()


def test_merging_clusters_takes_no_more_memory_than_all_of_them(tmp_path):
    """Not as much as shards by clusters."""
    rng, shards, writers = np.random.default_rng(3), 40, 50
    parts = []
    for k in range(shards):
        levels = rng.integers(3, size=(2, 2 * writers)).astype(str)
        names = [f"{k}-{writer % writers}" for writer in range(2 * writers)]
        parts.append(pd.DataFrame({"level": levels[0], "guess": levels[1], "writer": names}))
    named = {"gold": "level", "predicted": "guess", "groups": "writer"}
    paths = write_parts(tmp_path, parts, lambda table: count_table(table, named, "0..2"))
    tracemalloc.start()
    try:
        found = merge_shards(paths)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = sum(getattr(found.groups, name).nbytes for name in ("items", "weights", "squares"))
    assert found.groups.shape == (shards * writers,)
    assert peak < 10 * size
