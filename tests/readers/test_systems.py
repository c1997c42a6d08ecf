"""The reader of many systems: both ways of input give the panel of Python."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordinate.errors import (
    BadIds,
    BadInput,
    BadScale,
    BadWeights,
    MissingLabels,
    NoItems,
    OffScale,
)
from ordinate.readers.columns import ItemColumns
from ordinate.readers.systems import count_systems
from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import Panel

CEFR = ("A1", "A2", "B1", "B2", "C1", "C2")
SYSTEMS = ("a", "b", "c")


def items(n: int = 150, seed: int = 2) -> list[dict]:
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        gold = int(rng.integers(0, 6))
        answers = {s: CEFR[int(np.clip(gold + rng.integers(-1, 2), 0, 5))] for s in SYSTEMS}
        group, weight = f"w{rng.integers(0, 9)}", float(rng.integers(0, 9)) / 4
        rows.append(
            {"id": f"e{number}", "gold": CEFR[gold], "writer": group, "w": weight, **answers}
        )
    return rows


ROWS = items()


def write(name: str, rows: list[dict]) -> str:
    texts = [["" if x is None else str(x) for x in row.values()] for row in rows]
    Path(name).write_text("\n".join(",".join(line) for line in [list(rows[0]), *texts]) + "\n")
    return name


def split(rows: list[dict], systems: tuple[str, ...] = SYSTEMS) -> list[str]:
    """Write gold and runs to files of their own, each in another order."""
    rng = np.random.default_rng(9)
    write("gold.csv", [{k: row[k] for k in ("id", "gold", "writer", "w")} for row in rows])
    for system in systems:
        order = rng.permutation(len(rows))
        answers = [{"id": rows[k]["id"], "predicted": rows[k][system]} for k in order]
        write(f"{system}.csv", answers)
    return ["gold.csv", *(f"{system}.csv" for system in systems)]


def wide(rows: list[dict], missing: str = "error", scale: str | None = None, **columns):
    return count_systems(
        [write("all.csv", rows)],
        ItemColumns(systems=SYSTEMS, **columns),
        None if scale is None else Scale.of(scale),
        missing,
    )


def runs(paths: list[str], missing: str = "error", scale: str | None = None, **columns):
    declared = None if scale is None else Scale.of(scale)
    return count_systems(paths, ItemColumns(**{"id": "id"} | columns), declared, missing)


def in_python(rows: list[dict], *, weighted=False, grouped=False, missing="error") -> Panel:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Panel.of(
        columns["gold"],
        {name: columns[name] for name in SYSTEMS},
        "cefr",
        columns["w"] if weighted else None,
        factorize_column(columns["writer"]) if grouped else None,
        missing,
    )


def with_holes(*names: str) -> list[dict]:
    """Return items of which every seventh lacks a label, in turn of these columns."""
    return [
        row | {names[k // 7 % len(names)]: None} if k % 7 == 0 else row
        for k, row in enumerate(ROWS)
    ]


# --- the same panel ------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_give_the_panel_of_python(weighted, grouped):
    asked = {"weights": "w"} if weighted else {}
    asked |= {"groups": "writer"} if grouped else {}
    expected = in_python(ROWS, weighted=weighted, grouped=grouped)
    assert wide(ROWS, **asked).panel == expected
    assert runs(split(ROWS), **asked).panel == expected


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_missing_labels_follow_the_policy(missing, grouped):
    rows = with_holes("a", "c") if missing == "worst" else with_holes("gold", "a", "c")
    asked = {"groups": "writer"} if grouped else {}
    expected = in_python(rows, missing=missing, grouped=grouped)
    assert wide(rows, missing, **asked).panel == expected
    assert runs(split(rows), missing, **asked).panel == expected


def test_several_files_with_the_same_columns_are_one():
    write("x.csv", ROWS[:70])
    write("y.csv", ROWS[70:])
    for asked in ({}, {"groups": "writer"}):
        columns = ItemColumns(systems=SYSTEMS, **asked)
        assert count_systems(["x.csv", "y.csv"], columns).panel == in_python(ROWS, grouped=asked)
        assert count_systems(["?.csv"], columns).panel == in_python(ROWS, grouped=asked)


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv.gz"])
def test_every_format_gives_the_same_panel(kind):
    name = f"all.{kind}"
    if kind == "jsonl":
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif kind == "parquet":
        pq.write_table(pa.table({key: [row[key] for row in ROWS] for key in ROWS[0]}), name)
    else:
        Path(name).write_bytes(gzip.compress(Path(write("all.csv", ROWS)).read_bytes()))
    found = count_systems([name], ItemColumns(systems=SYSTEMS, weights="w", groups="writer"))
    assert found.panel == in_python(ROWS, weighted=True, grouped=True)


def test_runs_may_have_other_formats_than_gold():
    paths = split(ROWS)
    answers = [{"id": row["id"], "predicted": row["a"]} for row in ROWS]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    assert runs([paths[0], "a.jsonl", *paths[2:]]).panel == in_python(ROWS)


def test_labels_are_renamed_in_every_column():
    renamed = {level.lower(): level for level in CEFR}
    low = [row | {key: row[key].lower() for key in ("gold", "a", "b")} for row in ROWS]
    assert wide(low, renamed=renamed).panel == in_python(ROWS)
    assert runs(split(low), renamed=renamed).panel == in_python(ROWS)


def test_spellings_of_one_number_are_one_level():
    rows = [
        {"id": 1, "gold": "1", "a": "1.0", "b": "2"},
        {"id": 2, "gold": "2", "a": "1", "b": "2.00"},
    ]
    write("all.csv", rows)
    columns = ItemColumns(systems=("a", "b"))
    panel = count_systems(["all.csv"], columns, Scale.of("1..3")).panel
    assert panel == Panel.of([1, 2], {"a": [1, 1], "b": [2, 2]}, "1..3")


@pytest.mark.parametrize("label", ["it's", 'say "x"', "a,b", "日本", "\\", "%", "x" * 400])
def test_labels_of_any_letters_are_counted(label):
    rows = [{"gold": label, "a": "no", "b": label}, {"gold": "no", "a": label, "b": None}]
    Path("some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ItemColumns(systems=("a", "b"))
    panel = count_systems(["some.jsonl"], columns, Scale([label, "no"]), "worst").panel
    assert panel.rows.tolist() == [[0, 1, 0], [1, 0, 2]]


def test_a_label_with_a_nul_is_told_from_its_beginning():
    rows = [{"gold": "a\0b", "a": "a", "b": "a\0b"}]
    Path("some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ItemColumns(systems=("a", "b"))
    panel = count_systems(["some.jsonl"], columns, Scale(["a", "a\0b"])).panel
    assert panel.rows.tolist() == [[1, 0, 1]]


def test_an_item_of_weight_0_may_hold_anything_and_is_known():
    rows = [*ROWS[:20], {**ROWS[20], "gold": "ZZ", "a": "??", "b": None, "w": 0, "id": "zero"}]
    assert wide(rows, weights="w").panel == in_python(ROWS[:20], weighted=True)
    found = runs(split(rows), weights="w")
    assert found.panel == in_python(ROWS[:20], weighted=True)


@pytest.mark.parametrize("n", [150, 5_000])
def test_bad_lines_of_runs_are_left_out_and_counted_for_each(n):
    rows = items(n)
    paths = split(rows)
    for name, bad in (("a.csv", "e3\n"), ("b.csv", "e3,A1,A2,A3\nx\n")):
        header, _, rest = Path(name).read_text().partition("\n")
        Path(name).write_text(f"{header}\n{bad}{rest}")
    found = runs(paths, weights="w", groups="writer", bad_lines="skip")
    assert found.panel == in_python(rows, weighted=True, grouped=True)
    assert [note.partition(" left out")[0] for note in found.notes[:2]] == [
        "1 line of a.csv was",
        "2 lines of b.csv were",
    ]


# --- where it came from --------------------------------------------------------------------------


def test_a_preset_that_was_taken_is_said():
    for found in (wide(ROWS), runs(split(ROWS))):
        assert "No scale was declared: every label seen is on the preset 'cefr'." in found.notes
        assert found.gold == "gold"


def test_columns_that_were_not_named_are_said_once():
    found = runs(split(ROWS), scale="cefr")
    assert sum("predicted column was not named" in note for note in found.notes) == 1
    assert found.files == ("gold.csv", "a.csv", "b.csv", "c.csv")


def test_each_run_says_what_matched():
    paths = split(ROWS)
    write("b.csv", [{"id": row["id"], "predicted": row["b"]} for row in ROWS[4:]])
    found = runs(paths, "drop")
    whole = {"matched": 150, "missing": 0, "unknown": 0}
    lacking = {"matched": 146, "missing": 4, "unknown": 0}
    assert found.match_counts == {"a": whole, "b": lacking, "c": whole}
    assert found.panel == in_python(
        [row | {"b": None} for row in ROWS[:4]] + ROWS[4:], missing="drop"
    )
    assert "b has no row for 4 of 150 items." in found.notes
    assert not any(note.startswith("a ") for note in found.notes)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/a.csv", "x/b.csv.gz"], ("a", "b")),
        (["x/run.csv", "y/run.csv"], ("x/run", "y/run")),
        (["x/1/run.csv", "y/1/run.csv", "y/2/run.csv"], ("x/1/run", "y/1/run", "2/run")),
        (["run.csv", "x/run.csv"], ("run", "x/run")),
        (["run.csv", "run.tsv"], ("run.csv", "run.tsv")),
        (["model.v1.csv", "model.v2.csv"], ("model.v1", "model.v2")),
        (["no suffix", "a.tab.csv"], ("no suffix", "a.tab")),
    ],
)
def test_runs_are_named_by_what_tells_them_apart(paths, names):
    write("gold.csv", [{"id": 1, "gold": "A1"}])
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        text = "id\tpredicted\n1\tA1\n" if path.endswith("tsv") else "id,predicted\n1,A1\n"
        content = text.encode()
        Path(path).write_bytes(gzip.compress(content) if path.endswith("gz") else content)
    assert runs(["gold.csv", *paths]).panel.systems == names


# --- what is refused -----------------------------------------------------------------------------


def test_one_file_without_systems_lists_its_columns():
    said = r"Which columns of all.csv are systems.*systems=\['b', 'c'\].*'gold', 'writer', 'w', 'a'"
    with pytest.raises(BadInput, match=said):
        count_systems([write("all.csv", ROWS)], ItemColumns(gold="gold"))


def test_files_without_an_id_are_refused():
    paths = split(ROWS)
    write("b.csv", [{"id": row["id"], "predicted": row["b"]} for row in ROWS[4:]])
    with pytest.raises(BadInput, match="Name its column with id=…"):
        runs(paths, id=None)


@pytest.mark.parametrize("asked", [{"id": "id"}, {"predicted": "a"}])
def test_the_two_ways_are_not_mixed(asked):
    with pytest.raises(BadInput, match="one or the other"):
        wide(ROWS, **asked)


@pytest.mark.parametrize("systems", [("a", "a"), ("a", "gold")])
def test_a_column_is_one_system(systems):
    with pytest.raises(BadInput, match="named twice"):
        count_systems([write("all.csv", ROWS)], ItemColumns(systems=systems))


@pytest.mark.parametrize("asked", [{"systems": ("a", "bb")}, {"weights": "bb"}, {"groups": "bb"}])
def test_an_unknown_column_is_named(asked):
    with pytest.raises(BadInput, match=r"all.csv has no column 'bb'"):
        count_systems([write("all.csv", ROWS)], ItemColumns(**{"systems": ("a", "b")} | asked))


@pytest.mark.parametrize("name", ["gold.csv", "b.csv"])
def test_an_id_that_occurs_twice_is_named_with_its_file(name):
    paths = split(ROWS)
    with Path(name).open("a") as file:
        file.write("e3,A1" + (",w1,1" if name == "gold.csv" else "") + "\n")
    with pytest.raises(BadIds, match=rf"^{name}: the id 'e3' occurs 2 times\.$"):
        runs(paths)
    with Path(name).open("a") as file:
        file.write("".join(f"e{k},A1{',w1,1' * (name == 'gold.csv')}\n" for k in (3, 4, 5)))
    with pytest.raises(BadIds, match="'e3' occurs 3 times, and 2 more ids occur several times"):
        runs(paths)


def test_ids_that_a_run_lacks_are_counted_and_named():
    paths = split(ROWS)
    write("b.csv", [{"id": row["id"], "predicted": row["b"]} for row in ROWS[2:]])
    with pytest.raises(
        MissingLabels, match=r"2 of 150 predictions of b are missing \(id e0, id e1\)"
    ):
        runs(paths)


def test_labels_that_a_column_lacks_are_counted_and_named():
    rows = [row | {"b": None} if k in {3, 5} else row for k, row in enumerate(ROWS)]
    with pytest.raises(MissingLabels, match=r"2 of 150 predictions of b .* \(row 4, row 6\)"):
        wide(rows)
    rows = [row | {"gold": "?"} if k == 3 else row for k, row in enumerate(ROWS)]
    with pytest.raises(MissingLabels, match=r"1 of 150 gold labels are missing \(row 4\)"):
        wide(rows, "worst", renamed={"?": None})
    with pytest.raises(MissingLabels, match=r"1 of 150 gold labels are missing \(id e3\)"):
        runs(split(rows), "worst", renamed={"?": None})


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_a_system_without_predictions_is_named(missing):
    rows = [row | {"b": None} for row in ROWS]
    with pytest.raises(MissingLabels, match="All 150 predictions of b are missing"):
        wide(rows, missing)
    with pytest.raises(MissingLabels, match=r"All 150 predictions of b are missing. Leave"):
        runs(split(rows), missing)


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_ids_that_gold_lacks_are_counted_and_named(missing):
    paths = split(ROWS)
    with Path("b.csv").open("a") as file:
        file.write("".join(f"x{k},ZZ\n" for k in range(9)))
    with pytest.raises(BadInput, match=r"^b.csv: the ids of 9 of its rows are not in gold"):
        runs(paths, missing)


def test_a_system_without_predictions_may_count_as_wrong():
    rows = [row | {"b": None} for row in ROWS]
    assert wide(rows, "worst").panel == in_python(rows, missing="worst")


@pytest.mark.parametrize("scale", ["cefr", None])
def test_a_strange_label_is_named_with_its_place(scale):
    rows = [row | {"b": "B3"} if k == 16 else row for k, row in enumerate(ROWS)]
    with pytest.raises(OffScale, match=r"'B3' \(row 17 of column 'b'\)"):
        wide(rows, scale=scale)
    with pytest.raises(OffScale, match=r"'B3' \(id e16 of b.csv of column 'predicted'\)"):
        runs(split(rows), scale=scale)


def test_a_column_of_texts_is_refused_at_its_first_row():
    rows = [ROWS[k % len(ROWS)] | {"id": f"e{k}", "b": f"text {k}"} for k in range(2_000)]
    with pytest.raises(OffScale, match="'text "):
        wide(rows, scale="cefr")
    with pytest.raises(OffScale, match=r"'text 0' \(id e0 of b.csv"):
        runs(split(rows), scale="cefr")


def test_labels_without_a_scale_are_refused():
    rows = [row | dict.fromkeys(("gold", *SYSTEMS), "x") for row in ROWS]
    with pytest.raises(BadScale, match="scale="):
        wide(rows)


@pytest.mark.parametrize("weight", ["-1", "x", "", "inf"])
def test_a_bad_weight_is_named_with_its_place(weight):
    rows = [row | {"w": weight} if k == 4 else row for k, row in enumerate(ROWS)]
    with pytest.raises(BadWeights, match=r"row 5 of column 'w'"):
        wide(rows, weights="w")
    with pytest.raises(BadWeights, match=r"id e4 of column 'w'"):
        runs(split(rows), weights="w")


def test_weights_that_are_all_0_leave_nothing():
    rows = [row | {"w": 0} for row in ROWS]
    for read in (lambda: wide(rows, weights="w"), lambda: runs(split(rows), weights="w")):
        with pytest.raises(NoItems, match="all weights are 0"):
            read()


def test_a_file_without_rows_is_named():
    Path("empty.csv").write_text("id,gold,a,b\n")
    with pytest.raises(NoItems, match=r"empty.csv has a header and no rows"):
        count_systems(["empty.csv"], ItemColumns(systems=("a", "b")))
    split(ROWS)
    with pytest.raises(NoItems, match=r"empty.csv has a header and no rows"):
        runs(["empty.csv", "a.csv"])


@pytest.mark.parametrize("missing", ["error", "worst"])
def test_an_item_without_a_group_is_named_with_its_place(missing):
    rows = [row | {"writer": None} if k == 4 else row for k, row in enumerate(ROWS)]
    with pytest.raises(MissingLabels, match=r"1 of 150 items have no group \(row 5 of column"):
        wide(rows, missing, groups="writer")
    with pytest.raises(MissingLabels, match=r"1 of 150 items have no group \(id e4 of column"):
        runs(split(rows), missing, groups="writer")


def test_items_without_a_group_can_be_dropped():
    rows = [row | {"writer": None} if k % 10 == 4 else row for k, row in enumerate(ROWS)]
    kept = in_python([row for row in rows if row["writer"]], grouped=True).to_dict()
    for found in (wide(rows, "drop", groups="writer"), runs(split(rows), "drop", groups="writer")):
        assert found.panel.to_dict() == kept | {"dropped": 15}


# --- many ----------------------------------------------------------------------------------------


def test_hundreds_of_runs_are_read_one_by_one():
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 6, 12)
    write("gold.csv", [{"id": k, "gold": CEFR[level]} for k, level in enumerate(gold)])
    answers = rng.integers(0, 6, (300, 12))  # more files than some systems open at once
    for number, run in enumerate(answers):
        write(f"r{number}.csv", [{"id": k, "predicted": CEFR[x]} for k, x in enumerate(run)])
    found = runs(["gold.csv", *(f"r{number}.csv" for number in range(300))])
    systems = {f"r{number}": [CEFR[x] for x in run] for number, run in enumerate(answers)}
    assert found.panel == Panel.of([CEFR[level] for level in gold], systems, "cefr")
