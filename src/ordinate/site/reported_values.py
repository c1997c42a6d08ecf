"""Reported values: what a stored report says of which system on which data, by kind of report."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, NotRequired, TypedDict

from ordinate.experiment.stored_json import decode
from ordinate.inference import Estimate
from ordinate.render.charts import shorten_label
from ordinate.render.estimates import format_count
from ordinate.results.base import Record
from ordinate.results.per_level import to_integer_if_whole

UNNAMED = "predicted"  # how evaluations call predictions that nobody named
LONGEST_SCALE = 60  # letters of a scale in a cell
WHERE = "its values"  # how a reason calls what a report has
CROSS_VALIDATION = "cross_validation"
TEST = "test_"
HELD_OUT, TEST_ERROR = "validation_rmse", "test_rmse"  # of searches of regression models


@dataclass(frozen=True)
class ReportedValue:
    """The value of a metric, of which system and on which data; `level` is that of its interval."""

    system: str
    metric: str
    direction: str
    estimate: Estimate
    data: str
    unit: str | None = None
    level: float | None = None


class _Value(TypedDict):
    value: float | None
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    unit: NotRequired[str | None]
    direction: NotRequired[str]


class _Board(TypedDict):
    direction: str
    systems: dict[str, _Value]


class _Source(TypedDict):
    gold: NotRequired[str]
    predicted: NotRequired[str]
    files: NotRequired[list[str]]


class _Evaluation(TypedDict):
    metrics: dict[str, _Value]
    source: NotRequired[_Source]
    n: NotRequired[float]
    scale: NotRequired[list[Any]]
    interval: NotRequired[float | None]


class _Comparison(TypedDict):
    metrics: dict[str, _Board]
    source: NotRequired[_Source]
    n: NotRequired[float]
    scale: NotRequired[list[Any]]
    level: NotRequired[float | None]


class _Ranking(TypedDict):
    tests: dict[str, _Comparison]


class _RegressionComparison(TypedDict):
    models: dict[str, dict[str, _Value]]
    directions: dict[str, str]
    n: float
    interval: float | None


class _SummaryValue(_Value):
    key: str


class _Winner(TypedDict):
    model: str
    sets: list[str]


class _SearchData(TypedDict):
    n: int
    path: NotRequired[str | None]  # None where it was a data frame
    training: NotRequired[list[str]]


class _Search(TypedDict):
    metric: str
    direction: str
    unit: str | None
    data: _SearchData
    winning: _Winner
    summary: list[_SummaryValue]


Values = Iterator[ReportedValue]


def list_values(report: Record, name: str) -> list[ReportedValue]:
    """Return what a report says of systems; `name` is that of a system without one."""
    return list(READERS[report["task"]](report, name)) if report.get("task") in READERS else []


def get_kind(report: Record) -> str:
    """Return what a report is called."""
    return KINDS.get(report.get("task", ""), str(report.get("task", "report")))


# --- by kind -------------------------------------------------------------------------------------


def _read_evaluation(report: Record, name: str) -> Values:
    found = decode(report, _Evaluation, WHERE)
    source = found.get("source", _Source())
    named = source.get("predicted", UNNAMED)
    system = name if named == UNNAMED else named
    data, level = _describe_data(found, source), found.get("interval")
    for metric, value in found["metrics"].items():
        yield _make_value(system, metric, value, data, level=level)


def _read_comparison(report: Record, name: str) -> Values:
    del name
    found = decode(report, _Comparison, WHERE)
    data = _describe_data(found, found.get("source", _Source()))
    for metric, board in found["metrics"].items():
        for system, value in board["systems"].items():
            made = _make_value(system, metric, value, data, level=found.get("level"))
            yield replace(made, direction=board["direction"])


def _read_ranking(report: Record, name: str) -> Values:
    for test in decode(report, _Ranking, WHERE)["tests"].values():
        yield from _read_comparison(dict(test), name)


def _read_regression_comparison(report: Record, name: str) -> Values:
    del name
    found = decode(report, _RegressionComparison, WHERE)
    data = format_count(to_integer_if_whole(found["n"]))
    for system, metrics in found["models"].items():
        for metric, value in metrics.items():
            made = _make_value(system, metric, value, data, level=found["interval"])
            yield replace(made, direction=found["directions"].get(metric, ""))


def _read_search(report: Record, name: str) -> Values:
    """Yield the value by which models were selected, and that of each test."""
    found = decode(report, _Search, WHERE)
    data, winner = found["data"], found["winning"]
    system = "/".join([*winner["sets"], winner["model"]])
    files = data.get("training") or [PurePath(data.get("path") or name).name]
    trained = f"{', '.join(files)}, {format_count(data['n'])}"
    for value in found["summary"]:
        key = value["key"]
        if key in {CROSS_VALIDATION, HELD_OUT}:
            where = f"{trained}, held out in the search"
        elif key == TEST_ERROR:
            where = f"{trained}, test"
        elif key.startswith(TEST) and report["task"] == "tune":
            where = key.removeprefix(TEST)
        else:
            continue
        made = _make_value(system, found["metric"], value, where, level=0.95)
        yield replace(made, direction=found["direction"])


READERS: dict[str, Callable[[Record, str], Values]] = {
    "labels": _read_evaluation,
    "case averages": _read_evaluation,
    "compare": _read_comparison,
    "rank": _read_ranking,
    "regression": _read_evaluation,
    "compare_regression": _read_regression_comparison,
    "tune": _read_search,
    "tune_regression": _read_search,
}
KINDS = {
    "labels": "evaluation",
    "compare": "comparison",
    "compare_regression": "regression comparison",
    "rank": "ranking",
    "power": "sample size",
    "decode": "decoding",
    "beside": "shifted test set",
    "meta": "meta-evaluation",
    "tune": "experiment",
    "tune_regression": "experiment",
    "analyze_search": "analysis of a search",
}


# --- parts ---------------------------------------------------------------------------------------


def _make_value(
    system: str, metric: str, value: _Value, data: str, *, level: float | None
) -> ReportedValue:
    bounds = (value["value"], value.get("low"), value.get("high"))
    found, low, high = (math.nan if x is None else x for x in bounds)
    return ReportedValue(
        system,
        metric,
        value.get("direction", ""),
        Estimate(found, low, high, None),
        data,
        value.get("unit"),
        level,
    )


def _describe_data(report: _Evaluation | _Comparison, source: _Source) -> str:
    """Return which items these are: reports that agree in it are of the same data."""
    files, scale = source.get("files", []), report.get("scale", [])
    parts = [PurePath(files[0]).name] if files else []
    parts += [source.get("gold", "gold")] if files else []
    parts += [format_count(to_integer_if_whole(report["n"]))] if "n" in report else []
    parts += [shorten_label(" < ".join(map(str, scale)), LONGEST_SCALE)] if scale else []
    return ", ".join(parts)
