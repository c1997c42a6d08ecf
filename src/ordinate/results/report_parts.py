"""What reports share: parts that join them, subgroups, how intervals were found."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ordinate.inference.estimates import Estimate
from ordinate.render import Block, Document, Grid
from ordinate.results.base import Result

METHOD_NAMES = {
    "delta": "the delta method",
    "percentile": "percentile bootstrap",
    "bca": "BCa bootstrap",
    "wilson": "Wilson",
    "mover": "MOVER over the levels",
    "simultaneous": "intervals of all levels at once",
    "dirichlet": "Dirichlet posterior",
    "jeffreys": "Dirichlet posterior with Jeffreys' prior",
    "jackknife": "the jackknife over clusters",
    "t": "Student's t over clusters",
}
COVERED = re.compile(r"(cover|covered as little as) (\d+) %")  # in notes, of nominally 95 %
MOST_SHOWN_SUBGROUPS = 12  # on a terminal
MOST_COLUMNS, MOST_WITH_INTERVALS = 6, 3  # of subgroups side by side


def list_subgroup_blocks(grids: Sequence[Grid], count: int) -> Sequence[Block]:
    """Return the grids of subgroups; of many, a terminal has a sentence in their place."""
    if count <= MOST_SHOWN_SUBGROUPS:
        return grids
    note = f"The {count:,} subgroups, which are many, are in a file (-o) and in JSON."
    return [Document("", details=tuple(grids), details_note=note)]


def lay_out_subgroups(grid: Grid, *, intervals: bool) -> Grid:
    """Return a grid of subgroups side by side, or one below the other where they are many.

    >>> grid = Grid("Subgroups", ("metric", *"abcd"), (("items", 1, 2, 3, 4),))
    >>> lay_out_subgroups(grid, intervals=True).rows
    (('a', 1), ('b', 2), ('c', 3), ('d', 4))
    """
    if len(grid.header) - 1 <= (MOST_WITH_INTERVALS if intervals else MOST_COLUMNS):
        return grid
    (_, *heads), *rows = zip(grid.header, *grid.rows, strict=True)
    return replace(grid, header=("subgroup", *map(str, heads)), rows=tuple(rows))


@dataclass(frozen=True)
class ReportPart:
    """A result that joins the report of another: its sentences and grids, its JSON, its tables.

    `opening` says what its verdict is about.
    """

    name: str
    result: Result
    opening: str = ""
    notes: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    def list_blocks(self) -> list[Block]:
        """Return its sentences and grids."""
        document = self.result.document()
        notes = (*document.notes, *self.notes)
        if not self.opening:
            return [*self.sentences, replace(document, notes=notes)]
        titled = replace(document, verdict=f"{self.opening}: {document.verdict}", notes=notes)
        return [*self.sentences, f"{document.title}.", titled]


def describe_interval_methods(
    found: Mapping[str, Estimate], titles: Mapping[str, str] = METHOD_NAMES
) -> list[str]:
    """Say how the intervals of metrics were found, why there are none, and what was left out.

    >>> found = {"mae": Estimate(0.5, 0.4, 0.6, "delta"), "bias": Estimate(0, -1, 1, "jackknife")}
    >>> describe_interval_methods(found)
    ['Intervals by the delta method: mae; by the jackknife over clusters: bias.']
    """
    computed = {name: one for name, one in found.items() if one.method is not None}
    parts = [*_describe_methods(computed, len(found), titles), *_describe_doubts(computed)]
    parts += [
        f"No interval for {name}: {one.note}."
        for name, one in found.items()
        if one.method is None and not math.isnan(one.value)
    ]
    parts += [
        f"{name} was undefined in {100 * one.undefined_share:.1f} % of the resamples, which are "
        "left out."
        for name, one in found.items()
        if one.undefined_share
    ]
    return parts


def _describe_methods(
    computed: Mapping[str, Estimate], most: int, titles: Mapping[str, str]
) -> list[str]:
    methods: dict[str, list[str]] = {}
    for name, one in computed.items():
        methods.setdefault(titles[one.method or ""], []).append(name)
    lines = [
        title if len(names) == most else f"{title}: {', '.join(names)}"
        for title, names in methods.items()
    ]
    return [f"Intervals by {'; by '.join(lines)}."] if lines else []


def _describe_doubts(computed: Mapping[str, Estimate]) -> list[str]:
    """Return what the notes of intervals say: each reason once, with those it is about, if not all.

    Reasons that differ in how much intervals covered are one.
    """
    names: dict[str, list[str]] = {}
    shares: dict[str, list[int]] = {}
    for name, one in computed.items():
        for reason in (one.note or "").removeprefix("unsure: ").split("; "):
            covered = COVERED.search(reason)
            key = COVERED.sub(r"\1 {} %", reason) if covered else reason
            names.setdefault(key, []).append(name)
            shares.setdefault(key, []).extend([int(covered[2])] if covered else [])
    names.pop("", None)
    lines = []
    for reason, whose in names.items():
        least, most = min(shares[reason], default=0), max(shares[reason], default=0)
        said = reason.replace("{}", f"{least}" if least == most else f"{least} to {most}")
        lines.append(said if len(whose) == len(computed) else f"{said} ({', '.join(whose)})")
    return [f"Keep in mind: {'; '.join(lines)}."] if lines else []
