"""Parts of a report: results that join that of another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ordinate.render import Block, Document, Grid
from ordinate.results.base import Result

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
