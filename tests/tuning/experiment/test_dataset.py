"""Data sets: cells are texts, columns are recognised, and what is odd is named with its row."""

import gzip

import pytest
from experiment_folder import items, write_rows

from ordinate import Scale
from ordinate.errors import BadInput, MissingLabels, NoItems, OffScale
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.dataset import compute_fingerprint, parse_stem, read_dataset

CEFR = Scale.of("cefr")


def written(tmp_path, text, name="train.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def test_ids_labels_and_texts_are_read_as_they_stand(tmp_path):
    path = written(tmp_path, 'id,level,text\n007,B1,"One line,\nand another"\n8,A2,NA\n')
    data = read_dataset(path, role="training")
    assert data.name == "train"
    assert data.ids == ("007", "8")
    assert data.labels.tolist() == ["B1", "A2"]
    assert data.texts == ("One line,\nand another", "NA")
    assert data.gold(CEFR).tolist() == [2, 1]
    assert data.n == 2


@pytest.mark.parametrize("name", ["label", "cefr_label", "cefr_level", "Level", "CEFR", "grade"])
def test_usual_names_of_the_levels_are_recognised(tmp_path, name):
    data = read_dataset(written(tmp_path, f"writing_id,{name}\nw1,B2\n"), role="training")
    assert (data.columns.label, data.columns.id) == (name, "writing_id")
    assert data.texts is None


@pytest.mark.parametrize(
    "packed",
    [
        lambda text: text.replace(",", ";").encode(),
        lambda text: text.replace(",", "\t").encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode()),
    ],
    ids=["semicolons", "tabs", "byte-order mark", "utf-16", "gzip"],
)
def test_how_a_file_is_written_makes_no_difference(tmp_path, packed):
    text = "id,level,text\n1,B1,Größe\n2,C1,два\n"
    path = tmp_path / "train.csv"
    path.write_bytes(packed(text))
    data = read_dataset(path, role="training")
    assert data.texts == ("Größe", "два")
    assert data.fingerprint == compute_fingerprint(["1", "2"], ["Größe", "два"])


def test_another_encoding_is_an_option(tmp_path):
    path = written(tmp_path, "level,text\nB1,Größe\n", encoding="latin-1")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_dataset(path, role="training")
    data = read_dataset(path, role="training", columns=DataColumns(encoding="latin-1"))
    assert data.texts == ("Größe",)


def test_a_label_that_is_corrected_leaves_the_fingerprint(tmp_path):
    rows = items(4)
    write_rows(tmp_path / "a.csv", rows)
    write_rows(tmp_path / "b.csv", [row | {"level": "C2"} for row in rows])
    write_rows(tmp_path / "c.csv", [*rows[:3], rows[3] | {"text": "Another"}])
    write_rows(tmp_path / "d.csv", rows[::-1])
    prints = [read_dataset(tmp_path / f"{name}.csv").fingerprint for name in "abcd"]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_without_texts_the_fingerprint_is_of_the_file(tmp_path):
    first = read_dataset(written(tmp_path, "id,level\n1,B1\n", "a.csv"))
    second = read_dataset(written(tmp_path, "id,level\n1,B2\n", "b.csv"))
    assert first.fingerprint != second.fingerprint


def test_blanks_around_a_label_are_left_out_and_known(tmp_path):
    data = read_dataset(written(tmp_path, "level,text\nB1,a\n B2 ,b\n  ,c\n"), role="training")
    assert data.labels.tolist() == ["B1", "B2", None]
    assert data.trimmed == (2, 3)


def test_a_label_off_the_scale_is_named_with_row_column_and_file(tmp_path):
    data = read_dataset(written(tmp_path, "level,text\nB1,a\nB3,b\n"))
    with pytest.raises(OffScale, match=r"'B3' \(row 2 of column 'level' of .*train.csv\)"):
        data.gold(CEFR)


def test_missing_labels_are_an_error_unless_they_are_kept(tmp_path):
    data = read_dataset(written(tmp_path, "level,text\nB1,a\n,b\n"))
    with pytest.raises(MissingLabels, match=r"1 of 2 labels are missing .*\(row 2\)"):
        data.gold(CEFR)
    assert data.gold(CEFR, missing="keep").tolist() == [2, 6]
    assert data.known.tolist() == [True, False]


def test_test_data_need_no_levels_and_training_data_do(tmp_path):
    path = written(tmp_path, "id,text\n1,a\n")
    assert read_dataset(path, columns=DataColumns(label="cefr")).labels.tolist() == [None]
    with pytest.raises(MissingLabels, match="no column of levels"):
        read_dataset(path).gold(CEFR)
    with pytest.raises(BadInput, match=r"Which column of .* holds the levels.*'id', 'text'"):
        read_dataset(path, role="training")


@pytest.mark.parametrize("role", ["training", "test"])
def test_a_first_item_taken_for_the_header_is_noticed(tmp_path, role):
    path = written(tmp_path, "t1,B1,My house\nt2,A2,My dog\n")
    with pytest.raises(BadInput, match="has the level 'B1' in it: is there no header line"):
        read_dataset(path, role=role)


def test_two_columns_that_may_hold_the_levels_are_a_question(tmp_path):
    path = written(tmp_path, "level,grade,text\nB1,7,a\n")
    with pytest.raises(BadInput, match=r"levels: 'level' or 'grade'. Pass label_column=…"):
        read_dataset(path, role="training")
    data = read_dataset(path, role="training", columns=DataColumns(label="grade"))
    assert data.labels.tolist() == ["7"]


def test_the_plain_name_of_ids_wins(tmp_path):
    data = read_dataset(written(tmp_path, "text_id,id,level\n5,1,B1\n"))
    assert data.ids == ("1",)


def test_a_named_column_that_is_not_there_gets_a_suggestion(tmp_path):
    path = written(tmp_path, "essay_text,level\na,B1\n")
    with pytest.raises(BadInput, match=r"no column 'esay_text' \(text_column=…\).*'essay_text'"):
        read_dataset(path, columns=DataColumns(text="esay_text"))


def test_an_id_that_occurs_twice_is_named_with_both_rows(tmp_path):
    path = written(tmp_path, "id,level\na,B1\nb,B1\na,B2\n")
    with pytest.raises(BadInput, match="the id 'a' of column 'id' stands in row 1 and in row 3"):
        read_dataset(path)


def test_an_empty_id_is_named_with_its_row(tmp_path):
    with pytest.raises(BadInput, match="row 2 has no id in column 'id'"):
        read_dataset(written(tmp_path, "id,level\na,B1\n,B1\n"))


def test_groups_are_read_and_have_to_be_complete(tmp_path):
    columns = DataColumns(group="writer")
    path = written(tmp_path, "level,writer\nB1,x\nB1,y\n")
    assert read_dataset(path, role="training", columns=columns).groups.tolist() == ["x", "y"]
    path = written(tmp_path, "level,writer\nB1,x\nB1,\n")
    with pytest.raises(MissingLabels, match=r"1 of 2 items .* have no group .* \(row 2\)"):
        read_dataset(path, role="training", columns=columns)


def test_empty_texts_are_texts(tmp_path):
    data = read_dataset(written(tmp_path, 'level,text\nB1,\nB2,""\n'))
    assert data.texts == ("", "")


def test_other_columns_are_read_when_asked_for(tmp_path):
    data = read_dataset(written(tmp_path, "level,topic\nB1,home\nB2,\n"))
    assert data.read_column("topic").tolist() == ["home", None]
    with pytest.raises(BadInput, match="no column 'topics'"):
        data.read_column("topics")
    with pytest.raises(BadInput, match=r"holds the texts\? Name it with text_column=…"):
        data.require_texts()


def test_a_file_without_rows_is_an_error(tmp_path):
    with pytest.raises(NoItems, match="header line and no rows"):
        read_dataset(written(tmp_path, "level,text\n"))


def test_stems_are_names_without_the_suffixes_of_data_files(tmp_path):
    names = ("norm.v1.csv", "a.TSV", "b.parquet", ".hidden.csv", "model.pkl", "c.csv.gz")
    assert [parse_stem(tmp_path / name) for name in names] == ["norm.v1", "a", "b", None, None, "c"]
