"""Verdicts on formal properties of metrics: the paper's table searched again, counterexamples."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ordinate.errors import BadOption, word_advice
from ordinate.inference.estimates import to_json_number
from ordinate.inference.resampling import ProgressCallback
from ordinate.meta.properties import PROPERTIES
from ordinate.meta.properties_search import (
    Counterexample,
    PropertyCheck,
    PropertyFinding,
    check_properties,
    find_property,
)
from ordinate.meta.published_properties import (
    MARKS,
    PUBLISHED_COLUMNS,
    agrees_with_paper,
    find_mark,
)
from ordinate.metrics import Metric, list_metrics
from ordinate.metrics.known_properties import (
    FORMAL_PROPERTIES,
    VERDICT_NAMES,
    PropertyRecord,
    drop_default_options,
    find_verification,
    format_counterexample,
)
from ordinate.render import Block, Document, Grid
from ordinate.render.charts import Axis, Cell, Chart, Panel
from ordinate.render.estimates import join_names
from ordinate.render.forest_plots import MOST_ROWS
from ordinate.render.tables import NAME, Column, Table
from ordinate.results.arguments import MetricSelection, select_metrics
from ordinate.results.base import Result

FURTHER_PROPERTIES = tuple(name for name in PROPERTIES if name not in FORMAL_PROPERTIES)
DIFFERS_MARK = " ≠ paper"
MOST_NAMED = 5  # metrics in a verdict, with what they break
KEPT = {"verdict": "not_violated"}
SAME_TOLERANCE = 1e-9  # a smaller difference is rounding
VERDICT_SHADES = {"not_violated": 1.0, "tie_only": 0.4, "violated": -1.0}
VERDICT_SIGNS = {"not_violated": "✓", "tie_only": "=", "violated": "✗", "undefined": "?"}
NO_PROOF = (
    "Every small case was tried: 'not violated' says that none of them violates the property; that "
    "is no proof. 'ties' says that a value stays the same where it has to become better. Gold has "
    "every level; what changes if it may lack some is listed apart."
)


@dataclass(frozen=True, repr=False, eq=False)
class PropertyVerdicts(Result):
    """The findings by metric and property, and the number of matrices that each was computed on."""

    cells: dict[str, dict[str, PropertyRecord]]
    matrices: dict[str, int]

    @classmethod
    def of(
        cls,
        metrics: Iterable[Metric],
        *,
        search: bool = False,
        most_items: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> "PropertyVerdicts":
        """Return what is on file; search for metrics that are not, or for all with `search`."""
        selected = [drop_default_options(metric) for metric in metrics]
        known = {m.expression: None if search else find_verification(m) for m in selected}
        new = [metric for metric in selected if known[metric.expression] is None]
        searched: dict[str, dict[str, Any]] = {
            check.metric.expression: {"tables": check.matrices, "properties": collect_facts(check)}
            for check in check_properties(new, most_items=most_items, progress=progress)
        }
        entries = {name: cells or searched[name] for name, cells in known.items()}
        return cls(
            {name: entry["properties"] for name, entry in entries.items()},
            {name: entry["tables"] for name, entry in entries.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, by metric and property."""
        return {"schema": 1, "tables": self.matrices, "properties": self.cells}

    def make_charts(self) -> Iterable[Chart]:
        """Return which metric keeps which property."""
        metrics = tuple(self.cells)[:MOST_ROWS]
        laws = tuple(
            law for law in PROPERTIES if any(law in self.cells[metric] for metric in metrics)
        )
        cells = tuple(
            _make_property_cell(metric, law, self.cells[metric][law])
            for metric in metrics
            for law in laws
            if law in self.cells[metric]
        )
        more = len(self.cells) - len(metrics)
        left_out = f" {more:,} more metrics are not shown." if more else ""
        yield Chart(
            "properties",
            "Formal properties of metrics",
            "✓ is not violated in any small case, which is no proof; = ties where the value "
            f"has to become better; ✗ is violated; ? is undefined.{left_out}",
            Axis("property", "ordered", tuple(map(_format_name, laws))),
            Axis("metric", "ordered", metrics),
            (Panel(cells),),
            shades="the metric keeps the property",
            shade_ticks=tuple(
                (shade, f"{VERDICT_SIGNS[verdict]} {VERDICT_NAMES[verdict]}")
                for verdict, shade in sorted(VERDICT_SHADES.items(), key=lambda x: x[1])
            ),
        )

    def tables(self) -> Iterable[Table]:
        """Return each property of each metric, with the smallest counterexample."""
        columns = (
            Column("metric", kind=NAME),
            Column("property", kind=NAME, shown=False),
            Column(
                "law", "property", NAME, lambda row: _format_name(row["property"]), stored=False
            ),
            *(Column(key, shown=False) for key in FLAT_KEYS),
            Column("counterexample", get=_format_example, shown=False),
            Column("shown", kind=NAME, get=_format_verdict, stored=False),
        )
        yield Table("metrics", "", columns, _list_cells(self.cells))

    def document(self) -> Document:
        """Return the paper's table, other metrics, further laws, and the counterexamples."""
        published = [name for name in MARKS if name in self.cells]
        others = [name for name in self.cells if name not in MARKS]
        table = self.get_table("metrics")

        def select(title: str, names: Iterable[str], laws: Iterable[str]) -> list[Grid]:
            by_name = {name: self.cells[name] for name in names}
            kept = [x for x in _list_cells(by_name) if x["property"] in laws]
            part = replace(table, title=title, records=kept)
            return [replace(x, left=len(x.header)) for x in part.cross("metric", "law", "shown")]

        grids = (
            *select("Table 2 of Amigó et al. (2020), searched again", published, FORMAL_PROPERTIES),
            *select("Other metrics", others, FORMAL_PROPERTIES),
            *select("Further laws", [*published, *others], FURTHER_PROPERTIES),
            self._build_disagreement_grid(published),
            self._build_example_grid("Counterexamples", "counterexample", "verdict"),
            self._build_example_grid(
                "Where gold may lack levels",
                "counterexample_with_empty_levels",
                "verdict_with_empty_levels",
            ),
        )
        laws = [f"{_format_name(name)}: {law.statement}" for name, law in PROPERTIES.items()]
        return Document(
            "Formal properties of metrics",
            tuple(grid for grid in grids if grid.rows),
            verdict=self._state_verdict(),
            notes=(NO_PROOF, self._describe_effort(), *laws),
        )

    def _state_verdict(self) -> str:
        """Say which metrics keep the formal properties, and which break how many."""
        broken = {
            name: [
                law
                for law in FORMAL_PROPERTIES
                if cells.get(law, KEPT)["verdict"] != "not_violated"
            ]
            for name, cells in self.cells.items()
        }
        kept = [name for name, laws in broken.items() if not laws]
        parts = []
        if kept:
            parts.append(f"No small case violates a formal property of {join_names(kept)}.")
        ranked = sorted(
            (name for name in broken if broken[name]), key=lambda name: len(broken[name])
        )
        if len(ranked) > MOST_NAMED:
            parts.append(f"{len(ranked)} other metrics break at least one, or leave it undefined.")
        elif ranked:
            each = [f"{name} ({', '.join(map(_format_name, broken[name]))})" for name in ranked]
            parts.append(f"Violated, tied or undefined: {'; '.join(each)}.")
        return " ".join(parts)

    def _describe_effort(self) -> str:
        cases = [
            sum(c["cases_with_empty_levels"] for c in of.values()) for of in self.cells.values()
        ]
        return (
            f"Up to {max(self.matrices.values()):,} tables and {max(cases):,} cases were tried for "
            "each metric; --explain and the JSON say how many for each property, and of how many "
            "levels and items."
        )

    def _build_disagreement_grid(self, names: list[str]) -> Grid:
        rows = tuple(
            (
                name,
                law,
                cell["paper"],
                VERDICT_NAMES[cell["verdict"]],
                format_counterexample(cell["counterexample"]) if cell["counterexample"] else "",
            )
            for name in names
            for law, cell in self.cells[name].items()
            if law in PUBLISHED_COLUMNS and cell["agrees"] is False
        )
        header = ("metric", "property", "paper", "found", "example")
        return Grid("Where the search disagrees with the paper", header, rows, left=len(header))

    def _build_example_grid(self, title: str, key: str, verdict: str) -> Grid:
        rows = tuple(
            (
                name,
                _format_name(law),
                VERDICT_NAMES[cell[verdict]],
                format_counterexample(cell[key]),
            )
            for name, cells in self.cells.items()
            for law, cell in cells.items()
            if cell[key]
        )
        header = ("metric", "property", "verdict", "example")
        return Grid(title, header, rows, left=len(header))


FLAT_KEYS = (
    "verdict",
    "verdict_with_empty_levels",
    "cases",
    "cases_with_empty_levels",
    "max_levels",
    "max_items",
    "paper",
    "agrees",
)


@dataclass(frozen=True, repr=False, eq=False)
class PropertyExplanation(Result):
    """One property of one metric, with its counterexample laid out."""

    metric: Metric
    property_name: str
    verdicts: PropertyVerdicts

    @property
    def _cell(self) -> PropertyRecord:
        return self.verdicts.cells[self.metric.expression][self.property_name]

    def to_dict(self) -> dict[str, Any]:
        """Return the one cell in the form of all of them."""
        name = self.metric.expression
        return {
            "schema": 1,
            "tables": {name: self.verdicts.matrices[name]},
            "properties": {name: {self.property_name: self._cell}},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one record."""
        plain = self.to_dict()
        return PropertyVerdicts(plain["properties"], plain["tables"]).rows()

    def document(self) -> Document:
        """Return the property in words, what was tried, and the smallest counterexample."""
        cell, law = self._cell, PROPERTIES[self.property_name]
        required = {"equal": "stay the same", "better": _describe_direction(self.metric)}[
            law.relation
        ]
        name = _format_name(self.property_name).capitalize()
        verdict = f"{name} is {VERDICT_NAMES[cell['verdict']]} by {self.metric.expression}."
        if cell["reason"]:
            verdict = f"It cannot be checked: {cell['reason']}"
        blocks: list[Block] = [f"{law.statement} So the value has to {required}."]
        blocks += _describe_paper(cell)
        for key, words in (
            ("counterexample", "The smallest counterexample"),
            ("counterexample_with_empty_levels", "The smallest one if gold may lack levels"),
        ):
            if cell[key]:
                blocks += [
                    f"{words}: {format_counterexample(cell[key])}.",
                    *_build_example_grids(cell[key]),
                ]
        title = f"{self.metric.expression}: {_format_name(self.property_name)}"
        return Document(title, tuple(blocks), verdict, tuple(_describe_search(cell)))


def find_properties(
    metrics: MetricSelection = (),
    explain: str | None = None,
    *,
    search: bool = False,
    most_items: int | None = None,
    progress: ProgressCallback | None = None,
) -> PropertyVerdicts | PropertyExplanation:
    """Say which formal properties metrics have, all where none is named; or explain one of one.

    What was found is on file; metrics that are not are searched, and all with `search`, for cases
    of at most `most_items` items.

    >>> find_properties("mae").cells["mae"]["symmetry"]["verdict"]
    'not_violated'
    """
    if most_items is not None and (most_items < 1 or not search):
        advice = "{most_items} takes an integer of at least 1, together with {search}."
        raise BadOption(word_advice(advice, most_items=..., search=True))
    law = None if explain is None else find_property(explain)
    selected = select_metrics(metrics) if metrics else list_metrics()
    verdicts = PropertyVerdicts.of(
        selected, search=search, most_items=most_items, progress=progress
    )
    if law is None:
        return verdicts
    if len(selected) != 1:
        raise BadOption("One property is explained of one metric.")
    return PropertyExplanation(drop_default_options(selected[0]), law.name, verdicts)


def collect_facts(check: PropertyCheck) -> dict[str, PropertyRecord]:
    """Return the findings about a metric as plain values, by property."""
    name = check.metric.expression
    return {law: _build_cell(name, law, finding) for law, finding in check.findings.items()}


def _build_cell(name: str, law: str, finding: PropertyFinding) -> PropertyRecord:
    full_gold, any_gold = finding.full_gold, finding.any_gold
    differs = any_gold.verdict != full_gold.verdict
    cell: PropertyRecord = {
        "verdict": full_gold.verdict,
        "verdict_with_empty_levels": any_gold.verdict,
        "cases": full_gold.cases,
        "violations": full_gold.violations,
        "ties": full_gold.ties,
        "undefined_cases": full_gold.undefined,
        "cases_with_empty_levels": any_gold.cases,
        "lowest": to_json_number(full_gold.low),
        "highest": to_json_number(full_gold.high),
        "kinds": {variant: tally.verdict for variant, tally in finding.variants.items()},
        "max_levels": max(finding.sizes, default=0),
        "max_items": max(finding.sizes.values(), default=0),
        "sizes": {str(levels): items for levels, items in finding.sizes.items()},
        "paper": find_mark(name, law),
        "counterexample": full_gold.example and _convert_example_to_dict(full_gold.example),
        "counterexample_with_empty_levels": (
            _convert_example_to_dict(any_gold.example) if differs and any_gold.example else None
        ),
        "reason": finding.reason,
    }
    return cell | {"agrees": agrees_with_paper(cell)}


def _convert_example_to_dict(example: Counterexample) -> PropertyRecord:
    """Return an example as plain values; infinite ones as strings, which JSON lacks."""
    values = [value if math.isfinite(value) else str(value) for value in example.values]
    return asdict(example) | {"values": values}


def _format_name(name: str) -> str:
    return name.replace("_", " ")


def _format_verdict(cell: PropertyRecord) -> str:
    return VERDICT_NAMES[cell["verdict"]] + (DIFFERS_MARK if cell["agrees"] is False else "")


def _list_cells(by_metric: dict[str, dict[str, PropertyRecord]]) -> list[PropertyRecord]:
    return [
        {"metric": name, "property": law, **cell}
        for name, cells in by_metric.items()
        for law, cell in cells.items()
    ]


def _format_example(cell: PropertyRecord) -> str | None:
    return cell["counterexample"] and format_counterexample(cell["counterexample"])


def _describe_direction(metric: Metric) -> str:
    return {"maximize": "rise", "minimize": "fall", "zero": "come nearer to 0"}[metric.direction]


def _describe_search(cell: PropertyRecord) -> list[str]:
    if not cell["sizes"]:
        return []
    sizes = ", ".join(f"{n} items with {k} levels" for k, n in cell["sizes"].items())
    tried = (
        f"{VERDICT_NAMES[cell['verdict']].capitalize()} in {cell['cases']:,} cases in which every "
        f"level occurs in gold ({cell['violations']:,} violations, {cell['ties']:,} ties, "
        f"{cell['undefined_cases']:,} more undefined); if gold may lack levels, "
        f"{VERDICT_NAMES[cell['verdict_with_empty_levels']]} in "
        f"{cell['cases_with_empty_levels']:,}. Tried: all with at most {sizes}. What is not "
        "violated there is not proven."
    )
    lines = [tried]
    if cell["lowest"] is not None:
        same = cell["highest"] - cell["lowest"] < SAME_TOLERANCE
        values = (
            f"is {cell['lowest']:.4g}"
            if same
            else (f"goes from {cell['lowest']:.4g} to {cell['highest']:.4g}")
        )
        lines.append(f"In these cases the value {values}.")
    if cell["kinds"]:
        variants = (
            f"{variant} {VERDICT_NAMES[verdict]}" for variant, verdict in cell["kinds"].items()
        )
        lines.append(f"By place: {', '.join(variants)}.")
    return lines


def _describe_paper(cell: PropertyRecord) -> list[str]:
    if cell["paper"] is None:
        return []
    agreeing = {True: "which agrees", False: "which disagrees", None: "where nothing was found"}
    return [f"Amigó et al. (2020), Table 2, has '{cell['paper']}', {agreeing[cell['agrees']]}."]


def _build_example_grids(example: PropertyRecord) -> tuple[Grid, Grid]:
    old, new = map(float, example["values"])
    scale = example["scale"]
    return (
        _build_confusion_grid(f"Before: {old:.6g}", scale, example["gold"], example["before"]),
        _build_confusion_grid(
            f"After: {new:.6g}",
            example["scale_after"] or scale,
            example["gold_after"] or example["gold"],
            example["after"],
        ),
    )


def _build_confusion_grid(
    title: str, scale: list[float], gold: list[float], predicted: list[float]
) -> Grid:
    places = [[list(scale).index(label) for label in side] for side in (gold, predicted)]
    counts = np.zeros((len(scale), len(scale)), int)
    np.add.at(counts, tuple(places), 1)
    labels = [f"{label:g}" for label in scale]
    rows = tuple((label, *row) for label, row in zip(labels, counts.tolist(), strict=True))
    return Grid(title, ("gold \\ output", *labels), rows)


def _make_property_cell(metric: str, law: str, record: PropertyRecord) -> Cell:
    verdict = record["verdict"]
    example = record["counterexample"]
    detail = f"{metric}, {_format_name(law)}: {VERDICT_NAMES[verdict]}"
    if example:
        detail += f": {format_counterexample(example)}"
    return Cell(
        _format_name(law),
        metric,
        VERDICT_SHADES.get(verdict, 0.0),
        VERDICT_SIGNS[verdict],
        detail,
    )
