"""A small experiment: two training files and one test file."""

import pytest
from feature_texts import ODD, rows_of, write

from ordinate.tuning.experiment.folder import Experiment


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "ml-training-data" / "one.csv", rows_of(0, 20))
    more = [(f"u{k}", "A1", "home", text) for k, text in enumerate(ODD)]
    write(tmp_path / "ml-training-data" / "two.csv", [*more, *rows_of(20, 5)])
    odd = [
        ("x1", "B1", "sea", "the cat sat"),
        ("x2", "A2", "home", ""),
        ("x3", "A1", "home", "zzz"),
    ]
    write(tmp_path / "ml-test-data" / "test.csv", [*rows_of(30, 7), *odd])
    return tmp_path


@pytest.fixture
def experiment(root):
    return Experiment.open(root)
