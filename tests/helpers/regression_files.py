"""Files of targets and predictions, and what long doubles and NumPy compute from their items."""

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from row_files import to_csv, to_jsonl, to_parquet

from ordinate.metrics import find_metric
from ordinate.readers.columns import ItemColumns
from ordinate.summaries.regression import Moments

LONG = np.longdouble
METRICS = ("rmse", "mae", "r2", "bias", "pearson", "ccc", "explained_variance", "max_error")


def write(name: str, content: "str | bytes") -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def name_columns(
    target=None, predicted=None, weights=None, by=None, groups=None, lower=None, upper=None, **more
) -> ItemColumns:
    columns = {"target": target, "predicted": predicted, "weights": weights, "by": by}
    return ItemColumns(**columns, groups=groups, lower=lower, upper=upper, **more)


def value(name: str, table: Moments) -> float:
    return float(find_metric(name, Moments)(table))


def items(n: int = 400, seed: int = 5, *, shift: float = 0.0, scale: float = 1.0) -> list[dict]:
    """Return items with everything that a file may say of them."""
    rng = np.random.default_rng(seed)
    rows = []
    for k, time in enumerate(rng.permutation(n).tolist()):
        y = shift + scale * float(rng.normal(3.0, 2.0))
        p = y + scale * float(rng.normal(0.2, 0.7))
        low, high = sorted(p + scale * rng.normal(0.0, 1.2, 2))
        rows.append(
            {
                "id": f"i{k}",
                "y": y,
                "pred": p,
                "weight": float(rng.integers(0, 9)) / 4,
                "site": f"s{rng.integers(0, 12)}",
                "season": ("dry", "wet", None)[rng.integers(0, 3)],
                "low": -math.inf if k % 50 == 7 else float(low),
                "high": math.inf if k % 60 == 7 else float(high),
                "hour": time,
                "note": 'a, "b"\nc; d',
            }
        )
    return rows


FORMS = {
    "data.csv": to_csv,
    "semicolon.csv": lambda rows: to_csv(rows, delimiter=";"),
    "data.tsv": lambda rows: to_csv(rows, delimiter="\t"),
    "data.csv.gz": lambda rows: gzip.compress(to_csv(rows)),
    "data.jsonl": to_jsonl,
    "data.jsonl.gz": lambda rows: gzip.compress(to_jsonl(rows)),
    "data.parquet": to_parquet,
}


# --- long doubles --------------------------------------------------------------------------------


def column(rows: list[dict], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows], LONG)


def read_back(path: str) -> list[dict]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def oracle(rows: list[dict], *, weighted: bool = False) -> dict[str, float]:
    """Return metrics from the items themselves."""
    y, p = column(rows, "y"), column(rows, "pred")
    w = column(rows, "weight") if weighted else np.ones(len(y), LONG)
    e, total = p - y, w.sum()

    def mean(x):
        return (w * x).sum() / total

    d, f, g = y - mean(y), e - mean(e), p - mean(p)
    square, var, var_p = mean(e * e), mean(d * d), mean(g * g)
    together = mean(d * g)
    found = {
        "rmse": np.sqrt(square),
        "mae": mean(abs(e)),
        "r2": 1 - square / var,
        "bias": mean(e),
        "pearson": together / np.sqrt(var * var_p),
        "ccc": 2 * together / (var + var_p + mean(e) ** 2),
        "explained_variance": 1 - mean(f * f) / var,
        "max_error": abs(e[w > 0]).max(),
        "baseline_mae": mean(abs(d)),
        "baseline_rmse": np.sqrt(var),
    }
    return {name: float(x) for name, x in found.items()}


def close(table: Moments, expected: dict[str, float], rel: float = 1e-10) -> None:
    for name, wanted in expected.items():
        assert value(name, table) == pytest.approx(wanted, rel=rel), name


def moments(rows: list[dict], *, weighted: bool = False, **options) -> Moments:
    """Return the summary that NumPy makes of the same items."""
    w = [row["weight"] for row in rows] if weighted else None
    y, p = ([row[name] for row in rows] for name in ("y", "pred"))
    return Moments.of(y, p, w, histogram=True, **options)


def same(one: Moments, two: Moments, rel: float = 1e-10) -> None:
    """Hold that two summaries have the same sums, relative to what is summed up."""
    assert np.array_equal(one.items, two.items)
    assert one.shape == two.shape
    assert one.counted == two.counted
    for mine, theirs in ((one.plain, two.plain), (one.squared, two.squared)):
        there = np.asarray(two.items) > 0
        scale = [_root(theirs.sums[..., 4, 0][there]), _root(theirs.sums[..., 0, 4][there])]
        assert mine.y[there] == pytest.approx(theirs.y[there], rel=rel)
        for a in range(5):
            for b in range(5 - a):
                unit = np.maximum(theirs.weight[there], 1.0) * scale[0] ** a * scale[1] ** b
                gap = abs(mine.sums[..., a, b][there] - theirs.sums[..., a, b][there])
                assert np.all(gap <= rel * unit), (a, b)
    for name in ("absolute", "absolute_squared", "largest", "squares"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=rel), name
    assert one.constants == pytest.approx(two.constants, rel=1e-14)
    for name in one.constants:
        assert one.spread[name] == pytest.approx(two.spread[name], rel=rel)
    binned(one, two)


def _root(sums: np.ndarray) -> np.ndarray:
    return np.maximum(sums, 1e-300) ** 0.25


def binned(one: Moments, two: Moments) -> None:
    """Hold that histograms are equal, whatever bins are empty."""
    assert (one.histogram is None) == (two.histogram is None)
    for k in {**(one.histogram or {}), **(two.histogram or {})}:
        mine, theirs = ((table.histogram or {}).get(k, 0.0) for table in (one, two))
        assert np.allclose(mine, theirs, rtol=1e-12), k
