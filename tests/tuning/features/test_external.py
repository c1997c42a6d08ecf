"""Tables that users bring: matched by id to every data set, all numbers, or a clear error."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from feature_texts import rows_of, write

from ordinate.errors import BadInput, BadOption, BadOutput, BadStore, BadValues
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import (
    default_name,
    extract_features,
    extract_new_features,
    list_feature_sets,
    load_extractor,
)
from ordinate.tuning.features.external import External

STEMS = ("one", "two", "test")


def value(one):
    return (sum(map(ord, one)) % 97) / 8


def table(ids, **columns):
    return {"id": list(ids), "x": [value(one) for one in ids], "y": [1] * len(ids)} | columns


def write_csv(path, columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


@pytest.fixture
def ids(experiment):
    return [one for stem in STEMS for one in experiment.dataset(stem).ids][::-1]


def external(experiment, path, *drop):
    return External(str(path), drop, experiment)


def refused(experiment, path, match, *drop, error=BadInput):
    with pytest.raises(error, match=match):
        extract_features(experiment, external(experiment, path, *drop))
    assert experiment.feature_sets == []


def test_one_file_serves_all_data_sets_by_id(experiment, ids, tmp_path):
    path = write_csv(tmp_path / "mine.csv", table([*ids, "of-no-data-set"]))
    made = extract_features(experiment, external(experiment, path))
    assert made.name == "external-mine"
    assert made.command == f"ordinate features external -e {experiment.root} {path}"
    for stem in STEMS:
        found = experiment.features(made.name, stem)
        assert (found.names, found.matched) == (("x", "y"), "by id")
        expected = [[value(one), 1.0] for one in experiment.dataset(stem).ids]
        assert found.matrix.tolist() == expected
    assert made.datasets[1].counts["empty_texts"] == 2
    assert extract_features(experiment, external(experiment, path)).already_complete


def test_parquet_of_single_precision_stays_so(experiment, ids, tmp_path):
    columns = {"id": ids, "x": pa.array([value(one) for one in ids], pa.float32())}
    pq.write_table(pa.table(columns), tmp_path / "mine.parquet")
    name = extract_features(
        experiment, external(experiment, tmp_path / "mine.parquet"), batch=3
    ).name
    assert experiment.features(name, "one").matrix.dtype == np.float32


def test_a_folder_has_a_file_for_each_data_set(experiment, tmp_path):
    folder = tmp_path / "mine"
    for stem in STEMS:
        write_csv(folder / f"{stem}.csv", table(experiment.dataset(stem).ids[::-1]))
    made = extract_features(experiment, external(experiment, folder))
    found = experiment.features(made.name, "two").matrix
    assert found[:, 0].tolist() == [value(one) for one in experiment.dataset("two").ids]
    (folder / "two.csv").unlink()
    with pytest.raises(BadInput, match=r"one file for the data set 'two', such as two\.parquet"):
        extract_features(experiment, external(experiment, folder), "other")


def test_without_ids_rows_are_taken_in_order(tmp_path):
    write_csv(tmp_path / "ml-training-data" / "a.csv", {"level": ["A1", "A2"], "text": ["x", "y"]})
    experiment = Experiment.open(tmp_path)
    path = write_csv(tmp_path / "mine.csv", {"x": [3, 4]})
    name = extract_features(experiment, external(experiment, path)).name
    assert experiment.features(name, "a").matrix.tolist() == [[3.0], [4.0]]
    longer = write_csv(tmp_path / "longer.csv", {"x": [3, 4, 5]})
    with pytest.raises(BadInput, match=r"has 3 rows, .* has 2 items, and neither has ids"):
        extract_features(experiment, external(experiment, longer))
    named = write_csv(tmp_path / "named.csv", {"id": [1, 2], "x": [3, 4]})
    with pytest.raises(BadInput, match=r"has ids in column 'id', and .* has none.*--drop id"):
        extract_features(experiment, external(experiment, named))
    write_csv(tmp_path / "ml-test-data" / "b.csv", {"level": ["A1"], "text": ["x"]})
    with pytest.raises(BadInput, match="Nothing says which rows"):
        extract_features(
            Experiment.open(tmp_path), external(Experiment.open(tmp_path), path), "other"
        )


def test_columns_that_are_no_numbers_are_refused_all_at_once_or_dropped(experiment, ids, tmp_path):
    texts = {"who is it": ["w"] * len(ids), "topic": ["t"] * len(ids)}
    path = write_csv(tmp_path / "mine.csv", table(ids, **texts))
    message = (
        r"row 1 of column 'who is it' is 'w', which is no finite number\. .* mend the columns "
        r"'who is it', 'topic', .*: --drop 'who is it' --drop topic$"
    )
    refused(experiment, path, message, error=BadValues)
    extractor = external(experiment, path, "who is it", "topic")
    name = extract_features(experiment, extractor).name
    assert extractor.arguments == [str(path), "--drop", "who is it", "--drop", "topic"]
    assert name == default_name(extractor) != "external-mine"
    assert experiment.features(name, "one").names == ("x", "y")


@pytest.mark.parametrize(
    ("cell", "said"), [("nan", "'nan'"), ("-inf", "'-inf'"), ("", "empty"), ("1,5", "'1,5'")]
)
def test_cells_that_are_no_finite_numbers_are_named_by_row_and_column(
    experiment, ids, tmp_path, cell, said
):
    columns = table(ids)
    columns["y"][4] = cell
    path = write_csv(tmp_path / "mine.csv", columns)
    refused(experiment, path, rf"row 5 of column 'y' is {said}", error=BadValues)


def test_infinite_numbers_in_parquet_are_named_too(experiment, ids, tmp_path):
    columns = table(ids)
    columns["x"][2] = float("inf")
    pq.write_table(pa.table(columns), tmp_path / "mine.parquet")
    match = r"row 3 of column 'x' is 'inf'"
    refused(experiment, tmp_path / "mine.parquet", match, error=BadValues)


def test_every_item_needs_a_row(experiment, ids, tmp_path):
    path = write_csv(tmp_path / "mine.csv", table([one for one in ids if one not in {"x2", "t31"}]))
    refused(experiment, path, r"lacks 2 of the 10 items of .*test\.csv, such as 't31', 'x2'")


def test_an_id_names_one_row(experiment, ids, tmp_path):
    path = write_csv(tmp_path / "mine.csv", table([*ids, ids[1]]))
    refused(experiment, path, rf"the id '{ids[1]}' stands in row 2 and in row {len(ids) + 1}")
    empty = write_csv(tmp_path / "empty.csv", table([*ids[:3], "", *ids[4:]]))
    refused(experiment, empty, "row 4 has no id")


def test_a_file_without_ids_is_refused_where_data_have_some(experiment, ids, tmp_path):
    columns = {name: column for name, column in table(ids).items() if name != "id"}
    path = write_csv(tmp_path / "mine.csv", columns)
    refused(experiment, path, "no column of ids, by which its rows are matched")


def test_ids_of_two_data_sets_cannot_be_told_apart_in_one_file(root, ids, tmp_path):
    write(root / "ml-test-data" / "same.csv", rows_of(0, 2))
    experiment = Experiment.open(root)
    path = write_csv(tmp_path / "mine.csv", table(ids))
    refused(experiment, path, r"The id 't0' stands in .*one\.csv and in .*same\.csv.*Pass a folder")


def test_levels_are_no_features(experiment, ids, tmp_path):
    path = write_csv(tmp_path / "mine.csv", table(ids, level=[1] * len(ids)))
    refused(experiment, path, r"columns of levels, or called as such: 'level'\..*--drop level")
    assert (
        extract_features(experiment, external(experiment, path, "level")).datasets[0].features == 2
    )


@pytest.mark.parametrize("name", ["grade", "CEFR_Level", " Gold", "cefr_label", "Text", "Essay_ID"])
def test_columns_called_like_levels_ids_or_texts_are_no_features(experiment, ids, tmp_path, name):
    path = write_csv(tmp_path / "mine.csv", table(ids, **{name: range(len(ids))}))
    refused(experiment, path, rf"or called as such: '{name}'.*--drop .*{name}.*, or rename")
    made = extract_features(experiment, external(experiment, path, name))
    assert experiment.features(made.name, "one").names == ("x", "y")


def test_a_column_of_one_data_set_alone_can_be_left_out(experiment, tmp_path):
    folder = tmp_path / "mine"
    for stem in STEMS:
        known = experiment.dataset(stem).ids
        further = {"level": [1] * len(known)} if stem == "test" else {}
        write_csv(folder / f"{stem}.csv", table(known, **further))
    refused(experiment, folder, r"test\.csv has the columns 'level'.*--drop level")
    assert (
        extract_features(experiment, external(experiment, folder, "level")).datasets[-1].features
        == 2
    )


def test_other_columns_for_another_data_set_are_refused(experiment, tmp_path):
    folder = tmp_path / "mine"
    for stem in STEMS:
        write_csv(folder / f"{stem}.csv", table(experiment.dataset(stem).ids))
    known = experiment.dataset("test").ids
    write_csv(folder / "test.csv", {"id": known, "x": [1] * len(known)})
    refused(experiment, folder, r"test\.csv lacks the columns 'y' of other data sets")
    write_csv(folder / "test.csv", table(known, z=[1] * len(known)))
    refused(experiment, folder, r"test\.csv has the columns 'z', which other .* --drop z")


def test_what_is_no_table_is_refused(experiment, ids, tmp_path):
    refused(experiment, tmp_path / "nowhere.csv", r"no file or folder '.*nowhere\.csv'")
    (tmp_path / "mine.pkl").write_bytes(b"\x80\x04.")
    refused(experiment, tmp_path / "mine.pkl", r"mine\.pkl is no table")
    bare = write_csv(tmp_path / "bare.csv", {"id": ids})
    refused(experiment, bare, r"bare\.csv has no features: its columns are 'id'")
    path = write_csv(tmp_path / "mine.csv", table(ids))
    refused(experiment, path, "no column 'z' to --drop", "z", error=BadOption)


def test_a_changed_table_is_noticed_and_further_rows_are_not_a_change(root, ids, tmp_path):
    experiment = Experiment.open(root)
    path = write_csv(tmp_path / "mine.csv", table(ids))
    extract_features(experiment, external(experiment, path))
    write(root / "ml-test-data" / "later.csv", rows_of(90, 2))
    write_csv(path, table([*ids, "t90", "t91"]))
    more = Experiment.open(root)
    made = extract_features(more, external(more, path))
    assert [one.dataset for one in made.datasets if one.new] == ["later"]
    assert list_feature_sets(more).notes == ()
    columns = table([*ids, "t90", "t91"])
    columns["x"][ids.index("t3")] += 1
    write_csv(path, columns)
    with pytest.raises(BadOutput, match="the table of one has changed"):
        extract_features(more, external(more, path))
    assert "the table of one has changed" in list_feature_sets(more).notes[0]
    columns = table([*ids, "t90", "t91"])
    columns["x"][ids.index("x1")] += 1
    write_csv(path, columns)
    with pytest.raises(BadOutput, match=r"the table of .*test\.csv has changed .* Remove"):
        extract_features(more, external(more, path))


def test_the_set_outlives_its_file_but_makes_nothing_of_new_texts(experiment, ids, tmp_path):
    path = write_csv(tmp_path / "mine.csv", table(ids))
    name = extract_features(experiment, external(experiment, path)).name
    path.unlink()
    assert load_extractor(experiment, name).names == ("x", "y")
    assert experiment.features(name, "one").matrix.shape == (20, 2)
    with pytest.raises(BadInput, match=r"brought in .*mine\.csv: nothing can make them of new"):
        extract_new_features(experiment, name, ["the cat"])
    assert (
        list_feature_sets(experiment)
        .notes[0]
        .startswith(f"{name} cannot be made again: There is no file")
    )


def test_the_state_is_checked(experiment, ids, tmp_path):
    extractor = external(experiment, write_csv(tmp_path / "mine.csv", table(ids)))
    (tmp_path / "state.json").write_text(json.dumps([]))
    with pytest.raises(BadStore, match=r"state\.json: it must be an object"):
        extractor.load(tmp_path)
    assert Path(extractor.path).is_absolute()
