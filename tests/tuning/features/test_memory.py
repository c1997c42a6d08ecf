"""Twenty thousand texts by two hundred thousand n-grams stay within two gigabytes."""

import subprocess
import sys

import numpy as np
import pytest
from feature_texts import write

MEASURED = """
import resource, sys
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.features import extract_features
from ordinate.tuning.features.tfidf import Tfidf

LONGER = {"char": (2, 5)}
extractor = Tfidf(analyzer=sys.argv[2], ngrams=LONGER.get(sys.argv[2]))
made = extract_features(Experiment.open(sys.argv[1]), extractor)
print(made.datasets[0].rows, made.datasets[0].features)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("analyzer", "length"), [("word", 150), ("char", 60)])
def test_a_large_set_is_made_within_two_gigabytes(tmp_path, analyzer, length):
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 11, 40_000)]
    shares = 1.0 / np.arange(1, len(words) + 1)
    drawn = rng.choice(len(words), (20_000, length), p=shares / shares.sum())
    rows = ((k, "A1", "t", " ".join(words[w] for w in row)) for k, row in enumerate(drawn))
    write(tmp_path / "ml-training-data" / "many.csv", rows)
    command = [sys.executable, "-c", MEASURED, str(tmp_path), analyzer]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    size, kilobytes = ran.stdout.splitlines()
    assert size == "20000 200000"
    assert int(kilobytes) * 1024 < 2 * 10**9
