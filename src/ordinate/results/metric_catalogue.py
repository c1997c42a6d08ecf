"""The catalogue for people: all metrics in a grid, or one on a page."""

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
from ordinate.render import Block, Document, Grid
from ordinate.render.estimates import format_count
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

    def rows(self) -> list[Record]:
        """Return one flat record for each metric."""
        return [
            {"metric": metric.name}
            | {
                key: _join_items(value)
                for key, value in _collect_facts(metric).items()
                if key != "explanation"
            }
            for metric in self.metrics
        ]

    def document(self) -> Document:
        """Return a page for one metric, or a grid of several."""
        if len(self.metrics) == 1:
            return _make_page(self.metrics[0])
        families = dict.fromkeys(metric.family for metric in self.metrics)
        grids = tuple(
            _make_family_grid(name, [metric for metric in self.metrics if metric.family == name])
            for name in families
        )
        verdict = (
            f"{len(self.metrics)} metrics in {format_count(len(families), 'family', 'families')}; "
            "`ordinate metrics NAME` explains one of them."
        )
        legend = (LEGEND,) if self.kind == "labels" else ()
        return Document(TITLES[self.kind], grids, verdict, legend)


def _make_family_grid(family: str, metrics: list[Metric]) -> Grid:
    of_labels = metrics[0].summary is ConfusionMatrix
    further = ("levels as", "formal") if of_labels else ()
    header = ("metric", "better", "range", *further, "what it says")
    rows = tuple(
        (
            m.name,
            BETTER_VALUES[m.direction],
            format_range(m),
            *((_find_assumption(m), _format_formal_properties(m)) if of_labels else ()),
            m.title + (f" Also: {', '.join(m.aliases)}." if m.aliases else ""),
        )
        for m in metrics
    )
    return Grid(family.capitalize(), header, rows, left=len(header), optional=further)


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


def _join_items(value: Any) -> Any:
    if isinstance(value, dict):
        return " ".join(f"{key}={item!r}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join("" if item is None else str(item) for item in value)
    return value


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
