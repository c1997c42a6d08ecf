"""A Trainer of transformers reports metrics of ordered levels."""

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    EvalPrediction,
    Trainer,
    TrainingArguments,
)

import ordinate
from ordinate.errors import BadInput
from ordinate.integrations.huggingface import make_compute_metrics

LEVELS = ["low", "mid", "high"]
NAMES = {0: "high", 1: "low", 2: "mid"}
RNG = np.random.default_rng(2)


@pytest.mark.filterwarnings("ignore")  # of PyTorch's loader, that there is no device to pin for
def test_a_trainer_reports_the_metrics_of_its_predictions(tmp_path):
    pytest.importorskip("accelerate", reason="the trainer of transformers needs accelerate")
    torch.manual_seed(1)
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = BertConfig(vocab_size=20, intermediate_size=8, num_labels=3, id2label=NAMES, **size)
    rows = [
        {"input_ids": RNG.integers(0, 20, 5).tolist(), "labels": int(label)}
        for label in RNG.integers(0, 3, 20)
    ]
    trainer = Trainer(
        BertForSequenceClassification(config),
        TrainingArguments(str(tmp_path), use_cpu=True, report_to="none", disable_tqdm=True),
        eval_dataset=rows,
        compute_metrics=make_compute_metrics("cem_ord,mae", LEVELS, classes=config.id2label),
    )
    found = trainer.evaluate()
    logits = trainer.predict(rows).predictions
    predicted = [NAMES[number] for number in logits.argmax(axis=1)]
    gold = [NAMES[row["labels"]] for row in rows]
    for name in ("cem_ord", "mae"):
        expected = float(ordinate.score(name, gold, predicted, scale=LEVELS))
        assert found[f"eval_{name}"] == pytest.approx(expected)


def test_ignored_tokens_do_not_count():
    logits = np.eye(3)[[[0, 1, 2], [2, 2, 0]]]
    labels = np.array([[0, -100, 2], [2, 1, -100]])
    found = make_compute_metrics("mae", LEVELS)(EvalPrediction(logits, labels))
    assert found == {"mae": 0.25}


def test_probabilities_are_the_softmax_of_logits_in_the_order_of_classes():
    logits, labels = RNG.normal(size=(30, 3)), RNG.integers(0, 3, 30)
    found = make_compute_metrics("rps", LEVELS, classes=NAMES)((logits, labels))
    rows = torch.softmax(torch.from_numpy(logits), dim=1).numpy()[:, [1, 2, 0]]
    gold = [NAMES[label] for label in labels]
    expected = ordinate.Calibration.of(gold, rows, scale=LEVELS, metrics="rps", interval=None)
    assert found["rps"] == pytest.approx(expected.metrics["rps"].value)


def test_a_model_of_numbers_is_refused():
    with pytest.raises(BadInput, match="a classifier with a logit for each level"):
        make_compute_metrics("mae", LEVELS)((np.zeros(4), np.zeros(4)))
