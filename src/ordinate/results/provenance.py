"""What a report is made of: the calls of pure functions behind it, as plain values and back.

A result that was made from summaries knows the call that made it (`record_call`); its arguments
are summaries, settings, names, or results that were made so themselves. Any other result is
carried as it is shown. A call is written as `{"$": "module:function", argument: value, …}`, and so
is a value, by its class and its fields. Functions that record their calls and classes that are
named here make a report, and nothing else is ever called.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, reduce, singledispatch
from importlib import import_module
from importlib.metadata import version
from types import NoneType
from typing import Any

import numpy as np

from ordinate.errors import BadInput, shorten
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.catalogue import SUMMARY_TYPES, get_summary_type
from ordinate.render import Document
from ordinate.render.charts import Chart
from ordinate.render.document import StoreText, Variants
from ordinate.render.packed_text import pack_text
from ordinate.results.base import RECORDED, SCHEMA, Record, Result, to_json_label
from ordinate.scale import Scale
from ordinate.summaries import Summary

VERSION = version("ordinate")
TAG = "$"  # the key of what is no plain value: says what makes it
LARGEST_MADE_OF = 200_000  # letters that a report carries, packed if need be; more have a file
MOST_RESAMPLES = 100_000  # that a report may ask for
NAMED_MAKER = re.compile(rf'"{re.escape(TAG)}":"([^"]*)"')  # no text has it: quotes are escaped
MODULE_AND_NAME = re.compile(r"([a-z]\w*(?:\.[a-z]\w*)*):([a-zA-Z]\w*(?:\.[a-z]\w*)?)")

SUMMARIES = {
    "summaries.confusion:ConfusionMatrix": "confusion matrices",
    "summaries.regression:Moments": "moments of targets and predictions",
    "summaries.panel:Panel": "counts of gold and predicted levels by system",
    "summaries.prediction_intervals:PredictionIntervals": "sums over prediction intervals",
    "summaries.reliability:Reliability": "sums over predicted probabilities",
}
# What no summary in the report gives: it is shown again as it is carried.
CARRIED = {
    "results.provenance:CarriedReport": "parts that no summary gives",
    "results.distribution_shift:ColumnShift": "shifts of columns",
    "inference.constant_tests:ConstantTest": "tests computed from items",
    "inference.constant_tests:LossTests": "tests computed from items",
    "inference.estimates:Estimate": "values and intervals computed from items",
}
SETTINGS = (
    "inference.confidence_intervals:ConfidenceIntervals",
    "results.base:Origin",
    "results.case_averages:CaseBatch",
    "results.case_averages:Cases",
    "results.comparison_settings:ComparisonSettings",
    "results.report_parts:ReportPart",
    "meta.meta_result:MetaEvaluationSettings",
    "results.sample_size:SampleSizeSettings",
    "scale.levels:Scale",
    "summaries.normalization:Normalization",
)
CHARTS = ("Axis", "Bar", "Cell", "Chart", "Line", "Panel", "Point", "Rule", "Text")
SHOWN = (
    "render.document:Document",
    "render.document:Grid",
    *(f"render.charts:{name}" for name in CHARTS),
)
CLASSES = {*SUMMARIES, *CARRIED, *SETTINGS, *SHOWN}


@dataclass(frozen=True, repr=False, eq=False)
class CarriedReport(Result):
    """A report as it is shown, where no summary gives it: its document, charts and JSON."""

    shown: Document
    charts: tuple[Chart, ...]
    values: Record

    def document(self) -> Document:
        """Return the report for people."""
        return self.shown

    def make_charts(self) -> Iterable[Chart]:
        """Return the views."""
        return self.charts

    def rows(self) -> list[Record]:
        """Return nothing: pages and JSON have no flat records."""
        return []

    def to_dict(self) -> Record:
        """Return plain values."""
        return self.values


def describe_provenance(result: Result, store: StoreText | None = None) -> Record:
    """Return what made a report, what it is made of, and the checksum of both."""
    made_of = dump_value(result)
    text = _write(made_of)
    found: Record = {"ordinate": VERSION, "numpy": np.__version__, "schema": SCHEMA}
    checksum = compute_checksum(found, made_of)
    if len(text) <= LARGEST_MADE_OF:
        found["made_of"] = json.loads(text)
    elif len(packed := pack_text(text)) <= LARGEST_MADE_OF:  # most sums of probabilities are 0
        found["packed"] = packed
    elif store is not None:
        found["file"] = store(_write({"packed": packed}))
    else:
        found["left_out"] = f"{len(text):,} letters are too many; with -o they have a file"
    return found | {"sha256": checksum}


def compute_checksum(made_with: Mapping[str, Any], made_of: Any) -> str:
    """Return the hash of what made a report, and of what it is made of, in any order of keys."""
    known = {name: made_with.get(name) for name in ("ordinate", "numpy", "schema")}
    return hashlib.sha256(_write([known, made_of], sort_keys=True).encode()).hexdigest()


def _write(values: Any, **options: Any) -> str:
    return json.dumps(
        values, allow_nan=False, separators=(",", ":"), default=to_json_label, **options
    )


# --- to plain values -----------------------------------------------------------------------------


@singledispatch
def dump_value(value: Any) -> Any:
    """Return plain values, from which `load_value` makes the same.

    >>> dump_value({"level": 0.95, "margin": float("inf")})
    {'level': 0.95, 'margin': {'$': 'float', 'value': 'inf'}}
    """
    if is_dataclass(value) or hasattr(value, "_fields"):
        names = [x.name for x in fields(value)] if is_dataclass(value) else value._fields
        return {TAG: _name_class(value)} | {
            name: dump_value(getattr(value, name)) for name in names
        }
    if isinstance(value, Iterable):
        return [dump_value(x) for x in value]
    return to_json_label(value)  # a label that JSON does not know, as it is shown


for plain_type in (NoneType, bool, int, str):
    dump_value.register(plain_type, lambda value: value)
dump_value.register(bytes, to_json_label)
dump_value.register(np.generic, lambda value: dump_value(value.item()))
dump_value.register(np.ndarray, lambda x: {TAG: "array", "values": _dump_numbers(x.tolist())})
dump_value.register(Summary, lambda x: {TAG: _name_class(x)} | _dump_numbers(x.to_dict()))


@dump_value.register
def _dump_float(value: float) -> Any:
    return float(value) if math.isfinite(value) else {TAG: "float", "value": repr(float(value))}


@dump_value.register
def _dump_mapping(value: Mapping) -> Record:  # type: ignore[type-arg] # of anything
    if TAG not in value and all(type(key) is str for key in value):
        return {name: dump_value(x) for name, x in value.items()}
    return _dump_call("dict", keys=list(value), values=list(value.values()))


@dump_value.register
def _dump_scale(value: Scale) -> Record:
    return _dump_call(
        "scale.levels:Scale", labels=value.labels, positions=list(value.at), names=value.names
    )


@dump_value.register
def _dump_metric(value: Metric) -> Record:
    inputs = {name: of for of, (name, *_) in SUMMARY_TYPES.items()}
    return _dump_call("Metric", expression=value.expression, of=inputs[value.summary.__name__])


@dump_value.register
def _dump_variants(value: Variants) -> Record:
    return _dump_call("Variants", blocks=[[name, value.make(name)] for name in value.metrics])


@dump_value.register
def _dump_result(value: Result) -> Record:
    if value.made_by is not None:
        return {TAG: value.made_by.function} | dump_value(value.made_by.arguments)
    shown, charts, values = value.document(), value.list_charts(), value.to_dict()
    return _dump_call("results.provenance:CarriedReport", shown=shown, charts=charts, values=values)


def _dump_call(maker: str, **arguments: Any) -> Record:
    return {TAG: maker} | {name: dump_value(x) for name, x in arguments.items()}


def _dump_numbers(value: Any) -> Any:
    """Return plain values in which no number is undefined; most need no change."""
    try:
        json.dumps(value, allow_nan=False, default=to_json_label)
    except ValueError:
        return dump_value(value)
    return value


def _name_class(value: Any) -> str:
    """Return the name under which a class is carried."""
    cls = type(value)
    name = f"{cls.__module__.removeprefix('ordinate.')}:{cls.__qualname__}"
    if name not in CLASSES:
        raise TypeError(f"{name} is not among what a report may be made of.")
    return name


# --- and back ------------------------------------------------------------------------------------


def load_value(data: Any) -> Any:
    """Return what `dump_value` described; sequences are tuples."""
    if isinstance(data, list):
        return tuple(load_value(x) for x in data)
    if not isinstance(data, Mapping):
        return data
    values = {name: load_value(x) for name, x in data.items() if name != TAG}
    if TAG not in data:
        return values
    resamples = values.get("resamples")
    if isinstance(resamples, int) and resamples > MOST_RESAMPLES:
        raise BadInput(f"{resamples:,} resamples are more than a report is made again with.")
    return _find_maker(str(data[TAG]))(**values)


@cache
def _find_maker(name: str) -> Callable[..., Any]:
    """Return what makes a value: a class that is named here, or what records its calls."""
    if name in PLAIN_MAKERS:
        return PLAIN_MAKERS[name]
    if parts := MODULE_AND_NAME.fullmatch(name):
        try:
            found: Any = reduce(getattr, parts[2].split("."), import_module(f"ordinate.{parts[1]}"))
        except (ImportError, AttributeError):
            found = None
        if name in SUMMARIES:
            return lambda **values: found.from_dict(values)
        if name in CLASSES or name in RECORDED:
            return found
    raise BadInput(f"No report is made by {shorten(name)}.")


def _make_array(values: Any) -> Any:
    return np.array(values)


def _make_variants(blocks: Iterable[tuple[str, Iterable[Any]]]) -> Variants:
    made = {name: list(parts) for name, parts in blocks}
    return Variants(tuple(made), made.__getitem__)


PLAIN_MAKERS: dict[str, Callable[..., Any]] = {
    "array": _make_array,
    "dict": lambda keys, values: dict(zip(keys, values, strict=True)),
    "float": lambda value: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[value],
    "Metric": lambda expression, of: find_metric(expression, get_summary_type(of)),
    "Variants": _make_variants,
}


def list_makers(made_of: Any) -> set[str]:
    """Return the names of all that makes a value in what a report is made of."""
    return set(NAMED_MAKER.findall(_write(made_of)))
