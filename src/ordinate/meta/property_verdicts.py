"""Properties of metrics for people: the paper's table searched again, with counterexamples."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ordinate.inference.estimates import finite
from ordinate.meta.properties import PROPERTIES
from ordinate.meta.properties_search import Checked, Example, Finding, check
from ordinate.meta.published_properties import COLUMNS, MARKS, agrees, mark
from ordinate.metrics import Metric
from ordinate.metrics.known_properties import FORMAL, VERDICTS, Cell, in_a_line, plain, verified
from ordinate.render import Document, Grid

FURTHER = tuple(name for name in PROPERTIES if name not in FORMAL)
DIFFERS = " ≠ paper"
SAME = 1e-9  # a difference that is rounding
NO_PROOF = (
    "Every small case was tried: 'not violated' says that none of them violates the property; that "
    "is no proof. 'ties' says that a value stays the same where it has to become better. Gold has "
    "every level; what changes if it may lack some is listed apart."
)


@dataclass(frozen=True)
class Verdicts:
    """What was found about some metrics, by metric and property, and on how many tables."""

    cells: dict[str, dict[str, Cell]]
    tables: dict[str, int]

    @classmethod
    def of(
        cls,
        metrics: Iterable[Metric],
        *,
        search: bool = False,
        most_items: int | None = None,
        tick: Callable[[float], None] = lambda _: None,
    ) -> "Verdicts":
        """Return what is on file; search for metrics that are not, or for all if asked to."""
        wanted = [plain(metric) for metric in metrics]
        known = {m.expression: None if search else verified(m) for m in wanted}
        new = [metric for metric in wanted if known[metric.expression] is None]
        found: dict[str, dict[str, Any]] = {
            one.metric.expression: {"tables": one.tables, "properties": facts(one)}
            for one in check(new, most_items=most_items, tick=tick)
        }
        both = {name: cells or found[name] for name, cells in known.items()}
        return cls(
            {name: of["properties"] for name, of in both.items()},
            {name: of["tables"] for name, of in both.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, by metric and property."""
        return {"schema": 1, "tables": self.tables, "properties": self.cells}

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric and property."""
        return [
            {"metric": name, "property": law}
            | {key: cell[key] for key in FLAT}
            | {"counterexample": cell["counterexample"] and in_a_line(cell["counterexample"])}
            for name, cells in self.cells.items()
            for law, cell in cells.items()
        ]

    def document(self) -> Document:
        """Return the paper's table, other metrics, further laws, and the counterexamples."""
        published = [name for name in MARKS if name in self.cells]
        others = [name for name in self.cells if name not in MARKS]
        grids = (
            self._grid("Table 2 of Amigó et al. (2020), searched again", published, FORMAL),
            self._grid("Other metrics", others, FORMAL),
            self._grid("Further laws", [*published, *others], FURTHER),
            self._disagreements(published),
            self._examples("Counterexamples", "counterexample", "verdict"),
            self._examples(
                "Where gold may lack levels",
                "counterexample_with_empty_levels",
                "verdict_with_empty_levels",
            ),
        )
        laws = [f"{_spaced(name)}: {law.says}" for name, law in PROPERTIES.items()]
        return Document(
            "Formal properties of metrics",
            (NO_PROOF, self._effort(), *laws, *(grid for grid in grids if grid.rows)),
        )

    def _effort(self) -> str:
        cases = [
            sum(c["cases_with_empty_levels"] for c in of.values()) for of in self.cells.values()
        ]
        return (
            f"Up to {max(self.tables.values()):,} tables and {max(cases):,} cases were tried for "
            "each metric; --explain and the JSON say how many for each property, and of how many "
            "levels and items."
        )

    def _grid(self, title: str, names: list[str], laws: tuple[str, ...]) -> Grid:
        rows = tuple(
            (name, *(_verdict(self.cells[name][law]) for law in laws if law in self.cells[name]))
            for name in names
        )
        return Grid(title, ("metric", *map(_spaced, laws)), rows, left=1 + len(laws))

    def _disagreements(self, names: list[str]) -> Grid:
        rows = tuple(
            (name, law, cell["paper"], VERDICTS[cell["verdict"]], _line(cell["counterexample"]))
            for name in names
            for law, cell in self.cells[name].items()
            if law in COLUMNS and cell["agrees"] is False
        )
        header = ("metric", "property", "paper", "found", "example")
        return Grid("Where the search disagrees with the paper", header, rows, left=len(header))

    def _examples(self, title: str, key: str, verdict: str) -> Grid:
        rows = tuple(
            (name, _spaced(law), VERDICTS[cell[verdict]], in_a_line(cell[key]))
            for name, cells in self.cells.items()
            for law, cell in cells.items()
            if cell[key]
        )
        header = ("metric", "property", "verdict", "example")
        return Grid(title, header, rows, left=len(header))


FLAT = (
    "verdict",
    "verdict_with_empty_levels",
    "cases",
    "cases_with_empty_levels",
    "max_levels",
    "max_items",
    "paper",
    "agrees",
)


@dataclass(frozen=True)
class Explained:
    """One property of one metric, with its counterexample laid out."""

    metric: Metric
    law: str
    verdicts: Verdicts

    @property
    def _cell(self) -> Cell:
        return self.verdicts.cells[self.metric.expression][self.law]

    def to_dict(self) -> dict[str, Any]:
        """Return the one cell in the form of all of them."""
        name = self.metric.expression
        return {
            "schema": 1,
            "tables": {name: self.verdicts.tables[name]},
            "properties": {name: {self.law: self._cell}},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one record."""
        plain = self.to_dict()
        return Verdicts(plain["properties"], plain["tables"]).rows()

    def document(self) -> Document:
        """Return the property in words, what was tried, and the smallest counterexample."""
        cell, law = self._cell, PROPERTIES[self.law]
        asked = {"equal": "stay the same", "better": _better(self.metric)}[law.relation]
        blocks: list[str | Grid] = [law.says, f"So the value has to {asked}."]
        if cell["reason"]:
            blocks.append(f"It cannot be checked: {cell['reason']}")
        blocks += [*_tried(cell), *_paper(cell)]
        for key, words in (
            ("counterexample", "The smallest counterexample"),
            ("counterexample_with_empty_levels", "The smallest one if gold may lack levels"),
        ):
            if cell[key]:
                blocks += [f"{words}: {in_a_line(cell[key])}.", *_tables(cell[key])]
        return Document(f"{self.metric.expression}: {_spaced(self.law)}", tuple(blocks))


def facts(checked: Checked) -> dict[str, Cell]:
    """Return what was found about a metric as plain values, by property."""
    name = checked.metric.expression
    return {law: _facts(name, law, finding) for law, finding in checked.findings.items()}


def _facts(name: str, law: str, finding: Finding) -> Cell:
    full, loose = finding.full, finding.any
    other = loose.verdict != full.verdict
    cell: Cell = {
        "verdict": full.verdict,
        "verdict_with_empty_levels": loose.verdict,
        "cases": full.cases,
        "violations": full.violations,
        "ties": full.ties,
        "undefined_cases": full.undefined,
        "cases_with_empty_levels": loose.cases,
        "lowest": finite(full.low),
        "highest": finite(full.high),
        "kinds": {kind: tally.verdict for kind, tally in finding.kinds.items()},
        "max_levels": max(finding.sizes, default=0),
        "max_items": max(finding.sizes.values(), default=0),
        "sizes": {str(levels): items for levels, items in finding.sizes.items()},
        "paper": mark(name, law),
        "counterexample": full.example and _plain(full.example),
        "counterexample_with_empty_levels": (
            _plain(loose.example) if other and loose.example else None
        ),
        "reason": finding.reason,
    }
    return cell | {"agrees": agrees(cell)}


def _plain(example: Example) -> Cell:
    """Return an example as plain values; infinite ones as texts, which JSON lacks."""
    values = [value if math.isfinite(value) else str(value) for value in example.values]
    return asdict(example) | {"values": values}


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _verdict(cell: Cell) -> str:
    return VERDICTS[cell["verdict"]] + (DIFFERS if cell["agrees"] is False else "")


def _line(example: Cell | None) -> str:
    return in_a_line(example) if example else ""


def _better(metric: Metric) -> str:
    return {"maximize": "rise", "minimize": "fall", "zero": "come nearer to 0"}[metric.direction]


def _tried(cell: Cell) -> list[str]:
    if not cell["sizes"]:
        return []
    sizes = ", ".join(f"{n} items with {k} levels" for k, n in cell["sizes"].items())
    tried = (
        f"{VERDICTS[cell['verdict']].capitalize()} in {cell['cases']:,} cases in which every level "
        f"occurs in gold ({cell['violations']:,} violations, {cell['ties']:,} ties, "
        f"{cell['undefined_cases']:,} more undefined); if gold may lack levels, "
        f"{VERDICTS[cell['verdict_with_empty_levels']]} in {cell['cases_with_empty_levels']:,}. "
        f"Tried: all with at most {sizes}. What is not violated there is not proven."
    )
    lines = [tried]
    if cell["lowest"] is not None:
        same = cell["highest"] - cell["lowest"] < SAME
        values = (
            f"is {cell['lowest']:.4g}"
            if same
            else (f"goes from {cell['lowest']:.4g} to {cell['highest']:.4g}")
        )
        lines.append(f"In these cases the value {values}.")
    if cell["kinds"]:
        kinds = (f"{kind} {VERDICTS[verdict]}" for kind, verdict in cell["kinds"].items())
        lines.append(f"By place: {', '.join(kinds)}.")
    return lines


def _paper(cell: Cell) -> list[str]:
    if cell["paper"] is None:
        return []
    agreeing = {True: "which agrees", False: "which disagrees", None: "where nothing was found"}
    return [f"Amigó et al. (2020), Table 2, has '{cell['paper']}', {agreeing[cell['agrees']]}."]


def _tables(example: Cell) -> tuple[Grid, Grid]:
    old, new = map(float, example["values"])
    scale = example["scale"]
    return (
        _table(f"Before: {old:.6g}", scale, example["gold"], example["before"]),
        _table(
            f"After: {new:.6g}",
            example["scale_after"] or scale,
            example["gold_after"] or example["gold"],
            example["after"],
        ),
    )


def _table(title: str, scale: list[float], gold: list[float], predicted: list[float]) -> Grid:
    places = [[list(scale).index(label) for label in side] for side in (gold, predicted)]
    counts = np.zeros((len(scale), len(scale)), int)
    np.add.at(counts, tuple(places), 1)
    labels = [f"{label:g}" for label in scale]
    rows = tuple((label, *row) for label, row in zip(labels, counts.tolist(), strict=True))
    return Grid(title, ("gold \\ output", *labels), rows)
