"""Predictions that somebody else made: every way to write them down is read alike, or refused."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordinate import Scale
from ordinate.errors import BadInput, BadProbabilities, OffScale
from ordinate.tuning.classify.external_systems import PredictionColumns, read_external_systems

CEFR = Scale.of("cefr")
LEVELS = {"e1": "B1", "e2": "A1", "e3": "C2", "e4": "B2"}
SPREAD = {
    "e1": {"A2": 0.25, "B1": 0.75},
    "e2": {"A1": 1.0},
    "e3": {"C1": 0.4, "C2": 0.6},
    "e4": {"B1": 0.1, "B2": 0.8, "C1": 0.1},
}
IDS = ("e1", "e2", "e3", "e4")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table(name: str, header: list[str], rows: list[list[object]], delimiter: str = ",") -> str:
    lines = [header, *([("" if x is None else str(x)) for x in row] for row in rows)]
    Path(name).write_text("".join(delimiter.join(line) + "\n" for line in lines), "utf-8")
    return name


def with_levels(name: str, delimiter: str = ",") -> str:
    return table(name, ["id", "level"], [[*pair] for pair in LEVELS.items()], delimiter)


def wide(spread=SPREAD) -> tuple[list[str], list[list[object]]]:
    header = ["id", *(f"p_{label}" for label in CEFR.labels)]
    rows = [[one, *(p.get(label, 0.0) for label in CEFR.labels)] for one, p in spread.items()]
    return header, rows


def as_json(name: str, value: object) -> str:
    Path(name).write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return name


def as_lines(name: str) -> str:
    rows = [json.dumps({"id": one, "level": level}) for one, level in LEVELS.items()]
    return as_json(name, "\n".join(rows))


def as_parquet(name: str) -> str:
    pq.write_table(pa.table({"id": list(LEVELS), "level": list(LEVELS.values())}), name)
    return name


def packed(name: str) -> str:
    Path(name).write_bytes(gzip.compress(json.dumps(SPREAD).encode()))
    return name


WAYS = {
    "csv": lambda: with_levels("x.csv"),
    "tsv": lambda: with_levels("x.tsv", "\t"),
    "jsonl": lambda: as_lines("x.jsonl"),
    "json lines": lambda: as_lines("x.json"),
    "parquet": lambda: as_parquet("x.parquet"),
    "probabilities": lambda: table("x.csv", *wide()),
    "json of levels": lambda: as_json("x.json", LEVELS),
    "json of probabilities": lambda: as_json("x.json", SPREAD),
    "json of records": lambda: as_json(
        "x.json", [{"id": k, "level": x} for k, x in LEVELS.items()]
    ),
    "packed json": lambda: packed("x.json.gz"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_form_of_the_same_answers_is_read_alike(way):
    (found,) = read_external_systems([WAYS[way]()], CEFR)
    assert found.name == "x"
    assert found.look_up_levels(IDS).tolist() == [2, 0, 5, 3]


@pytest.mark.parametrize("way", ["probabilities", "json of probabilities"])
def test_probabilities_are_decoded_by_argmax_and_that_is_said(way):
    (found,) = read_external_systems([WAYS[way]()], CEFR)
    said = " ".join(found.describe_coverage(found.measure_coverage(IDS)))
    assert "argmax" in said
    (levels,) = read_external_systems([with_levels("levels.csv")], CEFR)
    assert "argmax" not in " ".join(levels.describe_coverage(levels.measure_coverage(IDS)))


def test_answers_go_before_probabilities_and_a_gold_label_beside_them_does_not():
    header, rows = wide()
    given = table("mine.csv", [*header, "level"], [[*row, "A1"] for row in rows])
    gold = table("gold.csv", [*header, "label"], [[*row, "A1"] for row in rows])
    mine, other = read_external_systems([given, gold], CEFR)
    assert mine.look_up_levels(IDS).tolist() == [0, 0, 0, 0]
    assert other.look_up_levels(IDS).tolist() == [2, 0, 5, 3]


def test_columns_can_be_named():
    name = table("x.csv", ["key", "guess", "level"], [["e1", "B1", "C2"]])
    (found,) = read_external_systems([name], CEFR, PredictionColumns("key", "guess"))
    assert found.look_up_levels(["e1"]).tolist() == [2]


def test_a_pattern_stands_for_its_files_and_names_tell_them_apart():
    Path("a").mkdir()
    Path("b").mkdir()
    with_levels("a/run.csv")
    with_levels("b/run.csv")
    found = read_external_systems(["*/run.csv"], CEFR)
    assert [one.name for one in found] == ["a/run", "b/run"]


def test_numbers_are_labels_of_a_scale_of_numbers():
    (found,) = read_external_systems([as_json("x.json", {"e1": 3, "e2": "5"})], Scale.of("1..5"))
    assert found.look_up_levels(["e1", "e2"]).tolist() == [2, 4]


def test_a_truth_value_is_no_number_and_one_level_has_one_probability():
    scale = Scale.of("1..5")
    with pytest.raises(OffScale, match="Label True"):
        read_external_systems([as_json("x.json", {"e1": True})], scale)
    with pytest.raises(BadProbabilities, match="not each another one of"):
        read_external_systems([as_json("x.json", {"e1": {"1": 0.5, "1.0": 0.5}})], scale)


# --- what is not answered ------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [None, "", {}, {"A1": None, "B1": None}], ids=repr)
def test_an_empty_answer_is_none(empty):
    (found,) = read_external_systems([as_json("x.json", {"e1": "B1", "e2": empty})], CEFR)
    assert found.look_up_levels(["e1", "e2", "e3"]).tolist() == [2, 6, 6]
    assert found.measure_coverage(["e1", "e2", "e3"]).count == 1


def test_the_share_of_answers_and_unknown_ids_are_stated():
    rows = [["e1", "B1"], ["e2", None], ["x7", "A1"], ["o1", "A2"]]
    (found,) = read_external_systems([table("llm.csv", ["id", "level"], rows)], CEFR)
    answered = found.measure_coverage(IDS, elsewhere=["o1"])
    assert (answered.count, answered.items, answered.share) == (1, 4, 0.25)
    assert (answered.unknown, answered.elsewhere) == (("x7",), 1)
    said = " ".join(found.describe_coverage(answered))
    assert "predicts 1 of 4 items (25.0 %)" in said
    assert "1 row of an unknown item ('x7')" in said
    assert json.loads(json.dumps(answered.to_dict()))["unknown_ids"] == ["x7"]


def test_many_unknown_ids_are_counted_and_the_first_are_named():
    rows = [["e1", "B1"], *([f"x{k}", "B1"] for k in range(9))]
    (found,) = read_external_systems([table("llm.csv", ["id", "level"], rows)], CEFR)
    said = found.describe_coverage(found.measure_coverage(IDS))[1]
    assert "9 rows of unknown items ('x0', 'x1', 'x2', 'x3', 'x4', …)" in said


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"e1": "B3"}, r"Label 'B3' \(id 'e1' of x.json\) is not on the scale .*Did you mean"),
        ({"e1": "B1 "}, r"Label 'B1 ' .* Did you mean 'B1'"),
        ({"e1": True}, "Label True"),
        ({"e1": ["B1"]}, r"Label \['B1'\]"),
        ({"e1": {"B7": 1.0}}, "Label 'B7'"),
        ({"e1": {"": 1.0}}, "are not each another one of"),
    ],
    ids=str,
)
def test_a_label_off_the_scale_is_named_with_its_id(content, message):
    with pytest.raises((OffScale, BadProbabilities), match=message):
        read_external_systems([as_json("x.json", content)], CEFR)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"A1": 0.5, "B1": 0.4}, r"x.json: .*id 'e1', .* sum to 0.9, not to 1"),
        ({"A1": 0.5, "B1": 0.48}, r"x.json: .*id 'e1', .* sum to 0.98, .*renormalize=True"),
        ({"A1": -0.5, "B1": 1.5}, "not all at least 0"),
        ({"A1": "much"}, "'much' among the probabilities of id 'e1' is not a number"),
        ({"A1": 1.0, "B1": None}, "None among the probabilities"),
        ({"A1": True}, "True among the probabilities"),
        ({"A1": float("nan"), "B1": 1.0}, "nan among the probabilities"),
        ({"A1": float("inf")}, "not all finite"),
    ],
    ids=str,
)
def test_probabilities_that_are_none_are_refused(row, message):
    with pytest.raises(BadProbabilities, match=message):
        read_external_systems([as_json("x.json", {"e1": row})], CEFR)


def test_rounded_probabilities_are_taken_on_request():
    name = as_json("x.json", {"e1": {"A1": 0.333, "B1": 0.666}})
    with pytest.raises(BadProbabilities, match=r"sum to 0\.999"):
        read_external_systems([name], CEFR)
    (found,) = read_external_systems([name], CEFR, renormalize=True)
    assert found.look_up_levels(["e1"]).tolist() == [2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "id,level\ne1,B1\ne2,A1\ne1,B2\n", r"'e1' occurs twice \(rows 1 and 3\)"),
        ("x.json", '{"e1": "B1", "e1": "B2"}', "'e1' occurs twice"),
        ("x.json", '{"e1": {"A1": 0.5, "A1": 0.5}}', "a level stands twice"),
        ("x.csv", "id,level\n,B1\n", "row 1 has no id"),
        ("x.csv", "id,level\n", "has no predictions"),
        ("x.json", "{}", "has no predictions"),
        ("x.csv", "name,level\nx,B1\n", "No column is known to be the ids.*--id-column"),
        ("x.csv", "id,guess\nx,B1\n", "No column is known to be the levels.*--predicted"),
        ("x.json", '{"e1": ', "x.json is not JSON"),
        ("x.json", "[" * 100_000, "nested too deeply|is not JSON"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(name, content, message):
    with pytest.raises(BadInput, match=message):
        read_external_systems([as_json(name, content)], CEFR)


def test_files_that_are_not_there_or_named_twice_are_refused():
    with_levels("llm.csv")
    with pytest.raises(BadInput, match=r"There is no file 'lm.csv'. Did you mean 'llm.csv'"):
        read_external_systems(["lm.csv"], CEFR)
    with pytest.raises(BadInput, match="named twice"):
        read_external_systems(["llm.csv", "*.csv"], CEFR)


def test_bytes_that_are_no_text_are_refused():
    Path("x.json").write_bytes(b'{"e1": "\xff"}')
    with pytest.raises(BadInput, match="not UTF-8"):
        read_external_systems(["x.json"], CEFR)
    Path("y.json.gz").write_bytes(gzip.compress(b"{}")[:-4])
    with pytest.raises(BadInput, match="cannot be unpacked: its gzip data are damaged"):
        read_external_systems(["y.json.gz"], CEFR)


def test_answers_stand_in_the_order_that_is_asked_for():
    (found,) = read_external_systems([with_levels("x.csv")], CEFR)
    order = list(reversed(IDS))
    np.testing.assert_array_equal(found.look_up_levels(order), found.look_up_levels(IDS)[::-1])
