"""Features: each row belongs to a known item, or nothing is read at all."""

import io
import os
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from experiment_folder import (
    NAMES,
    items,
    numbers,
    write_csv,
    write_lines,
    write_manifest,
    write_rows,
)
from scipy import sparse

from ordinate.errors import BadInput, BadStore, BadValues
from ordinate.tuning.experiment.dataset import read_dataset
from ordinate.tuning.experiment.feature_rows import read_features
from ordinate.tuning.experiment.numeric_matrix import read_matrix

ROWS = items(6)
IDS = [row["id"] for row in ROWS]
MATRIX = numbers(6)
MIXED = [3, 0, 5, 1, 4, 2]


@pytest.fixture
def data(tmp_path):
    write_rows(tmp_path / "train.csv", ROWS)
    return read_dataset(tmp_path / "train.csv", role="training")


@pytest.fixture
def anonymous(tmp_path):
    rows = [{key: row[key] for key in ("level", "text")} for row in ROWS]
    write_rows(tmp_path / "train.csv", rows)
    return read_dataset(tmp_path / "train.csv", role="training")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "set").mkdir()
    return tmp_path / "set"


def write_parquet(path, matrix, names=NAMES, ids=None, id_name="id"):
    columns = {} if ids is None else {id_name: pa.array(ids)}
    columns |= {name: pa.array(matrix[:, k]) for k, name in enumerate(names)}
    pq.write_table(pa.table(columns), path)


def write_npz(folder, matrix, names=NAMES, ids=None):
    sparse.save_npz(folder / "features.npz", matrix)
    write_lines(folder / "feature_names.csv", "feature", names)
    if ids is not None:
        write_lines(folder / "ids.csv", "id", ids)


# --- by id ---------------------------------------------------------------------------------------


def test_parquet_rows_are_put_in_the_order_of_the_data(folder, data):
    write_parquet(folder / "x.parquet", MATRIX[MIXED], ids=[IDS[k] for k in MIXED])
    found = read_features(folder, "set", data)
    assert found.matched == "by id"
    assert found.names == NAMES
    np.testing.assert_array_equal(found.matrix, MATRIX)


def test_sparse_rows_are_put_in_the_order_of_the_data_and_stay_sparse(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX[MIXED]), ids=[IDS[k] for k in MIXED])
    found = read_features(folder, "set", data)
    assert found.matched == "by id"
    assert found.sparse
    np.testing.assert_array_equal(found.matrix.toarray(), MATRIX)


def test_csv_rows_are_put_in_the_order_of_the_data(folder, data):
    write_csv(folder, MATRIX[MIXED], ids=[IDS[k] for k in MIXED], beside=False)
    found = read_features(folder, "set", data)
    assert found.matched == "by id"
    np.testing.assert_array_equal(found.matrix, MATRIX)


def test_ids_that_differ_are_named_from_both_sides(folder, data):
    write_parquet(folder / "x.parquet", MATRIX, ids=[*IDS[:4], "x1", "x2"])
    with pytest.raises(
        BadInput,
        match=r"has 6 ids, .* has 6, .*: 2 \('t4', 't5'\) of the data .*, 2 \('x1', 'x2'\) of the",
    ):
        read_features(folder, "set", data)


def test_features_of_fewer_items_are_an_error(folder, data):
    write_parquet(folder / "x.parquet", MATRIX[1:], ids=IDS[1:])
    with pytest.raises(BadInput, match=r"1 \('t0'\) of the data are not in the features, 0 of"):
        read_features(folder, "set", data)


def test_features_of_more_items_are_an_error(folder, data):
    write_parquet(folder / "x.parquet", numbers(7), ids=[*IDS, "x1"])
    with pytest.raises(BadInput, match=r"0 of the data are not in the features, 1 \('x1'\) of the"):
        read_features(folder, "set", data)


def test_an_id_that_occurs_twice_in_the_features_is_an_error(folder, data):
    write_parquet(folder / "x.parquet", MATRIX, ids=[*IDS[:5], "t0"])
    with pytest.raises(BadInput, match="the id 't0' stands in row 1 and in row 6"):
        read_features(folder, "set", data)


def test_ids_stored_as_numbers_are_those_of_a_text_file(tmp_path, folder):
    write_rows(tmp_path / "train.csv", [row | {"id": k} for k, row in enumerate(ROWS)])
    data = read_dataset(tmp_path / "train.csv")
    write_parquet(folder / "x.parquet", MATRIX, ids=[float(k) for k in range(6)])
    assert read_features(folder, "set", data).matched == "by id"


def test_a_feature_named_id_is_a_feature_where_the_names_say_so(folder, anonymous):
    names = ("id", "It", "it")
    write_parquet(folder / "x.parquet", MATRIX, names)
    write_lines(folder / "feature_names.csv", "feature", names)
    found = read_features(folder, "set", anonymous)
    assert found.names == names
    assert found.matched == "by row order"
    np.testing.assert_array_equal(found.matrix, MATRIX)


def test_as_many_ids_as_rows(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX), ids=IDS[1:])
    with pytest.raises(BadInput, match=r"has 6 rows, and .*ids.csv has 5 ids"):
        read_features(folder, "set", data)


def test_ids_need_their_header(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX))
    write_lines(folder / "ids.csv", IDS[0], IDS[1:])
    with pytest.raises(BadInput, match="has to have the header 'id', and begins with 't0'"):
        read_features(folder, "set", data)


def test_the_digest_tells_which_row_is_which_item_and_what_the_columns_are(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX), ids=IDS)
    known = {read_features(folder, "set", data).digest}
    write_lines(folder / "ids.csv", "id", [IDS[k] for k in MIXED])  # the matrix stays as it is
    known.add(read_features(folder, "set", data).digest)
    write_lines(folder / "feature_names.csv", "feature", NAMES[::-1])
    known.add(read_features(folder, "set", data).digest)
    write_npz(folder, sparse.csr_matrix(MATRIX + 1), ids=IDS)
    known.add(read_features(folder, "set", data).digest)
    assert len(known) == 4
    write_npz(folder, sparse.csr_matrix(MATRIX), ids=IDS)
    assert read_features(folder, "set", data).digest in known


# --- by fingerprint ------------------------------------------------------------------------------


def test_rows_of_the_very_data_are_known_by_its_fingerprint(folder, anonymous):
    write_parquet(folder / "x.parquet", MATRIX)
    write_manifest(folder, "train", anonymous.fingerprint)
    found = read_features(folder, "set", anonymous)
    assert found.matched == "by fingerprint"
    assert found.manifest is not None


def test_data_that_changed_since_are_an_error_with_the_command(folder, data):
    write_parquet(folder / "x.parquet", MATRIX, ids=IDS)
    write_manifest(folder, "train", "0" * 64)
    message = f"data changed .*{data.fingerprint[:12]}.* of 000000000000.*ordinate features tfidf"
    with pytest.raises(BadStore, match=message):
        read_features(folder, "set", data)


def test_a_file_that_changed_since_is_not_opened(folder, data):
    write_parquet(folder / "x.parquet", MATRIX, ids=IDS)
    write_manifest(folder, "train", data.fingerprint)
    write_parquet(folder / "x.parquet", MATRIX + 1, ids=IDS)
    with pytest.raises(BadStore, match=r"not what its manifest.json lists"):
        read_features(folder, "set", data)


def test_a_manifest_of_other_data_is_an_error(folder, data):
    write_parquet(folder / "x.parquet", MATRIX, ids=IDS)
    write_manifest(folder, "elsewhere", data.fingerprint)
    with pytest.raises(BadStore, match="features for elsewhere, not of features for train"):
        read_features(folder, "set", data)


# --- by row order --------------------------------------------------------------------------------


def test_foreign_features_are_matched_by_row_order(folder, data):
    write_csv(folder, MATRIX)
    found = read_features(folder, "set", data)
    assert found.matched == "by row order"
    assert found.manifest is None
    np.testing.assert_array_equal(found.matrix, MATRIX)


def test_row_order_takes_feature_names(folder, anonymous):
    write_csv(folder, MATRIX, beside=False)
    with pytest.raises(BadInput, match=r"neither has ids, .* there is no feature_names.csv"):
        read_features(folder, "set", anonymous)


def test_one_row_more_is_a_header_taken_for_an_item(folder, data):
    write_csv(folder, numbers(7))
    with pytest.raises(BadInput, match=r"has 7 rows, and .* has 6 items.*one row more: the header"):
        read_features(folder, "set", data)


def test_one_row_fewer_is_an_item_taken_for_a_header(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX[1:]))
    with pytest.raises(BadInput, match=r"has 5 rows, and .* 6 items.*one row fewer: the first row"):
        read_features(folder, "set", data)


def test_other_counts_are_named(folder, data):
    write_csv(folder, numbers(3))
    with pytest.raises(BadInput, match=r"has 3 rows, and .* has 6 items.*not of the same items"):
        read_features(folder, "set", data)


def test_a_csv_without_a_header_is_noticed(folder, data):
    write_csv(folder, numbers(7), header=False)  # 6 rows are left: the counts agree
    with pytest.raises(
        BadInput, match=r"first line .* is '0.0', .* says 'length', .*no header line"
    ):
        read_features(folder, "set", data)


def test_a_csv_without_a_header_is_noticed_where_names_are_numbers(folder, data):
    write_csv(folder, numbers(7), header=False)
    write_lines(folder / "feature_names.csv", "feature", ["0", "1", "2"])
    with pytest.raises(BadInput, match=r"Column 1 .* is named '0.0', and '0' in .*no header line"):
        read_features(folder, "set", data)


def test_a_csv_without_a_header_is_noticed_where_numbers_repeat(folder, data):
    write_csv(folder, np.zeros((7, 3)), header=False)
    with pytest.raises(
        BadInput, match=r"has no header line: its first line is '0.0', '0.0', '0.0'"
    ):
        read_features(folder, "set", data)


def test_numbered_columns_are_names_like_others(folder, data):
    write_csv(folder, MATRIX, ["0", "1", "2"])
    assert read_features(folder, "set", data).names == ("0", "1", "2")


def test_a_header_in_another_order_is_an_error(folder, data):
    write_csv(folder, MATRIX)
    write_lines(folder / "feature_names.csv", "feature", ["words", "length", "clauses"])
    with pytest.raises(BadInput, match=r"Column 1 of .* is named 'length', and 'words' in"):
        read_features(folder, "set", data)


def test_names_that_are_one_off_say_so(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX), NAMES[:2])
    with pytest.raises(
        BadInput, match=r"has 3 columns, and .* has 2 names. One off: a header line"
    ):
        read_features(folder, "set", data)


@pytest.mark.parametrize(
    "text",
    [
        "feature\nlength\nwords\nclauses\n",
        "length\nwords\nclauses\n",
        "length,words,clauses\n",
        ",0\n0,length\n1,words\n2,clauses\n",
        "\ufefffeature_name\r\nlength\r\nwords\r\nclauses\r\n",
    ],
    ids=["header", "no header", "one line", "numbered", "byte-order mark"],
)
def test_names_are_read_in_the_ways_that_people_write_them(folder, data, text):
    write_csv(folder, MATRIX)
    (folder / "feature_names.csv").write_text(text, encoding="utf-8", newline="")
    assert read_features(folder, "set", data).names == NAMES


def test_a_name_that_occurs_twice_is_an_error(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX), ["a", "b", "a"])
    with pytest.raises(BadInput, match="has the name 'a' twice"):
        read_features(folder, "set", data)


def test_a_column_that_numbers_the_rows_is_no_feature(folder, data):
    write_csv(folder, MATRIX, ["", "a", "b"], beside=False)
    with pytest.raises(BadInput, match=r"first column .* has no name: it seems to number the rows"):
        read_features(folder, "set", data)


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["nan", "inf", "", "many"])
def test_a_cell_that_is_no_number_is_named_with_row_and_column(folder, data, cell):
    write_csv(folder, MATRIX)
    path = folder / "features_dense.csv"
    path.write_text(path.read_text().replace("1.375", cell))
    what = "is empty" if not cell else f"is '{cell}', which is no finite number"
    with pytest.raises(BadValues, match=f"row 4 of column 'clauses' {what}"):
        read_features(folder, "set", data)


def test_a_sparse_cell_that_is_no_number_is_named_with_row_and_column(folder, data):
    matrix = sparse.csr_matrix(MATRIX)
    matrix[3, 2] = np.nan
    write_npz(folder, matrix)
    with pytest.raises(BadValues, match="row 4 of column 'clauses' is nan"):
        read_features(folder, "set", data)


def test_single_precision_is_kept(folder, data):
    write_parquet(folder / "x.parquet", MATRIX.astype(np.float32), ids=IDS)
    assert read_features(folder, "set", data).matrix.dtype == np.float32


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices_come_as_csr(folder, data, form):
    write_npz(folder, sparse.csr_matrix(MATRIX).asformat(form).astype(np.int32))
    found = read_features(folder, "set", data)
    assert found.matrix.format == "csr"
    assert found.matrix.dtype == np.float64


def test_features_that_are_the_same_for_all_items_are_counted(folder, data):
    matrix = np.column_stack([MATRIX[:, 0], np.zeros(6), np.full(6, 2.0)])
    write_npz(folder, sparse.csr_matrix(matrix))
    assert read_features(folder, "set", data).constant == 2
    (folder / "features.npz").unlink()
    write_csv(folder, matrix)
    assert read_features(folder, "set", data).constant == 2


def test_more_columns_than_are_read_at_once(folder):
    names = [f"x{k}" for k in range(5)]
    write_csv(folder, numbers(6, 5), names)
    found = read_matrix(str(folder / "features_dense.csv"), names, columns_per_query=2)
    np.testing.assert_array_equal(found.matrix, numbers(6, 5))


# --- files ---------------------------------------------------------------------------------------


def test_a_folder_without_features_says_what_is_needed(folder, data):
    write_lines(folder / "feature_names.csv", "feature", NAMES)
    with pytest.raises(
        BadInput, match=r"no feature file \(feature_names.csv\).*\*.parquet, \*.npz"
    ):
        read_features(folder, "set", data)


def test_two_feature_files_are_a_question(folder, data):
    write_csv(folder, MATRIX)
    write_parquet(folder / "x.parquet", MATRIX, ids=IDS)
    with pytest.raises(BadInput, match=r"several feature files \(features_dense.csv, x.parquet\)"):
        read_features(folder, "set", data)


class Trap:
    """Leaves a trace where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["x.pkl", "x.joblib", "x.pickle", "x.pkl.gz", "x.PKL"])
def test_a_pickle_is_refused_by_name(folder, data, name, tmp_path):
    write_csv(folder, MATRIX)
    (folder / name).write_bytes(pickle.dumps(Trap(tmp_path / "opened")))
    with pytest.raises(BadStore, match=f"{name} is a pickle"):
        read_features(folder, "set", data)
    assert not (tmp_path / "opened").exists()


def test_a_pickle_under_another_name_is_not_opened(folder, data, tmp_path):
    write_lines(folder / "feature_names.csv", "feature", NAMES)
    (folder / "features.npz").write_bytes(pickle.dumps(Trap(tmp_path / "opened")))
    with pytest.raises(BadInput, match="no sparse matrix"):
        read_features(folder, "set", data)
    assert not (tmp_path / "opened").exists()


def test_objects_inside_a_matrix_are_not_opened(folder, data, tmp_path):
    write_npz(folder, sparse.csr_matrix(MATRIX))
    with zipfile.ZipFile(folder / "features.npz") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    raw = io.BytesIO()
    np.save(raw, np.array([Trap(tmp_path / "opened")], object), allow_pickle=True)
    parts["data.npy"] = raw.getvalue()
    with zipfile.ZipFile(folder / "features.npz", "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    with pytest.raises(BadInput, match="no sparse matrix"):
        read_features(folder, "set", data)
    assert not (tmp_path / "opened").exists()


def test_indices_outside_a_matrix_are_refused(folder, data):
    write_npz(folder, sparse.csr_matrix(MATRIX))
    with np.load(folder / "features.npz") as found:
        parts = dict(found)
    parts["indices"] = parts["indices"] + 1_000_000
    np.savez(folder / "features.npz", **parts)
    with pytest.raises(BadInput, match=r"no sparse matrix .* or it is damaged"):
        read_features(folder, "set", data)


@pytest.mark.parametrize("kept", [0, 10, 200])
def test_a_truncated_matrix_is_refused(folder, data, kept):
    write_npz(folder, sparse.csr_matrix(MATRIX))
    raw = (folder / "features.npz").read_bytes()
    (folder / "features.npz").write_bytes(raw[:kept])
    with pytest.raises(BadInput, match="no sparse matrix"):
        read_features(folder, "set", data)


def test_an_archive_of_other_arrays_is_refused(folder, data):
    write_lines(folder / "feature_names.csv", "feature", NAMES)
    np.savez(folder / "features.npz", matrix=MATRIX)
    with pytest.raises(BadInput, match=r"no sparse matrix of scipy.sparse.save_npz"):
        read_features(folder, "set", data)


@pytest.mark.parametrize("name", ["x.parquet", "feature_names.csv", "ids.csv"])
def test_a_link_that_leaves_the_folder_is_refused(folder, data, tmp_path, name):
    if name != "x.parquet":
        write_npz(folder, sparse.csr_matrix(MATRIX), ids=IDS)
        (folder / name).unlink()
    write_parquet(tmp_path / "outside", MATRIX, ids=IDS)
    (folder / name).symlink_to(tmp_path / "outside")
    with pytest.raises(BadInput, match="leaves the folder"):
        read_features(folder, "set", data)
