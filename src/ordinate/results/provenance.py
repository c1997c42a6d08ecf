"""What a report is made of: the calls of pure functions behind it, as plain values and back.

A result that was made from summaries knows the call that made it (`record_call`); its arguments
are summaries, settings, names, or results that were made so themselves. Any other result is
carried as it is shown. Only functions and classes that are named here are ever called.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, singledispatch
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from ordinate.errors import BadInput, shorten
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.catalogue import SUMMARY_TYPES, get_summary_type
from ordinate.render import Document, Grid, StoreText
from ordinate.render.charts import Chart
from ordinate.render.document import Variants
from ordinate.render.packed_text import MOST_UNPACKED, pack_text
from ordinate.results.base import SCHEMA, Record, Result, to_json_label
from ordinate.scale import Scale
from ordinate.summaries import Summary

VERSION = version("ordinate")
TAG = "$"  # the key of what is no plain value: says what it is
LARGEST_MADE_OF = 200_000  # letters that a report carries, packed if need be; more have a file
MOST_RESAMPLES = 100_000  # that a report may ask for
CALL, ARRAY, MAPPING, NUMBER = "call", "array", "mapping", "number"

# Results are made by these functions, which are pure.
FUNCTIONS = {
    "Calibration.from_blocks": "ordinate.results.calibration",
    "CaseAverages.from_batches": "ordinate.results.case_averages",
    "Comparison.from_panel": "ordinate.results.comparison",
    "Evaluation.add_calibration": "ordinate.results.evaluation",
    "Evaluation.from_summary": "ordinate.results.evaluation",
    "RecalibrationEvaluation.from_blocks": "ordinate.results.recalibration",
    "RegressionEvaluation.add_parts": "ordinate.results.regression",
    "RegressionEvaluation.add_prediction_intervals": "ordinate.results.regression",
    "RegressionEvaluation.from_parts": "ordinate.results.regression",
    "RegressionEvaluation.replace_estimates": "ordinate.results.regression",
    "Result.replace_fields": "ordinate.results.base",
    "SampleSizePlan.from_panel": "ordinate.results.sample_size",
    "ShiftEvaluation.from_evaluations": "ordinate.results.distribution_shift",
    "evaluate_metrics": "ordinate.meta.meta_evaluation",
}
SUMMARIES = {
    "ConfusionMatrix": ("ordinate.summaries.confusion", "confusion matrices"),
    "Moments": ("ordinate.summaries.regression", "moments of targets and predictions"),
    "Panel": ("ordinate.summaries.panel", "counts of gold and predicted levels by system"),
    "PredictionIntervals": (
        "ordinate.summaries.prediction_intervals",
        "sums over prediction intervals",
    ),
    "Reliability": ("ordinate.summaries.reliability", "sums over predicted probabilities"),
}
SETTINGS = {
    "CaseBatch": "ordinate.results.case_averages",
    "Cases": "ordinate.results.case_averages",
    "ComparisonSettings": "ordinate.results.comparison_settings",
    "ConfidenceIntervals": "ordinate.inference.confidence_intervals",
    "Manifest": "ordinate.tuning.experiment.manifest",
    "Normalization": "ordinate.summaries.normalization",
    "Origin": "ordinate.results.base",
    "ReportPart": "ordinate.results.report_parts",
    "SampleSizeSettings": "ordinate.results.sample_size",
}
# What no summary in the report gives: it is shown again as it is carried.
CARRIED = {
    "CarriedReport": ("ordinate.results.provenance", "parts that no summary gives"),
    "ColumnShift": ("ordinate.results.distribution_shift", "shifts of columns"),
    "ConstantTest": ("ordinate.inference.constant_tests", "tests computed from items"),
    "LossTests": ("ordinate.inference.constant_tests", "tests computed from items"),
    "Estimate": ("ordinate.inference.estimates", "values and intervals computed from items"),
}
SHOWN = {
    "Axis": "ordinate.render.charts",
    "Bar": "ordinate.render.charts",
    "Cell": "ordinate.render.charts",
    "Chart": "ordinate.render.charts",
    "Document": "ordinate.render.document",
    "Grid": "ordinate.render.document",
    "Line": "ordinate.render.charts",
    "Panel of a chart": "ordinate.render.charts",
    "Point": "ordinate.render.charts",
    "Rule": "ordinate.render.charts",
    "Text": "ordinate.render.charts",
}
MODULES = {
    **{name: module for table in (SUMMARIES, CARRIED) for name, (module, _) in table.items()},
    **SETTINGS,
    **SHOWN,
}


@dataclass(frozen=True, repr=False, eq=False)
class CarriedReport(Result):
    """A report as it is shown, where no summary gives it: its document, charts and JSON."""

    shown: Document
    charts: tuple[Chart, ...]
    values: Record

    @classmethod
    def of(cls, result: Result) -> "CarriedReport":
        """Return what is shown of a result."""
        return cls(result.document(), tuple(result.list_charts()), result.to_dict())

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
    made_with = {"ordinate": VERSION, "numpy": np.__version__, "schema": SCHEMA}
    stored: Record
    packed = ""
    if LARGEST_MADE_OF < len(text) <= MOST_UNPACKED:
        packed = pack_text(text)  # most sums of probabilities are 0
    if len(text) <= LARGEST_MADE_OF:
        stored = {"made_of": json.loads(text)}
    elif packed and len(packed) <= LARGEST_MADE_OF:
        stored = {"packed": packed}
    elif store is not None:
        stored = {"file": store(_write({"packed": packed}) if packed else text)}
    else:
        stored = {"left_out": f"{len(text):,} letters are too many; with -o they have a file"}
    return made_with | stored | {"sha256": compute_checksum(made_with, made_of)}


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
    {'level': 0.95, 'margin': {'$': 'number', 'value': 'inf'}}
    """
    if is_dataclass(value):
        values = {x.name: getattr(value, x.name) for x in fields(value)}
        return {TAG: _find_tag(type(value))} | _dump_fields(values)
    if isinstance(value, Iterable):
        return [dump_value(x) for x in value]
    return to_json_label(value)  # a label that JSON does not know, as it is shown


@dump_value.register(type(None))
@dump_value.register(bool)
@dump_value.register(int)
@dump_value.register(str)
def _dump_plain(value: Any) -> Any:
    return value


@dump_value.register
def _dump_float(value: float) -> Any:
    return float(value) if math.isfinite(value) else {TAG: NUMBER, "value": repr(float(value))}


@dump_value.register
def _dump_scalar(value: np.generic) -> Any:
    return dump_value(value.item())


@dump_value.register
def _dump_array(value: np.ndarray) -> Record:
    return {TAG: ARRAY, "values": _dump_numbers(value.tolist())}


@dump_value.register
def _dump_mapping(value: Mapping) -> Record:  # type: ignore[type-arg] # of anything
    if TAG not in value and all(type(key) is str for key in value):
        return _dump_fields(value)
    return {TAG: MAPPING, "items": [[dump_value(k), dump_value(x)] for k, x in value.items()]}


@dump_value.register
def _dump_tuple(value: tuple) -> Any:  # type: ignore[type-arg] # of anything
    if hasattr(value, "_asdict"):
        return {TAG: _find_tag(type(value))} | _dump_fields(value._asdict())
    return [dump_value(x) for x in value]


@dump_value.register
def _dump_result(value: Result) -> Record:
    if value.made_by is None:
        carried = value if isinstance(value, CarriedReport) else CarriedReport.of(value)
        shown = {x.name: getattr(carried, x.name) for x in fields(carried)}
        return {TAG: CarriedReport.__name__} | _dump_fields(shown)
    function, arguments = value.made_by
    return {TAG: CALL, "function": function, "arguments": _dump_fields(arguments)}


@dump_value.register
def _dump_summary(value: Summary) -> Record:
    return {TAG: type(value).__name__} | _dump_numbers(value.to_dict())


@dump_value.register
def _dump_metric(value: Metric) -> Record:
    inputs = {name: of for of, (name, *_) in SUMMARY_TYPES.items()}
    return {TAG: "Metric", "expression": value.expression, "of": inputs[value.summary.__name__]}


@dump_value.register
def _dump_scale(value: Scale) -> Record:
    labels, positions = (_dump_numbers(list(x)) for x in (value.labels, value.at))
    return {TAG: "Scale", "labels": labels, "positions": positions, "names": list(value.names)}


@dump_value.register
def _dump_variants(value: Variants) -> Record:
    return {TAG: "Variants", "blocks": [[x, dump_value(value.make(x))] for x in value.metrics]}


def _dump_fields(values: Mapping[str, Any]) -> Record:
    return {name: dump_value(x) for name, x in values.items()}


def _dump_numbers(value: Any) -> Any:
    """Return plain values in which no number is undefined; most need no change."""
    try:
        json.dumps(value, allow_nan=False, default=to_json_label)
    except ValueError:
        return _replace_undefined(value)
    return value


def _replace_undefined(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _replace_undefined(x) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_undefined(x) for x in value]
    return dump_value(value) if isinstance(value, float) else value


def _find_tag(cls: type) -> str:
    """Return the name under which a class is carried."""
    tags = {f"{module}.{_get_class_name(tag)}": tag for tag, module in MODULES.items()}
    name = f"{cls.__module__}.{cls.__qualname__}"
    if name not in tags:
        raise TypeError(f"{name} is not among what a report may be made of.")
    return tags[name]


def _get_class_name(tag: str) -> str:
    return tag.partition(" ")[0]  # "Panel of a chart" is a Panel, too


# --- and back ------------------------------------------------------------------------------------


def load_value(data: Any) -> Any:
    """Return what `dump_value` described; sequences are tuples."""
    if isinstance(data, list):
        return tuple(load_value(x) for x in data)
    if not isinstance(data, Mapping):
        return data
    if TAG not in data:
        return {name: load_value(x) for name, x in data.items()}
    tag, values = data[TAG], {name: x for name, x in data.items() if name != TAG}
    if not isinstance(tag, str):
        raise BadInput(f"A report is made of nothing that is called {shorten(tag)}.")
    if tag in SUMMARIES:
        return _load_class(tag).from_dict(_load_numbers(values))
    if tag in LOADERS:
        return LOADERS[tag](values)
    if tag not in MODULES:
        raise BadInput(f"A report is made of nothing that is called {shorten(tag)}.")
    loaded = {name: load_value(x) for name, x in values.items()}
    if tag in SETTINGS:
        _check_resamples(loaded)
    return _load_class(tag)(**loaded)


def _check_resamples(values: Mapping[str, Any]) -> None:
    resamples = values.get("resamples")
    if isinstance(resamples, int) and resamples > MOST_RESAMPLES:
        raise BadInput(f"{resamples:,} resamples are more than a report is made again with.")


@cache
def _load_class(tag: str) -> Any:
    return getattr(import_module(MODULES[tag]), _get_class_name(tag))


def _load_numbers(value: Any) -> Any:
    """Return the plain values of a summary, undefined numbers among them."""
    if isinstance(value, Mapping):
        if TAG in value:
            return load_value(value)
        return {name: _load_numbers(x) for name, x in value.items()}
    return [_load_numbers(x) for x in value] if isinstance(value, list) else value


def _load_call(values: Mapping[str, Any]) -> Result:
    """Make a result by the call that made it."""
    function = values["function"]
    if function not in FUNCTIONS:
        raise BadInput(f"No report is made by {shorten(function)}.")
    made: Any = import_module(FUNCTIONS[function])
    for name in function.split("."):
        made = getattr(made, name)
    arguments = load_value(values["arguments"])
    _check_resamples(arguments)
    result: Result = made(**arguments)
    return result


def _load_number(values: Mapping[str, Any]) -> float:
    numbers = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    return numbers[values["value"]]


def _load_variants(values: Mapping[str, Any]) -> Variants:
    blocks: dict[str, list[str | Grid]] = {
        name: list(load_value(blocks)) for name, blocks in values["blocks"]
    }
    return Variants(tuple(blocks), blocks.__getitem__)


LOADERS = {
    ARRAY: lambda values: np.array(_load_numbers(values["values"])),
    CALL: _load_call,
    MAPPING: lambda values: {load_value(k): load_value(x) for k, x in values["items"]},
    NUMBER: _load_number,
    "Metric": lambda values: find_metric(values["expression"], get_summary_type(values["of"])),
    "Scale": lambda values: Scale(
        _load_numbers(values["labels"]),
        positions=_load_numbers(values["positions"]),
        names=values["names"],
    ),
    "Variants": _load_variants,
}


def list_tags(data: Any) -> dict[str, None]:
    """Return the names of all that is not plain in what a report is made of."""
    found: dict[str, None] = {}
    waiting = [data]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get(TAG), str):
                found[part[TAG]] = None
            waiting += part.values()
        elif isinstance(part, list):
            waiting += [x for x in part if isinstance(x, (Mapping, list))]
    return found
