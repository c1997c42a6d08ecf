"""Plain text for a terminal."""

import textwrap
import unicodedata

from ordinate.render.document import Document, Grid, format_grid_rows

LINE_WIDTH = 88


def render(document: Document) -> str:
    """Return the document as plain text."""
    parts = [f"{document.title}\n{'=' * measure_width(document.title)}"]
    parts += [
        _render_grid(b) if isinstance(b, Grid) else _wrap_sentence(b) for b in document.blocks
    ]
    return "\n\n".join(parts) + "\n"


def measure_width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _wrap_sentence(text: str) -> str:
    return textwrap.fill(text, LINE_WIDTH, subsequent_indent="  ", break_long_words=False)


def _render_grid(grid: Grid) -> str:
    rows = format_grid_rows(grid)
    widths = [max(map(measure_width, column)) for column in zip(*rows, strict=True)]
    lines = [_format_line(row, widths, grid.left) for row in rows]
    rule = "-" * max(map(len, lines))
    title = [grid.title] if grid.title else []
    return "\n".join([*title, rule, lines[0], rule, *lines[1:]])


def _format_line(row: list[str], widths: list[int], left: int) -> str:
    cells = []
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        space = " " * (width - measure_width(cell))
        cells.append(cell + space if index < left else space + cell)
    return "  ".join(cells).rstrip()
