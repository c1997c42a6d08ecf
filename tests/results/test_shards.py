"""Shards: counted apart, they merge into what one pass counts."""

import json

import numpy as np
import pandas as pd
import pytest
from command import read_values
from hypothesis import given, settings
from hypothesis import strategies as st

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
    with pytest.raises(BadInput, match=r"odd\.csv cannot be read"):
        merge_shards([usual, str(tmp_path / "odd.csv")])
    with pytest.raises(BadInput, match="cannot be merged"):
        merge_shards([usual, write("finer.json", scale="0..3")])
    plain = write("plain.json", names={"gold": "level", "predicted": "guess"})
    with pytest.raises(BadInput, match="some of them have clusters"):
        merge_shards([plain, usual])
    broken = json.loads((tmp_path / "usual.json").read_text())
    broken["matrix"]["items"] = [[1]]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    with pytest.raises(BadInput, match=r"broken\.json is damaged"):
        merge_shards([str(tmp_path / "broken.json")])
