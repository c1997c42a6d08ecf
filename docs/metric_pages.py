"""One page for each metric, made of its declaration, its docstring and a small example.

`docs/metrics.md` lists them. Written by `make docs`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinate import ConfusionMatrix
from ordinate.errors import NotApplicable
from ordinate.metrics import SUMMARY_TYPES, Metric, find_metric, get_summary_type, list_metrics
from ordinate.metrics.references import REFERENCES
from ordinate.results.base import BETTER_VALUES
from ordinate.results.metric_catalogue import (
    TITLES,
    format_range,
    list_facts,
    list_property_findings,
)
from ordinate.summaries import EnsemblePredictions, Moments, PredictionIntervals, Reliability
from ordinate.summaries.regression import TARGET_MEAN

NOTES = {  # how a paragraph of a docstring starts; its title and how it starts on the page
    "When to use: ": ("When to use it", "When "),
    "When not: ": ("When not", "When "),
    "Elsewhere: ": ("Elsewhere", ""),
}
SHOWN_AS = {  # metrics that the example needs with an option
    "expected_cost": "expected_cost(matrix=[[0,2,4,6],[1,0,2,4],[2,1,0,2],[3,2,1,0]])",
    "central_coverage": "central_coverage(level=0.5)",
}


@dataclass(frozen=True)
class Example:
    """Data in a few lines, and what a metric says of them and of others like them."""

    introduction: str
    data: str  # the code that readers type
    call: str  # the code that computes the metric EXPRESSION
    cases: dict[str, Any]  # what to compare with: a summary, or what makes one for a metric
    compute: Callable[[Metric, Any], Any]


# --- labels --------------------------------------------------------------------------------------

LEVELS = ("A1", "A2", "B1", "B2")
COUNTS = np.array([[6, 3, 1, 0], [2, 11, 6, 1], [0, 4, 5, 5], [0, 0, 1, 5]])
NEARER = np.array([[6, 4, 0, 0], [2, 11, 7, 0], [0, 4, 5, 5], [0, 0, 1, 5]])
CONSTANT = COUNTS.sum(axis=1, keepdims=True) * (np.arange(4) == 1)


def _count(cells: Any) -> ConfusionMatrix:
    return ConfusionMatrix.from_counts(cells, ",".join(LEVELS))


def _by_chance(metric: Metric) -> Any:
    observed = _count(COUNTS)
    expected = np.outer(COUNTS.sum(axis=1), COUNTS.sum(axis=0)) / COUNTS.sum()
    return metric.compute_from_expected(_count(expected), observed)


def _format_counts() -> str:
    rows = [("gold \\ predicted", *LEVELS), ("---", *["---:"] * 4)]
    rows += [(level, *map(str, row)) for level, row in zip(LEVELS, COUNTS, strict=True)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


LABELS = Example(
    f"Fifty texts, the same on the page of every metric of labels:\n\n{_format_counts()}",
    ">>> import ordinate\n"
    f">>> counts = {COUNTS.tolist()}\n"
    f'>>> matrix = ordinate.ConfusionMatrix.from_counts(counts, "{",".join(LEVELS)}")',
    'ordinate.score("EXPRESSION", matrix)',
    {
        "those above": _count(COUNTS),
        "the 2 that are two levels off, moved next to gold": _count(NEARER),
        "always A2, the commonest gold level": _count(CONSTANT),
        "by chance, with the same shares of levels": _by_chance,
        "all right": _count(np.diag(COUNTS.sum(axis=1))),
    },
    lambda metric, case: case(metric) if callable(case) else metric(case),
)

# --- probabilities -------------------------------------------------------------------------------

GOLD = ["low", "mid", "mid", "high"]
ROWS = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.0, 0.3, 0.7]]
LOW_MID_HIGH = "low,mid,high"


def _sum_up_probabilities(metric: Metric, rows: Any) -> Any:
    parts = metric.required_parts
    return metric(Reliability.of(GOLD, rows, LOW_MID_HIGH, parts, columns="scale"))


PROBABILITIES = Example(
    "Four items on low < mid < high, with the probabilities that a model gives to the levels:",
    ">>> from ordinate.metrics import find_metric\n"
    ">>> from ordinate.summaries import Reliability\n"
    f">>> gold = {GOLD}\n"
    f">>> rows = {ROWS}\n"
    '>>> metric = find_metric("EXPRESSION", Reliability)\n'
    f'>>> parts, scale = metric.required_parts, "{LOW_MID_HIGH}"\n'
    '>>> summary = Reliability.of(gold, rows, scale, parts, columns="scale")',
    "metric(summary)",
    {
        "those above": ROWS,
        "all of it on the most probable level": np.eye(3)[np.argmax(ROWS, axis=1)],
        "the shares of gold, for every item": [[0.25, 0.5, 0.25]] * 4,
        "the same for all levels": [[1 / 3] * 3] * 4,
        "all of it on the gold level": np.eye(3)[[0, 1, 1, 2]],
    },
    _sum_up_probabilities,
)

# --- regression, intervals, ensembles ------------------------------------------------------------

TARGET = [1020.0, 985.0, 1100.0, 960.0, 1040.0]
PREDICTED = [1010.0, 1000.0, 1080.0, 965.0, 1075.0]
OUTLIER = [*PREDICTED[:4], 1240.0]
MEAN = float(np.mean(TARGET))


def _sum_up_moments(metric: Metric, predicted: Any) -> Any:
    return metric(Moments.of(TARGET, predicted, constants={TARGET_MEAN: MEAN}, histogram=True))


REGRESSION = Example(
    "Five densities in kg/m³, and what a model predicts:",
    ">>> from ordinate.metrics import find_metric\n"
    ">>> from ordinate.summaries import Moments\n"
    f">>> target = {TARGET}\n"
    f">>> predicted = {PREDICTED}\n"
    f'>>> constants = {{"{TARGET_MEAN}": {MEAN}}}  # of targets, for what is compared with it\n'
    ">>> summary = Moments.of(target, predicted, constants=constants, histogram=True)",
    'find_metric("EXPRESSION", Moments)(summary)',
    {
        "those above": PREDICTED,
        "all 20 kg/m³ higher": np.array(PREDICTED) + 20.0,
        "the last one 200 kg/m³ too high": OUTLIER,
        "always the mean of the targets": [MEAN] * 5,
        "all right": TARGET,
    },
    _sum_up_moments,
)

LOWER = [990.0, 990.0, 1060.0, 945.0, 1045.0]
UPPER = [1030.0, 1010.0, 1110.0, 985.0, 1105.0]


def _widen(factor: float) -> tuple[Any, Any]:
    middle, half = np.add(LOWER, UPPER) / 2, np.subtract(UPPER, LOWER) / 2
    return middle - factor * half, middle + factor * half


INTERVALS = Example(
    "Five densities in kg/m³, and an interval for each:",
    ">>> from ordinate.metrics import find_metric\n"
    ">>> from ordinate.summaries import PredictionIntervals\n"
    f">>> target = {TARGET}\n"
    f">>> lower, upper = {LOWER}, {UPPER}\n"
    ">>> summary = PredictionIntervals.of(target, lower, upper)",
    'find_metric("EXPRESSION", PredictionIntervals)(summary)',
    {
        "those above": (LOWER, UPPER),
        "half as wide": _widen(0.5),
        "twice as wide": _widen(2.0),
        "from 900 to 1200 for all": ([900.0] * 5, [1200.0] * 5),
    },
    lambda metric, bounds: metric(PredictionIntervals.of(TARGET, *bounds)),
)

MEMBERS = [
    [1000.0, 1008.0, 1015.0, 1030.0],
    [990.0, 997.0, 1003.0, 1010.0],
    [1070.0, 1075.0, 1082.0, 1093.0],
    [955.0, 962.0, 968.0, 975.0],
    [1055.0, 1070.0, 1080.0, 1095.0],
]


def _spread_members(factor: float) -> Any:
    middle = np.mean(MEMBERS, axis=1, keepdims=True)
    return middle + factor * (np.array(MEMBERS) - middle)


ENSEMBLES = Example(
    "Five densities in kg/m³, and four equally likely predictions of each:",
    ">>> from ordinate.metrics import find_metric\n"
    ">>> from ordinate.summaries import EnsemblePredictions\n"
    f">>> target = {TARGET}\n"
    ">>> members = [\n"
    + "\n".join(f"...     {row}," for row in MEMBERS)
    + "\n... ]\n>>> summary = EnsemblePredictions.of(target, members)",
    'find_metric("EXPRESSION", EnsemblePredictions)(summary)',
    {
        "those above": MEMBERS,
        "twice as far from their mean": _spread_members(2.0),
        "ten times nearer to their mean": _spread_members(0.1),
        "all 20 kg/m³ higher": np.array(MEMBERS) + 20.0,
    },
    lambda metric, members: metric(EnsemblePredictions.of(TARGET, members)),
)

EXAMPLES = {
    "labels": LABELS,
    "probabilities": PROBABILITIES,
    "regression": REGRESSION,
    "intervals": INTERVALS,
    "ensembles": ENSEMBLES,
}

# --- pages ---------------------------------------------------------------------------------------

INDEX = r"""# All metrics

Each metric has a page: what it says, a worked example, the formula, when to use it and when not,
and its formal properties with the smallest counterexample. [Which metric should I
report?](which-metric.md) chooses two or three; `ordinate metrics` lists them on the terminal, and
`ordinate metrics NAME` explains one. Generated from the catalogue by `make docs`.

## Notation

$n_{ij}$ is the weight of the items with gold level $i$ and predicted level $j$, $g_i$ and $p_j$ are
the totals of a gold and of a predicted level, $N$ is the total, $x_i$ is the position of level $i$
(0, 1, 2, … unless declared otherwise), and sums run over all $K$ levels of the declared scale. $L$
is the number of levels that occur in gold or predictions. $C$ and $D$ are the numbers of concordant
and discordant pairs of items, $T_{gold}$ and $T_{pred}$ the pairs that are not tied in gold and in
the predictions, $m$ the smaller number of levels that occur on a side. $G_k$ and $P_k$ are the
shares of gold and predictions up to level $k$. $I$ is the mutual information, $H$ an entropy. $d$
is the distance of row and column, $M$ the number of gold levels that occur."""


def list_pages() -> dict[str, str]:
    """Return the text of every page, by its path in `docs`."""
    pages = {"metrics.md": make_index()}
    for kind in SUMMARY_TYPES:
        for metric in list_metrics(get_summary_type(kind)):
            pages[locate_page(metric, kind)] = make_page(metric, kind)
    return pages


def locate_page(metric: Metric, kind: str) -> str:
    """Return where the page of a metric stands in `docs`: several kinds have one of a name."""
    return f"metrics/{kind}/{metric.name}.md"


def group_by_family(kind: str) -> dict[str, list[Metric]]:
    """Return the metrics of a kind by family, in the order of the catalogue."""
    families: dict[str, list[Metric]] = {}
    for metric in list_metrics(get_summary_type(kind)):
        families.setdefault(metric.family, []).append(metric)
    return families


def make_index() -> str:
    """Return the page that lists all metrics."""
    parts = [INDEX]
    for kind in SUMMARY_TYPES:
        parts.append(f"## {TITLES[kind]}")
        for family, metrics in group_by_family(kind).items():
            rows = ["| metric | what it says | range | better |", "|---|---|---|---|"]
            rows += [_format_row(metric, kind) for metric in metrics]
            parts += [f"### {family.capitalize()}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _format_row(metric: Metric, kind: str) -> str:
    cells = (
        f"[`{metric.name}`]({locate_page(metric, kind)})",
        metric.title.replace("|", "\\|"),
        format_range(metric),
        BETTER_VALUES[metric.direction],
    )
    return f"| {' | '.join(cells)} |"


def make_page(metric: Metric, kind: str) -> str:
    """Return the page of a metric."""
    explained, notes = split_notes(metric)
    parts = [
        f"# `{metric.name}`",
        *explained,
        "\n".join(f"- {fact}" for fact in list_facts(metric)),
        *_write_advice("When to use it", notes, kind),
        *_write_advice("When not", notes, kind),
        "## Worked example",
        *_write_example(metric, EXAMPLES[kind]),
        "## Formula",
        f"$$\n{metric.formula}\n$$",
        "The [notation](../../metrics.md#notation) is that of all metrics.",
        *_write_properties(metric),
        *_write_note("Elsewhere", notes),
    ]
    if metric.reference:
        parts += ["## Reference", REFERENCES[metric.reference]]
    return "\n\n".join(parts) + "\n"


def split_notes(metric: Metric) -> tuple[list[str], dict[str, str]]:
    """Return the paragraphs that explain a metric, and its notes by title."""
    explained, notes = [], {}
    for paragraph in metric.explanation.split("\n\n"):
        text = " ".join(paragraph.split())
        start = next((start for start in NOTES if text.startswith(start)), None)
        if start is None:
            explained.append(text)
        else:
            title, opening = NOTES[start]
            notes[title] = opening + text.removeprefix(start)
    return explained, notes


def _write_advice(title: str, notes: dict[str, str], kind: str) -> list[str]:
    """Return a note in which other metrics are links to their pages."""
    known = {metric.name for metric in list_metrics(get_summary_type(kind))}

    def link(found: re.Match[str]) -> str:
        return f"[{found[0]}]({found[1]}.md)" if found[1] in known else found[0]

    return [re.sub(r"`(\w+)`", link, part) for part in _write_note(title, notes)]


def _write_note(title: str, notes: dict[str, str]) -> list[str]:
    return [f"## {title}", notes[title]] if title in notes else []


def _write_example(metric: Metric, example: Example) -> Iterator[str]:
    expression = SHOWN_AS.get(metric.name, metric.name)
    shown = find_metric(expression, metric.summary)
    yield example.introduction
    code = f"{example.data}\n>>> round(float({example.call}), 3)"
    value = next(iter(example.cases.values()))
    result = repr(round(float(example.compute(shown, value)), 3))
    yield f"```python\n{code.replace('EXPRESSION', expression)}\n{result}\n\n```"
    yield "What it says of other predictions of the same items:"
    rows = ["| predictions | value |", "|---|---:|"]
    rows += [f"| {name} | {_show(shown, example, case)} |" for name, case in example.cases.items()]
    yield "\n".join(rows)


def _show(metric: Metric, example: Example, case: Any) -> str:
    try:
        value = float(example.compute(metric, case))
    except NotApplicable as reason:
        return f"undefined: {reason}"
    return "undefined" if np.isnan(value) else f"{value + 0.0:.3f}"


def _write_properties(metric: Metric) -> list[str]:
    findings = list_property_findings(metric)
    if not findings:
        return []
    rows = ["| property | verdict | smallest counterexample |", "|---|---|---|"]
    rows += [f"| {' | '.join(finding)} |" for finding in findings]
    said = (
        "What a search of all small cases found; what it did not violate is not proved. "
        "[Properties](../../properties.md#the-properties) says what each asks for."
    )
    return ["## Formal properties", said, "\n".join(rows)]
