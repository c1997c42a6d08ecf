"""What a search of all small cases found about the metrics, and how it is told in a line.

`known_properties.json` is written by `make properties`.
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ordinate.metrics.catalogue import CATALOGUE, Metric, find
from ordinate.summaries import Confusion

Cell = dict[str, Any]  # what was found about a metric and a property
FORMAL = ("invariance", "unused_level", "monotonicity", "imbalance")  # which tables show
VERDICTS = {
    "violated": "violated",
    "tie_only": "ties",
    "not_violated": "not violated",
    "undefined": "undefined",
}


@cache
def _shipped() -> dict[str, Any]:
    text = files(__package__).joinpath("known_properties.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def verified(metric: Metric) -> dict[str, Any] | None:
    """Return the number of tables that were tried and what was found, if anybody searched.

    `properties` has what was found, by property.
    """
    name, found = plain(metric).expression, _shipped()
    if metric.summary is not Confusion or name not in found["properties"]:
        return None
    return {"tables": found["tables"][name], "properties": found["properties"][name]}


def plain(metric: Metric) -> Metric:
    """Return a metric by its own name, without options that are the defaults."""
    as_usual = metric.required == [] and all(
        metric.defaults.get(key) == value for key, value in metric.options.items()
    )
    name = metric.alias_of or metric.name
    return (
        find(name, metric.summary) if as_usual and (name, metric.summary) in CATALOGUE else metric
    )


def properties_of(metric: Metric) -> dict[str, Cell]:
    """Return what was found about a metric by property: nothing if nobody searched."""
    found = verified(metric)
    return found["properties"] if found else {}


def in_a_line(example: Cell) -> str:
    """Return a counterexample in one line that a person can check by hand.

    >>> in_a_line({"scale": [1, 2, 3], "gold": [1, 2], "before": [3, 2], "after": [2, 2],
    ...            "values": [0.5, 0.5], "scale_after": None, "gold_after": None})
    'levels 1..3: gold 1 2, output 3 2 -> 2 2: 0.5 -> 0.5'
    """
    before, after = (_several(example[side]) for side in ("before", "after"))
    old, new = _told_apart(*map(float, example["values"]))
    start = f"levels {_levels(example['scale'])}: gold {_several(example['gold'])}, output {before}"
    if example["gold_after"] is None:
        return f"{start} -> {after}: {old} -> {new}"
    levels = _levels(example["scale_after"])
    return (
        f"{start}: {old} -> levels {levels}: gold {_several(example['gold_after'])}, output "
        f"{after}: {new}"
    )


def _several(labels: Sequence[float]) -> str:
    return " ".join(f"{label:g}" for label in labels)


def _levels(labels: Sequence[float]) -> str:
    in_steps = list(labels) == list(range(1, len(labels) + 1))
    return f"1..{len(labels)}" if in_steps else _several(labels)


def _told_apart(first: float, second: float) -> tuple[str, str]:
    """Return two values with as many digits as tell them apart, four to ten."""
    for digits in range(4, 11):
        shown = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if shown[0] != shown[1] or first == second:
            break
    return shown
