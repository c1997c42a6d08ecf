"""What every feature extractor promises: the same set, however it was made."""

import csv

import numpy as np
import pytest

from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import extract_features, extract_new_features

TEXTS = {
    "ml-training-data/train.csv": (
        "The cat sat on the mat.",
        "",
        "Why? Nobody knows, not even the old man who lives by the sea.",
        "今天天气很好。我们去公园。",
        "هذا بيت جميل",
        "It rains.",
        "A tab\x0b and a bell\x07 stand here.",
    ),
    "ml-test-data/test.csv": ("It rains.", "Dogs bark at night. " * 8, ""),
}


class Killed(BaseException):
    """What a kill looks like to the code: nothing catches it."""


def laid_out(root):
    """Write the texts, and return their experiment."""
    for name, texts in TEXTS.items():
        path = root / name
        path.parent.mkdir(parents=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = ((f"{path.stem}-{k}", text, "AB"[k % 2]) for k, text in enumerate(texts))
            csv.writer(file).writerows([("id", "text", "label"), *rows])
    return Experiment.open(root)


def matrices(experiment, name):
    return [experiment.features(name, stem).matrix for stem in ("train", "test")]


def check_promises(extractor, fitted_class, folder, monkeypatch):
    """Make a set whole, in two parts of other batches with a kill between, and for new texts."""
    whole, parts = (laid_out(folder / name) for name in ("whole", "parts"))
    name = extract_features(whole, extractor).name
    rows, calls = fitted_class.rows, []

    def killed(self, items):
        calls.append(items.n)
        if len(calls) == 2:
            raise Killed
        return rows(self, items)

    with monkeypatch.context() as patched:
        patched.setattr(fitted_class, "rows", killed)
        with pytest.raises(Killed, match=r"^$"):
            extract_features(parts, extractor, batch=3)
    extract_features(parts, extractor, batch=1)
    expected = matrices(whole, name)
    for one, two in zip(expected, matrices(parts, name), strict=True):
        assert np.array_equal(one, two)
    texts = TEXTS["ml-test-data/test.csv"]
    found, names = extract_new_features(whole, name, texts)
    assert np.array_equal(found, expected[1])
    assert names == whole.features(name, "test").names
    assert extract_features(whole, extractor).already_complete
    return whole, name
