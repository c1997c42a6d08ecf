"""A document: what a report says and in which order, before anybody decides how to write it."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ordinate.errors import replace_control_characters

if TYPE_CHECKING:
    from ordinate.render.charts import Chart

Cell = str | int | float | None
UNDEFINED = "undefined"
NOTES_TITLE = "Notes"


@dataclass(frozen=True)
class Grid:
    """A table of cells; the first `left` columns are words, the others numbers.

    `optional` names the columns that a narrow terminal may do without, the least needed first;
    the last `totals` rows stay last, however the others are sorted.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: int = 1
    optional: tuple[str, ...] = ()
    totals: int = 0

    def __post_init__(self) -> None:
        """Take out of the title what could drive a terminal."""
        object.__setattr__(self, "title", replace_control_characters(self.title))

    def drop_empty_columns(self) -> "Grid":
        """Return the grid without the columns in which nothing stands."""
        columns = enumerate(zip(*self.rows, strict=True))
        used = [k for k, cells in columns if any(cell is not None for cell in cells)]
        rows = tuple(tuple(row[k] for k in used) for row in self.rows)
        header, left = tuple(self.header[k] for k in used), sum(k < self.left for k in used)
        return replace(self, header=header, rows=rows, left=left)


@dataclass(frozen=True)
class Variants:
    """Sentences and grids by metric: a page shows those of the metric that is chosen on it.

    Where nobody can choose, they are those of the first; the others are never made there.
    """

    metrics: tuple[str, ...]
    make: "Callable[[str], list[str | Grid]]"

    def get_first(self) -> "list[str | Grid]":
        """Return what is shown where nobody can choose."""
        return self.make(self.metrics[0])

    def map(self, change: "Callable[[str | Grid], str | Grid]") -> "Variants":
        """Return the same with every sentence and grid changed."""
        return Variants(self.metrics, lambda metric: [change(x) for x in self.make(metric)])


@dataclass(frozen=True)
class Document:
    """A report: the verdict answers what was asked, blocks show it, notes say how it was found.

    Blocks are sentences, grids, variants of these and sections. A section is a document: its
    verdict and its blocks are read in its place, its notes at the end of the whole report. Details
    are blocks that files have, and a terminal on demand; `details_note` stands where they do not.
    `verdicts` answer by other metrics, too; the verdict is the first of them. Pages name the
    `source` on their tab, and say by `metric_titles` what the metric of a verdict measures.
    Markdown begins with the `front_matter`, lines of YAML for programs.
    """

    title: str
    blocks: "tuple[Block, ...]" = ()
    verdict: str = ""
    notes: tuple[str, ...] = ()
    details: "tuple[Block, ...]" = ()
    verdicts: dict[str, str] = field(default_factory=dict)
    details_note: str = ""
    source: str = ""
    metric_titles: dict[str, str] = field(default_factory=dict)
    front_matter: str = ""

    def __post_init__(self) -> None:
        """Take out of sentences what could drive a terminal."""
        blocks = tuple(
            replace_control_characters(b) if isinstance(b, str) else b for b in self.blocks
        )
        object.__setattr__(self, "blocks", blocks)
        for name in ("title", "verdict"):
            object.__setattr__(self, name, replace_control_characters(getattr(self, name)))

    def list_body(self, *, details: bool = True) -> Iterator[str | Grid]:
        """Yield the sentences and grids above the notes, those of sections in their places."""
        if self.verdict:
            yield self.verdict
        for block in self.list_blocks(details=details):
            if isinstance(block, Variants):
                yield from filter(None, block.get_first())
            else:
                yield block

    def list_blocks(self, *, details: bool = True) -> "Iterator[str | Grid | Variants]":
        """Yield what stands between verdict and notes, with all variants."""
        for block in (*self.blocks, *(self.details if details else [self.details_note])):
            if isinstance(block, Document):
                yield from filter(None, [block.verdict])
                yield from block.list_blocks(details=details)
            elif block:
                yield block

    def answer_first(self) -> "Document":
        """Return the report with the verdicts of its sections at its head, not in their places."""
        sections = [b for b in self.blocks if isinstance(b, Document)]
        blocks = [replace(b, verdict="") if isinstance(b, Document) else b for b in self.blocks]
        further = [section.verdict for section in sections if section.verdict]
        return replace(
            self,
            blocks=tuple(blocks),
            verdict=" ".join([self.verdict, *further]),
            verdicts={name: " ".join([said, *further]) for name, said in self.verdicts.items()},
        )

    def list_notes(self) -> list[str]:
        """Return the notes of the whole report, each once."""
        sections = [b for b in self.blocks if isinstance(b, Document)]
        notes = [*self.notes, *(note for section in sections for note in section.list_notes())]
        return list(dict.fromkeys(replace_control_characters(note) for note in notes if note))


Block: TypeAlias = str | Grid | Variants | Document


StoreText = Callable[[str], str]  # puts a text into a file beside the report, and names it


class Renderable(Protocol):
    """What a renderer may ask of a result."""

    def document(self) -> Document:
        """Return the report for people."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each number."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, nan as None."""

    def make_charts(self) -> "Iterable[Chart]":
        """Return the views, made as they are asked for."""

    def list_charts(self) -> "list[Chart]":
        """Return the views."""

    def describe_provenance(self, store: StoreText | None = None) -> dict[str, Any]:
        """Return what made the report, and what it is made of."""


def format_cell(cell: Cell, digits: int = 3) -> str:
    """Return a cell as people read it: integers without digits, undefined by name, None as nothing.

    >>> [format_cell(cell) for cell in (0.12345, 7, 7.0, float("nan"), None, "B1")]
    ['0.123', '7', '7.000', 'undefined', '', 'B1']
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        return UNDEFINED if math.isnan(cell) else f"{cell:z.{digits}f}"
    return str(cell)


def format_interval(low: float, high: float, digits: int = 3) -> str | None:
    """Return an interval as people read it, and nothing where there is none.

    >>> format_interval(0.5, 0.75)
    '0.500 to 0.750'
    """
    return join_bounds(low, high, lambda x: format_cell(x, digits))


def join_bounds(low: float, high: float, format_value: Callable[[float], str]) -> str | None:
    """Return an interval whose bounds are written so, and nothing where there is none.

    >>> join_bounds(13.66, float("inf"), str)
    '≥ 13.66'
    """
    if math.isnan(low) or math.isnan(high):
        return None
    if math.isinf(high):
        return f"≥ {format_value(low)}"
    if math.isinf(low):
        return f"≤ {format_value(high)}"
    return f"{format_value(low)} to {format_value(high)}"


def format_grid_rows(grid: Grid) -> list[list[str]]:
    """Return header and rows as texts that cannot drive a terminal."""
    return [
        [replace_control_characters(format_cell(cell)) for cell in row]
        for row in (grid.header, *grid.rows)
    ]
