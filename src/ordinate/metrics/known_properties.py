"""Known formal properties of the metrics, found by a search of all small cases.

`known_properties.json` is written by `make properties`.
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ordinate.metrics.catalogue import CATALOGUE, Metric, find_metric
from ordinate.summaries import ConfusionMatrix

PropertyRecord = dict[str, Any]  # the finding about a metric and a property
FORMAL_PROPERTIES = ("invariance", "unused_level", "monotonicity", "imbalance")
VERDICT_NAMES = {
    "violated": "violated",
    "tie_only": "ties",
    "not_violated": "not violated",
    "undefined": "undefined",
}


@cache
def _load_shipped_properties() -> dict[str, Any]:
    text = files(__package__).joinpath("known_properties.json").read_text(encoding="utf-8")
    shipped: dict[str, Any] = json.loads(text)
    return shipped


def find_verification(metric: Metric) -> dict[str, Any] | None:
    """Return the number of matrices that were tried and the findings by property, if searched."""
    name, shipped = drop_default_options(metric).expression, _load_shipped_properties()
    if metric.summary is not ConfusionMatrix or name not in shipped["properties"]:
        return None
    return {"tables": shipped["tables"][name], "properties": shipped["properties"][name]}


def drop_default_options(metric: Metric) -> Metric:
    """Return a metric by its own name, without options that are the defaults."""
    defaults_only = metric.required == [] and all(
        metric.defaults.get(key) == value for key, value in metric.options.items()
    )
    name = metric.alias_of or metric.name
    return (
        find_metric(name, metric.summary)
        if defaults_only and (name, metric.summary) in CATALOGUE
        else metric
    )


def find_properties(metric: Metric) -> dict[str, PropertyRecord]:
    """Return the findings about a metric by property: nothing if nobody searched."""
    verification = find_verification(metric)
    return verification["properties"] if verification else {}


def format_counterexample(example: PropertyRecord) -> str:
    """Return a counterexample in one line that a person can check by hand.

    >>> example = {"scale": [1, 2, 3], "gold": [1, 2], "before": [3, 2], "after": [2, 2],
    ...            "values": [0.5, 0.5], "scale_after": None, "gold_after": None}
    >>> format_counterexample(example)
    'levels 1..3: gold 1 2, output 3 2 -> 2 2: 0.5 -> 0.5'
    """
    before, after = (_format_labels(example[side]) for side in ("before", "after"))
    old, new = _format_distinct_values(*map(float, example["values"]))
    levels, gold = _format_levels(example["scale"]), _format_labels(example["gold"])
    start = f"levels {levels}: gold {gold}, output {before}"
    if example["gold_after"] is None:
        return f"{start} -> {after}: {old} -> {new}"
    levels = _format_levels(example["scale_after"])
    return (
        f"{start}: {old} -> levels {levels}: gold {_format_labels(example['gold_after'])}, output "
        f"{after}: {new}"
    )


def _format_labels(labels: Sequence[float]) -> str:
    return " ".join(f"{label:g}" for label in labels)


def _format_levels(labels: Sequence[float]) -> str:
    in_steps = list(labels) == list(range(1, len(labels) + 1))
    return f"1..{len(labels)}" if in_steps else _format_labels(labels)


def _format_distinct_values(first: float, second: float) -> tuple[str, str]:
    """Return two values with as many digits as tell them apart, four to ten."""
    for digits in range(4, 11):
        shown = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if shown[0] != shown[1] or first == second:
            break
    return shown
