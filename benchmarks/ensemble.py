"""Benchmark of batched ensembles: 16 members at once against 16 single runs.

    python benchmarks/ensemble.py --write docs/studies/ensemble-benchmark.md     about a minute
    python benchmarks/ensemble.py --device cuda --write docs/studies/ensemble-benchmark-cuda.md
    python benchmarks/ensemble.py --quick                                a smoke test

One thread. Members and single runs have the same seeds, so that their errors are compared in pairs.
A plain PyTorch loop, with modules and an optimiser, is a reference for the single runs.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")  # read when torch is imported

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ordinate.tuning.models.networks.batched_ensemble import NetworkEnsemble, derive_seeds
from ordinate.tuning.models.networks.residual_network import ResidualNetwork
from ordinate.tuning.models.networks.trainer import TrainingConfig
from writing import Table, Target, log, markdown, processor, wrapped

Floats = NDArray[np.float64]
MEMBERS, ROUNDS, EPOCHS, ROWS = 16, 2, 12, 5_625
WIDTH, DEPTH, BATCH, RATE = 64, 2, 32, 2e-3
NOISE, SEED = 1.0, 20_240_601
FASTER = 4.0  # times, which 16 members together should be at least


class Parts(NamedTuple):
    """Features and targets for training, validation and test: 80, 10 and 10 %."""

    train: tuple[Floats, Floats]
    validation: tuple[Floats, Floats]
    test: tuple[Floats, Floats]


class Cost(NamedTuple):
    """Seconds in wall time and of the processor."""

    clock: float
    processor: float

    def __add__(self, other: Any) -> "Cost":
        return Cost(self.clock + other.clock, self.processor + other.processor)


class Round(NamedTuple):
    """What one round took, and the test RMSE of every member in both ways."""

    batched: Cost
    single: Cost  # all 16 runs
    plain: Cost  # one run
    together: Floats
    alone: Floats
    written: float  # RMSE of the plain PyTorch loop


def data() -> Parts:
    """Return rows of Friedman's function of four features in [0, 1], with noise."""
    rng = np.random.default_rng(SEED)
    x = rng.random((ROWS, 4))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
    y += rng.normal(0.0, NOISE, ROWS)
    first, second = int(0.8 * ROWS), int(0.9 * ROWS)
    cut = (slice(0, first), slice(first, second), slice(second, None))
    return Parts(*((x[rows], y[rows]) for rows in cut))


def timed(call: Callable[[], Any]) -> tuple[Any, Cost]:
    """Return what a call returns, and what it took."""
    clock, used = time.perf_counter(), time.process_time()
    found = call()
    return found, Cost(time.perf_counter() - clock, time.process_time() - used)


def trained(parts: Parts, seeds: list[int], epochs: int, device: str) -> NetworkEnsemble:
    """Train a network for each seed; without early stopping, so that all do the same work."""
    return NetworkEnsemble.fit(
        parts.train,
        parts.validation,
        network=ResidualNetwork(4, width=WIDTH, depth=DEPTH),
        training=TrainingConfig(epochs=epochs, batch=BATCH, lr=RATE, patience=epochs),
        seeds=seeds,
        device=device,
    )


def errors(found: NetworkEnsemble, parts: Parts) -> Floats:
    """Return the test RMSE of each member."""
    x, y = parts.test
    return np.sqrt(np.square(found.members(x) - y).mean(axis=1))


def one_round(parts: Parts, seed: int, members: int, epochs: int, device: str) -> Round:
    """Train members together and one by one."""
    seeds, single, alone = derive_seeds(seed, members), Cost(0.0, 0.0), []
    ensemble, batched = timed(lambda: trained(parts, seeds, epochs, device))
    for each in seeds:
        found, cost = timed(lambda each=each: trained(parts, [each], epochs, device))
        single += cost
        alone.append(float(errors(found, parts)[0]))
    written, plain = timed(lambda: by_hand(parts, seed, epochs, device))
    return Round(batched, single, plain, errors(ensemble, parts), np.array(alone), written)


# --- plain PyTorch loop --------------------------------------------------------------------------


class Block(nn.Module):
    """A residual block, as a module."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what two layers make to what flows by."""
        return x + self.down(nn.functional.silu(self.up(x)))


def by_hand(parts: Parts, seed: int, epochs: int, device: str) -> float:
    """Train the same network with modules and an optimiser of PyTorch; return its test RMSE."""
    torch.manual_seed(seed)
    means, stds = (f(parts.train[0], axis=0) for f in (np.mean, np.std))
    middle, spread = parts.train[1].mean(), parts.train[1].std()
    x, check, test = (torch.tensor((part[0] - means) / stds).float().to(device) for part in parts)
    y, wanted, _ = (torch.tensor((part[1] - middle) / spread).float().to(device) for part in parts)
    blocks = (Block() for _ in range(DEPTH))
    model = nn.Sequential(nn.Linear(4, WIDTH), *blocks, nn.Linear(WIDTH, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=1e-4)
    steps = epochs * -(-len(y) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    best, kept = float("inf"), model.state_dict()
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(y)).to(device), BATCH):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x[rows]).squeeze(-1), y[rows]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            error = float(nn.functional.mse_loss(model(check).squeeze(-1), wanted))
        if error < best:
            best, kept = error, {name: part.clone() for name, part in model.state_dict().items()}
    model.load_state_dict(kept)
    with torch.no_grad():
        predictions = model(test).squeeze(-1).double().cpu().numpy() * spread + middle
    return float(np.sqrt(np.mean((predictions - parts.test[1]) ** 2)))


# --- the page ------------------------------------------------------------------------------------


def interval(differences: Floats) -> tuple[float, float, float]:
    """Return the mean of differences and its 95 % interval by Student's t."""
    from scipy.stats import t

    mean, n = float(differences.mean()), len(differences)
    half = float(t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def welch(first: Floats, second: Floats) -> tuple[float, float, float]:
    """Return the difference of two means and its 95 % interval by Welch, as if not in pairs."""
    from scipy.stats import ttest_ind

    found = ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    return float(first.mean() - second.mean()), float(found.low), float(found.high)


def ratios(rounds: list[Round], part: str) -> list[float]:
    """Return how many times faster members are together, round by round."""
    return [getattr(each.single, part) / getattr(each.batched, part) for each in rounds]


def targets(rounds: list[Round], members: int) -> list[Target]:
    """Return what should be reached."""
    reason = "time is spent on products, not between them"
    return [
        Target(
            f"all members together against {members} single runs, {name}",
            FASTER,
            statistics.median(ratios(rounds, part)),
            reason,
            at_least=True,
        )
        for part, name in (("clock", "in wall time"), ("processor", "in CPU time"))
    ]


def times(rounds: list[Round], members: int) -> Table:
    """Return what every round took."""
    return [
        [
            str(number),
            f"{each.batched.clock:.1f}",
            f"{each.single.clock:.1f}",
            f"{each.single.clock / each.batched.clock:.2f}",
            f"{each.single.processor / each.batched.processor:.2f}",
            f"{members * each.plain.clock:.1f}",
        ]
        for number, each in enumerate(rounds)
    ]


def results(rounds: list[Round]) -> list[str]:
    """Return the test errors of both ways, and how they differ."""
    together, alone = (
        np.concatenate([getattr(r, x) for r in rounds]) for x in ("together", "alone")
    )
    rows = [
        [name, f"{x.mean():.4f}", f"{x.std(ddof=1):.4f}", f"{x.min():.4f}", f"{x.max():.4f}"]
        for name, x in (("members together", together), ("single runs", alone))
    ]
    shown = "{:+.5f} (95 % interval {:+.5f} to {:+.5f})"
    written = np.mean([each.written for each in rounds])
    text = (
        f"Together minus single, in {len(together)} pairs of the same seed: "
        f"{shown.format(*interval(together - alone))}. Unpaired (Welch): "
        f"{shown.format(*welch(together, alone))}. The noise alone has an RMSE of {NOISE:g}. The "
        f"plain PyTorch loop: {written:.4f}, the mean of {len(rounds)} runs."
    )
    return [
        markdown(["training", "mean test RMSE", "spread", "lowest", "highest"], rows),
        wrapped(text),
    ]


def page(rounds: list[Round], members: int, epochs: int, device: str, load: float) -> str:
    """Return the whole page in Markdown."""
    on = "" if device == "cpu" else f" --device {device}"
    name = "ensemble-benchmark" if device == "cpu" else f"ensemble-benchmark-{device}"
    method = (
        f"`python benchmarks/ensemble.py{on} --write docs/studies/{name}.md` writes this page. "
        f"{members} networks (inlet, {DEPTH} residual blocks of width {WIDTH}, outlet) learn "
        f"Friedman's function of four features with noise: {ROWS:,} rows, of which 80 % train, 10 "
        f"% validate and 10 % test; {epochs} epochs in batches of {BATCH}, one thread of the "
        "processor. They are trained as one batch, then one by one by the same code with one "
        f"member and the same seeds: {len(rounds)} rounds of other seeds. There is no early "
        "stopping, so that all do the same work; of each network the weights of the lowest "
        "validation RMSE are tested. The last column is a plain PyTorch loop (modules, AdamW, "
        "gradient clipping), extrapolated from one run in each round. Wider networks and larger "
        "batches gain less: there matrix products dominate the run time."
    )
    lead = (
        f"{members} members together train {statistics.median(ratios(rounds, 'clock')):.1f} times "
        f"faster than {members} single runs, to the same results."
    )
    used = ", ".join(f"{name} {version(name)}" for name in ("numpy", "torch"))
    where = processor() if device == "cpu" else f"{torch.cuda.get_device_name()}; {processor()}"
    head = ["round", "together, s", f"{members} runs, s", "ratio", "ratio of CPU time"]
    parts = [
        "# Benchmark: batched training of ensembles" + ("" if device == "cpu" else " on a GPU"),
        wrapped(lead),
        wrapped(method),
        wrapped(
            f"Versions: Python {platform.python_version()}, {used}. {where}. Load before the run: "
            f"{load:.2f}."
        ),
        "## Targets",
        markdown(
            ["what", "target", "measured", "", "why"],
            [target.row() for target in targets(rounds, members)],
        ),
        "## Times",
        markdown([*head, "plain PyTorch loop, s"], times(rounds, members)),
        "## Results",
        *results(rounds),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run everything, print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description="Measure what a batched ensemble costs.")
    parser.add_argument("--quick", action="store_true", help="one round of four members")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--write", metavar="FILE", type=Path, help="where to write the page")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    count, members, epochs = (1, 4, 2) if options.quick else (ROUNDS, MEMBERS, EPOCHS)
    torch.set_num_threads(1)
    parts, rounds, device = data(), [], options.device
    trained(parts, [0], 1, device)  # what is done once only
    by_hand(parts, 0, 1, device)
    for seed in range(count):
        rounds.append(one_round(parts, seed, members, epochs, device))
        log(f"round {seed}: {ratios(rounds, 'clock')[-1]:.2f} times faster")
    text = page(rounds, members, epochs, device, load)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
