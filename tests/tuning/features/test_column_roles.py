"""Groups: any column but those of levels, ids and texts, and those that are levels in disguise."""

import csv

import pytest

from ordinate.errors import BadOption
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import extract_features
from ordinate.tuning.features.tfidf import Tfidf

LEVELS = ("A1", "A1", "B1", "B1", "C1", "")
COLUMNS = {
    "band": LEVELS,
    "CEFR_label": ("x",) * 6,
    "copy": ("low", "low ", "mid", "mid", "high", "new"),
    "nearly": ("low", "mid", "mid", "mid", "high", "new"),
    "finer": ("1", "2", "3", "3", "4", "5"),
    "one": ("x",) * 6,
}


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "ml-training-data" / "train.csv"
    path.parent.mkdir()
    rows = ((f"i{k}", f"the cat {k}", *cells) for k, cells in enumerate(zip(*COLUMNS.values())))  # noqa: B905 - alike
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text", *COLUMNS), *rows])
    return Experiment.open(tmp_path, columns=DataColumns(label="band"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("band", "'band' is the column of the levels, or called as one: .* give the levels away"),
        ("CEFR_label", "'CEFR_label' is the column of the levels, or called as one"),
        ("id", "'id' is the column of the ids, which differ"),
        ("text", "'text' is the column of the texts, which differ"),
        ("copy", "'copy' has one value for each level in the training data"),
    ],
    ids=["levels", "usual", "ids", "texts", "copy"],
)
def test_columns_that_give_levels_or_items_away_are_no_groups(experiment, column, message):
    with pytest.raises(BadOption, match=message):
        extract_features(experiment, Tfidf(group_by=column))
    assert experiment.feature_sets == []


@pytest.mark.parametrize("column", ["nearly", "finer", "one"])
def test_other_columns_are_groups(experiment, column):
    name = extract_features(experiment, Tfidf(min_df=1, group_by=column)).name
    assert experiment.feature_sets == [name]


def test_a_name_that_is_too_long_asks_for_another(experiment):
    with pytest.raises(BadOption, match=r"has 1\d\d characters, and 100 can stand .*--name"):
        extract_features(experiment, Tfidf(group_by="t" * 90))
