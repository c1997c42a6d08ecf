"""Small tables with a known law, for tests of regression models."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ordinate.tuning.regress.table import Table, make_table

if TYPE_CHECKING:  # heavy
    from ordinate.tuning.regress.settings import Settings
    from ordinate.tuning.regress.task import RegressionTask

LAW = "y = 10 + 3 a² + b c, with noise of 0.1"


def columns(n: int = 80, seed: int = 0, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return features [n, 3] and targets of the law."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 3))
    y = 10.0 + 3.0 * x[:, 0] ** 2 + x[:, 1] * x[:, 2] + rng.normal(0.0, noise, n)
    return x, y


def smooth(n: int = 80, seed: int = 0, noise: float = 0.1, groups: int | None = None) -> Table:
    """Return a table of the law, its rows in turn in so many groups."""
    x, y = columns(n, seed, noise)
    named = None if groups is None else [f"g{k % groups}" for k in range(n)]
    return make_table(x, y, names=["a", "b", "c"], target_name="y", groups=named)


def write(path: Path, n: int = 80, seed: int = 0, *, target: bool = True) -> Path:
    """Write the law as CSV."""
    x, y = columns(n, seed)
    names = ["a", "b", "c", "y"][: 4 if target else 3]
    rows = np.column_stack([x, y])[:, : len(names)]
    lines = [",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def open_task(table: Table, root: Path, settings: "Settings") -> "RegressionTask":
    """Return a task with one worker, as a search opens it."""
    from ordinate.tuning.experiment.workers import WorkerPool
    from ordinate.tuning.regress.lattice_features import detect_lattice
    from ordinate.tuning.regress.splits import split_table
    from ordinate.tuning.regress.task import RegressionTask

    return RegressionTask(
        root=root,
        table=table,
        split=split_table(table, 0),
        settings=settings,
        workers=WorkerPool(1),
        find_lattice=detect_lattice,
    )
