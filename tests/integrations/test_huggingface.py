"""What a Trainer of transformers hands over, as metrics of ordered levels."""

import numpy as np
import pytest
import torch
from transformers import EvalPrediction

import ordinate
from ordinate.errors import BadInput
from ordinate.integrations.huggingface import make_compute_metrics

LEVELS = ["low", "mid", "high"]
NAMES = {0: "high", 1: "low", 2: "mid"}
RNG = np.random.default_rng(2)


def test_ignored_tokens_do_not_count():
    logits = np.eye(3)[[[0, 1, 2], [2, 2, 0]]]
    labels = np.array([[0, -100, 2], [2, 1, -100]])
    found = make_compute_metrics("mae", LEVELS, classes="scale")(EvalPrediction(logits, labels))
    assert found == {"mae": 0.25}


def test_probabilities_are_the_softmax_of_logits_in_the_order_of_classes():
    logits, labels = RNG.normal(size=(30, 3)), RNG.integers(0, 3, 30)
    found = make_compute_metrics("rps", LEVELS, classes=NAMES)((logits, labels))
    rows = torch.softmax(torch.from_numpy(logits), dim=1).numpy()[:, [1, 2, 0]]
    gold = [NAMES[label] for label in labels]
    expected = ordinate.Calibration.of(
        gold, rows, scale=LEVELS, columns="scale", metrics="rps", interval=None
    )
    assert found["rps"] == pytest.approx(expected.metrics["rps"].value)


def test_a_model_of_numbers_is_refused():
    with pytest.raises(BadInput, match="a classifier with a logit for each level"):
        make_compute_metrics("mae", LEVELS, classes="scale")((np.zeros(4), np.zeros(4)))
