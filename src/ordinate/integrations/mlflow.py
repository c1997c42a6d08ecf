"""MLflow: results in its runs, their metrics with confidence bounds, their tables, their page.

Needs MLflow: `pip install mlflow`, or `mlflow-skinny`.
"""

import math
import re
import tempfile
from pathlib import Path
from typing import Any

from ordinate.errors import MissingExtra
from ordinate.results.base import Result
from ordinate.results.thresholds import list_scores

__all__ = ["log_evaluation"]

NOT_IN_NAMES = re.compile(r"[^\w.\- :/]+")  # what MLflow refuses in the name of a metric


def log_evaluation(
    result: Result, prefix: str = "", *, step: int | None = None, folder: str = "ordinate"
) -> dict[str, float]:
    """Log a result in the active run of MLflow, or in a new one, and return the metrics logged.

    Each metric is logged as `mae`, with its confidence bounds as `mae.low` and `mae.high`; an
    undefined one is no metric but a tag, `mae.undefined`, with the reason. The tables are CSV
    files, and the report an HTML page and JSON, in `folder` among the artefacts. `prefix` stands
    before every name, such as 'test/'; signs that MLflow refuses in names become _.
    """
    try:
        import mlflow  # noqa: PLC0415 - it is no part of the environment of most who read this
    except ImportError:
        raise MissingExtra("Logging takes MLflow: pip install mlflow") from None
    logged: dict[str, float] = {}
    reasons: dict[str, Any] = {}
    for score in list_scores(result):
        name = NOT_IN_NAMES.sub("_", prefix + score.metric.expression).strip("_")
        if score.is_undefined:
            reasons[f"{name}.undefined"] = score.reason or "undefined"
            continue
        logged[name] = score.value
        if score.has_interval:
            ends = {f"{name}.low": score.low, f"{name}.high": score.high}
            logged |= {end: x for end, x in ends.items() if math.isfinite(x)}  # not an open side
    mlflow.log_metrics(logged, step=step)
    mlflow.set_tags(reasons)
    with tempfile.TemporaryDirectory() as temporary:
        _write_files(result, Path(temporary))
        mlflow.log_artifacts(temporary, folder)
    return logged


def _write_files(result: Result, folder: Path) -> None:
    for suffix in ("html", "json"):
        result.save(folder / f"report.{suffix}")
    for name, records in result.list_tables().items():
        if records:
            (folder / f"{name}.csv").write_text(result.to_csv(name), encoding="utf-8")
