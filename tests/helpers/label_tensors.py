"""Tensors of labels, and a process that counts its share of them; a new process can import it."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import torch

from ordinate.integrations.torch import OrdinalMetric


def draw_labels(levels, n, seed=0, first=0):
    """Return gold labels, and predictions at most a level away."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, levels, n)
    predicted = np.clip(gold + rng.integers(-1, 2, n), 0, levels - 1)
    return gold + first, predicted + first


def count_share(rank, folder):
    """Count every second item, and write what is computed of all."""
    meeting = f"file://{Path(folder, 'meeting')}"
    torch.distributed.init_process_group(
        "gloo", meeting, rank=rank, world_size=2, timeout=timedelta(minutes=2)
    )
    gold, predicted = draw_labels(6, 101)
    metric = OrdinalMetric("cefr", "cem_ord,mae")
    metric.update(*(torch.from_numpy(x[rank::2]) for x in (predicted, gold)))
    record = {"values": metric.compute(), "n": metric.summary().n, "own": metric.cells}
    torch.save(record, Path(folder, f"{rank}.pt"))
    torch.distributed.destroy_process_group()
