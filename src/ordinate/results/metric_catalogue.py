"""The catalogue for people: all metrics in a grid, or one on a page."""

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from ordinate.metrics import SUMMARY_TYPES, Metric, find_metric, get_summary_type, list_metrics
from ordinate.metrics.catalogue import OWN_FAMILY, is_known_metric, list_choices
from ordinate.metrics.known_properties import (
    FORMAL_PROPERTIES,
    VERDICT_NAMES,
    find_properties,
    format_counterexample,
)
from ordinate.metrics.references import REFERENCES
from ordinate.render import Block, Document
from ordinate.render.estimates import format_count
from ordinate.render.tables import NAME, Column, Kind, Table
from ordinate.results.base import BETTER_VALUES, Record, Result
from ordinate.results.evaluation import make_proximity_grid
from ordinate.summaries import ConfusionMatrix

ASSUMPTION_TEXTS = {  # how a metric takes the levels
    "equal steps": "Assumes equal steps between the levels.",
    "order": "Uses only the order of the levels.",
    "names": "Ignores the order of the levels.",
}
VERDICT_SYMBOLS = {"not_violated": "·", "tie_only": "=", "violated": "×", "undefined": "?"}
TITLES = {
    "labels": "Metrics of ordered labels",
    "probabilities": "Metrics of probabilities",
    "regression": "Metrics of regression",
    "intervals": "Metrics of prediction intervals",
    "ensembles": "Metrics of ensembles",
}
PROXIMITY_EXAMPLE = ([[10, 0, 0], [0, 60, 0], [0, 0, 30]], "negative,neutral,positive")
LEGEND = (
    f"Formal: {', '.join(FORMAL_PROPERTIES).replace('_', ' ')}; · not violated by any small case "
    "(which is no proof), = ties, × violated, ? undefined. `ordinate properties` shows "
    "counterexamples."
)


class _Fact(Kind):
    """Facts, of which flat records have lists and dictionaries as text."""

    def make_record(self, key: str, value: Any) -> Record:
        if isinstance(value, dict):
            value = " ".join(f"{name}={item!r}" for name, item in value.items())
        elif isinstance(value, list):
            value = " ".join("" if item is None else str(item) for item in value)
        return {key: value}


@dataclass(frozen=True, repr=False, eq=False)
class MetricCatalogue(Result):
    """What is known about some metrics."""

    metrics: tuple[Metric, ...]
    kind: str = "labels"  # of what the metrics are: see `SUMMARY_TYPES`

    @classmethod
    def list_all(cls, kind: str = "labels") -> "MetricCatalogue":
        """Return every metric of a kind, such as labels or regression."""
        return cls(tuple(list_metrics(get_summary_type(kind))), kind)

    @classmethod
    def of(cls, name: str, kind: str | None = None) -> "MetricCatalogue":
        """Return one metric: of a kind, or of the first that has it."""
        kinds = [*SUMMARY_TYPES] if kind is None else [kind]
        found = next((kind for kind in kinds if is_known_metric(name, kind)), kinds[0])
        return cls((find_metric(name, get_summary_type(found)),), found)

    def to_dict(self) -> Record:
        """Return plain values, by name."""
        return {
            "schema": 1,
            "metrics": {metric.name: _collect_facts(metric) for metric in self.metrics},
        }

    def tables(self) -> Iterable[Table]:
        """Return the metrics, which people see family by family."""
        of_labels = self.metrics[0].summary is ConfusionMatrix
        records = [_summarize(metric) | _collect_facts(metric) for metric in self.metrics]
        facts = [x for x in _collect_facts(self.metrics[0]) if x != "explanation"]
        columns = (
            Column("metric", kind=NAME),
            Column("better", kind=NAME, stored=False),
            Column("range", kind=NAME, stored=False),
            Column("levels as", kind=NAME, shown=of_labels, stored=False, optional=True),
            Column("formal", kind=NAME, shown=of_labels, stored=False, optional=True),
            Column("what it says", kind=NAME, stored=False),
            *(Column(key, kind=_Fact(), shown=False) for key in facts),
        )
        yield Table("metrics", str.capitalize, columns, records, by="family")

    def document(self) -> Document:
        """Return a page for one metric, or a grid of several."""
        if len(self.metrics) == 1:
            return _make_page(self.metrics[0])
        grids = tuple(self.get_table("metrics").grids())
        verdict = (
            f"{len(self.metrics)} metrics in {format_count(len(grids), 'family', 'families')}; "
            "`ordinate metrics NAME` explains one of them."
        )
        legend = (LEGEND,) if self.kind == "labels" else ()
        return Document(TITLES[self.kind], grids, verdict, legend)


def _summarize(metric: Metric) -> Record:
    """Return what people read of a metric among others."""
    return {
        "metric": metric.name,
        "better": BETTER_VALUES[metric.direction],
        "range": format_range(metric),
        "levels as": _find_assumption(metric),
        "formal": _format_formal_properties(metric),
        "what it says": metric.title
        + (f" Also: {', '.join(metric.aliases)}." if metric.aliases else ""),
    }


def _format_formal_properties(metric: Metric) -> str:
    found = find_properties(metric)
    return (
        "".join(VERDICT_SYMBOLS[found[law]["verdict"]] for law in FORMAL_PROPERTIES)
        if found
        else ""
    )


def _collect_facts(metric: Metric) -> dict[str, Any]:
    low, high = (None if abs(bound) == float("inf") else bound for bound in metric.bounds)
    return {
        "title": metric.title,
        "family": metric.family,
        "direction": metric.direction,
        "bounds": [low, high],
        "ordered": metric.ordered,
        "equal_steps": metric.assumes_equal_steps,
        "linear": metric.linear,
        "integer_counts": metric.needs_integer_counts,
        "takes_unanswered": metric.takes_unanswered,
        "undefined_when": metric.undefined_when,
        "options": metric.defaults | dict.fromkeys(metric.required),
        "aliases": list(metric.aliases),
        "formula": metric.formula,
        "reference": REFERENCES.get(metric.reference, metric.reference),
        "properties": {law: cell["verdict"] for law, cell in find_properties(metric).items()},
        "explanation": metric.explanation,
    }


def _make_page(metric: Metric) -> Document:
    verdict, *lines = metric.explanation.split("\n\n")
    lines += [*([f"Formula: {metric.formula}"] if metric.formula else []), *list_facts(metric)]
    if metric.reference:
        lines.append(f"Reference: {REFERENCES.get(metric.reference, metric.reference)}")
    for name, verdict_name, example in list_property_findings(metric):
        lines.append(f"{name}: {verdict_name}{': ' if example else ''}{example}.")
    blocks: tuple[Block, ...] = tuple(" ".join(line.split()) for line in lines)
    if metric.name == "cem_ord":
        blocks += (make_proximity_grid(ConfusionMatrix.from_counts(*PROXIMITY_EXAMPLE)),)
    return Document(metric.name, blocks, " ".join(verdict.split()))


def list_facts(metric: Metric) -> list[str]:
    """Return what holds of a metric by its declaration, in sentences: range, levels, options."""
    facts = [
        f"Range: {format_range(metric)}; better: {BETTER_VALUES[metric.direction]}.",
        *_describe_levels(metric),
        *_describe_undefined(metric),
    ]
    if metric.needs_integer_counts:
        facts.append("Depends on the number of items, so weights must be integers.")
    if metric.linear:
        facts.append(
            "Linear in the confusion matrix at fixed gold totals, so its attainable range is known."
        )
    if metric.parameters:
        facts.append(
            "Options: " + "; ".join(map(_describe_option, metric.parameters.values())) + "."
        )
    if metric.required and find_properties(metric):
        needed = " and ".join(metric.required)
        facts.append(f"Formal properties depend on {needed}, so none was searched.")
    if metric.alias_of:
        facts.append(f"Another name of {metric.alias_of}.")
    elif metric.aliases:
        facts.append(f"Also called {', '.join(metric.aliases)}.")
    return facts


def list_property_findings(metric: Metric) -> list[tuple[str, str, str]]:
    """Return each formal property, its verdict and the smallest counterexample, if there is one.

    There is none of a metric that has no value without an option.
    """
    return [
        (
            law.replace("_", " ").capitalize(),
            VERDICT_NAMES[cell["verdict"]],
            format_counterexample(cell["counterexample"]) if cell["counterexample"] else "",
        )
        for law, cell in find_properties(metric).items()
        if not metric.required
    ]


def _describe_levels(metric: Metric) -> list[str]:
    """Say how labels are taken, and items without one."""
    if metric.summary is not ConfusionMatrix:
        return []
    unanswered = "count as the worst answer" if metric.takes_unanswered else "are refused"
    takes = [] if metric.family == OWN_FAMILY else [ASSUMPTION_TEXTS[_find_assumption(metric)]]
    return [*takes, f"Items without a prediction {unanswered}."]


def _describe_undefined(metric: Metric) -> list[str]:
    if metric.undefined_when:
        return [f"Undefined when {metric.undefined_when}."]
    return [] if metric.family == OWN_FAMILY else ["Never undefined."]  # of one's own it is unknown


def _describe_option(parameter: Parameter) -> str:
    """Say what an option takes, its default first."""
    if choices := list_choices(parameter.annotation):
        default, *others = map(repr, choices)
        return f"{parameter.name}={default} (default) or {', '.join(others)}"
    if parameter.default is Parameter.empty:
        return f"{parameter.name} (required)"
    return f"{parameter.name}={parameter.default!r} (default)"


def format_range(metric: Metric) -> str:
    """Return the bounds of a metric.

    >>> format_range(find_metric("mae"))
    '0 to ∞'
    """
    low, high = ("∞" if abs(b) == float("inf") else f"{b:g}" for b in metric.bounds)
    return f"{'-' if low == '∞' else ''}{low} to {high}"


def _find_assumption(metric: Metric) -> str:
    if metric.family == OWN_FAMILY:
        return ""  # nobody has said
    if metric.assumes_equal_steps:
        return "equal steps"
    return "order" if metric.ordered else "names"
