"""A Trainer of transformers reports metrics of ordered levels."""

import numpy as np
import pytest
import torch

import ordinate
from ordinate.integrations.huggingface import make_compute_metrics

pytest.importorskip("accelerate")  # `make test-integrations` has it, which the Trainer takes
LEVELS = ["low", "mid", "high"]
NAMES = {0: "high", 1: "low", 2: "mid"}
RNG = np.random.default_rng(2)


@pytest.mark.filterwarnings("ignore")  # of PyTorch's loader, that there is no device to pin for
def test_a_trainer_reports_the_metrics_of_its_predictions(tmp_path):
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainingArguments,
    )

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
