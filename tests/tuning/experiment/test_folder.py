"""An experiment folder: what lies in it is found, and nothing outside of it is touched."""

import numpy as np
import pytest
from experiment_folder import items, numbers, write_csv, write_experiment, write_rows

from ordinate.errors import BadInput, BadScale
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment


@pytest.fixture
def root(tmp_path):
    return write_experiment(tmp_path / "study")


def test_data_sets_and_feature_sets_are_found(root):
    (root / "features" / "shape" / "_maker").mkdir()
    (root / "features" / "_cache").mkdir()
    experiment = Experiment.open(root)
    assert experiment.training == ["train"]
    assert experiment.tests == ["test"]
    assert experiment.feature_sets == ["shape"]
    assert experiment.list_stems("shape") == ["test", "train"]
    assert experiment.folder("models") == root.resolve() / "models"
    assert not experiment.folder("models").exists()


def test_features_come_in_the_order_of_the_data(root):
    experiment = Experiment.open(str(root))
    found = experiment.features("shape", "train")
    assert (found.set, found.dataset, found.matched) == ("shape", "train", "by id")
    np.testing.assert_array_equal(found.matrix, numbers(30))


def test_a_data_set_is_read_once(root):
    experiment = Experiment.open(root)
    assert experiment.dataset("train") is experiment.dataset("train")


def test_columns_may_be_named(root):
    rows = [{"who": k, "stage": row["level"], "level": 1} for k, row in enumerate(items(6))]
    write_rows(root / "ml-training-data" / "train.csv", rows)
    experiment = Experiment.open(root, columns=DataColumns(label="stage", id="who"))
    assert experiment.dataset("train").labels.tolist()[:2] == ["A1", "A2"]
    assert experiment.dataset("train").ids[:2] == ("0", "1")
    with pytest.raises(BadInput, match=r"test.csv has no column 'who'"):
        experiment.dataset("test")


def test_the_scale_is_that_of_the_training_labels_alone(root):
    experiment = Experiment.open(root)
    assert experiment.scale().preset == "cefr"
    assert len(experiment.scale("1..4")) == 4
    write_rows(root / "ml-training-data" / "train.csv", [{"level": "1", "text": "a"}])
    with pytest.raises(BadScale, match="No scale was declared for the labels 1"):
        Experiment.open(root).scale()


def test_no_training_data_have_no_scale(root):
    (root / "ml-training-data" / "train.csv").unlink()
    with pytest.raises(BadInput, match="no training data in ml-training-data"):
        Experiment.open(root).scale()


def test_feature_sets_may_lie_elsewhere(root, tmp_path):
    write_csv(tmp_path / "others" / "mine" / "train", numbers(30))
    experiment = Experiment.open(root, features_dir=tmp_path / "others")
    assert experiment.feature_sets == ["mine"]
    assert experiment.features("mine", "train").matched == "by row order"
    with pytest.raises(BadInput, match=r"'nowhere' is not there. Feature sets are"):
        Experiment.open(root, features_dir="nowhere")


def test_a_folder_that_is_not_there_says_how_to_get_one(tmp_path):
    with pytest.raises(BadInput, match=r"is not there. Lay one out with `ordinate init"):
        Experiment.open(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="is a file"):
        Experiment.open(tmp_path / "file")
    with pytest.raises(BadInput, match="is not there"):
        Experiment.open("a\0b")


@pytest.mark.parametrize("other", ["ml-test-data/train.csv", "ml-training-data/train.tsv"])
def test_one_name_for_two_data_sets_is_an_error(root, other):
    write_rows(root / other, items(3))
    with pytest.raises(BadInput, match=r"are both the data set 'train'.*Rename one"):
        Experiment.open(root)


def test_unknown_names_get_suggestions(root):
    experiment = Experiment.open(root)
    with pytest.raises(BadInput, match=r"no data set 'trian': there are train, test.*'train'"):
        experiment.dataset("trian")
    with pytest.raises(BadInput, match=r"no feature set 'shapes' .* there are shape.*'shape'"):
        experiment.features("shapes", "train")
    with pytest.raises(BadInput, match=r"no folder 'model'.*'models'"):
        experiment.folder("model")


def test_a_set_that_lacks_a_data_set_says_what_it_has(root):
    write_rows(root / "ml-test-data" / "later.csv", items(3))
    with pytest.raises(BadInput, match=r"no features for the data set 'later'.*for: test, train"):
        Experiment.open(root).features("shape", "later")


@pytest.mark.parametrize("name", ["..", "../../etc", "/etc", "", ".", "a\0b"])
def test_names_that_leave_the_folder_are_refused(root, name):
    experiment = Experiment.open(root)
    with pytest.raises(BadInput, match=r"leaves the folder|no name of a file or folder"):
        experiment.features(name, "train")
    with pytest.raises(BadInput, match=r"leaves the folder|no name of a file|no data set '\.\.'"):
        experiment.features("shape", name)
    with pytest.raises(BadInput, match="no data set"):
        experiment.dataset(name)


def test_links_that_leave_the_folder_are_refused(root, tmp_path):
    write_rows(tmp_path / "secret.csv", items(3))
    (root / "ml-test-data" / "linked.csv").symlink_to(tmp_path / "secret.csv")
    write_csv(tmp_path / "outside" / "train", numbers(30))
    (root / "features" / "linked").symlink_to(tmp_path / "outside")
    (root / "models").symlink_to(tmp_path)
    experiment = Experiment.open(root)
    with pytest.raises(BadInput, match=r"'ml-test-data/linked.csv' leaves the folder"):
        experiment.dataset("linked")
    with pytest.raises(BadInput, match=r"'linked/train' leaves the folder"):
        experiment.features("linked", "train")
    with pytest.raises(BadInput, match=r"'linked' leaves the folder"):
        experiment.list_stems("linked")
    with pytest.raises(BadInput, match=r"'models' leaves the folder"):
        experiment.folder("models")


@pytest.mark.parametrize("name", ["ml-training-data", "features"])
def test_a_linked_folder_of_data_is_refused(root, tmp_path, name):
    (root / name).rename(tmp_path / "moved")
    (root / name).symlink_to(tmp_path / "moved")
    with pytest.raises(BadInput, match=f"'{name}' leaves the folder"):
        Experiment.open(root)
