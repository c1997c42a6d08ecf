"""HTML: sentences, tables and drawings as elements, and a piece of them for notebooks."""

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files

from ordinate.errors import replace_control_characters
from ordinate.render import svg
from ordinate.render.charts import Chart
from ordinate.render.document import NOTES_TITLE, Document, Grid, format_grid_rows

MOST_DRAWINGS = 2  # of a piece: those that answer first
LARGEST_PIECE = 200_000  # letters of a piece, without its style sheet
TOO_LARGE = "What stands here is too large for a notebook: result.save('report.html') shows it."
LONGEST_CELL, LONGEST_SENTENCE = 240, 2_000  # letters; the rest of a longer text is scrolled to


def render_piece(document: Document, charts: Iterable[Chart] = ()) -> str:
    """Return a result for a notebook: the verdict, the first charts, all else to be opened.

    Its style sheet concerns nothing outside it, and it has no identifiers and no script.
    """
    first = list({chart.name: chart for chart in reversed([*charts])}.values())[::-1]
    drawings = list(map(svg.render_drawing, first[:MOST_DRAWINGS]))
    blocks = [
        render_grid(block) if isinstance(block, Grid) else render_text(block)
        for block in list(document.list_body())[1 if document.verdict else 0 :]
    ]
    if notes := render_notes(document):
        blocks.append(f"<h4>{NOTES_TITLE}</h4>\n{notes}")
    shown = _bound([*drawings, *blocks])
    drawn, body = "\n".join(shown[: len(drawings)]), "\n".join(shown[len(drawings) :])
    if drawings:
        body = f"{drawn}\n<details>\n<summary>Tables and notes</summary>\n{body}\n</details>"
    verdict = render_text(document.verdict, kind="verdict") if document.verdict else ""
    return (
        f'<div class="ordinate">\n<style>{read_style("html.css")}{svg.STYLE}</style>\n'
        f"{render_text(document.title, 'h3')}\n{verdict}\n{body}\n</div>\n"
    )


def _bound(elements: list[str]) -> list[str]:
    """Return elements of which large ones are a sentence: a notebook keeps all that it shows."""
    room, shown = LARGEST_PIECE, []
    for element in elements:
        fits = len(element) <= room
        room -= len(element) if fits else 0
        shown.append(element if fits else render_text(TOO_LARGE))
    return shown


@cache
def read_style(name: str) -> str:
    """Return a style sheet of the package; the one of pieces begins with their colours."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return text.replace("/* themes */\n", svg.write_themes(".ordinate"))


def escape_text(text: str) -> str:
    """Return a text in which nothing is markup and nothing drives a terminal."""
    return escape(replace_control_characters(text))


def render_text(text: str, tag: str = "p", kind: str = "", more: str = "") -> str:
    """Return a text as an element, which is scrolled if the text is very long."""
    if len(text) > LONGEST_SENTENCE:
        kind, more = f"{kind} long".strip(), f'{more} tabindex="0"'
    named = f' class="{kind}"' if kind else ""
    return f"<{tag}{named}{more}>{escape_text(text)}</{tag}>"


def render_notes(document: Document) -> str:
    """Return the notes of a report as a list, and nothing where there are none."""
    items = "\n".join(render_text(note, "li") for note in document.list_notes())
    return f"<ul>\n{items}\n</ul>" if items else ""


def render_grid(grid: Grid) -> str:
    """Return a table; rows that are totals stand at its foot."""
    header, *rows = format_grid_rows(grid)
    head = "".join(
        f'<th scope="col"{"" if k < grid.left else NUMBER}>{escape_text(name)}</th>'
        for k, name in enumerate(header)
    )
    caption = f"<caption>{_render_cell(grid.title)}</caption>" if grid.title else ""
    lines = [f"<tr>{_render_cells(list(map(_render_cell, row)), grid.left)}</tr>" for row in rows]
    count = len(lines) - grid.totals
    body, foot = "\n".join(lines[:count]), "\n".join(lines[count:])
    return (
        f'<div class="table">\n<table>{caption}\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n"
        + (f"<tfoot>\n{foot}\n</tfoot>\n" if foot else "")
        + "</table>\n</div>"
    )


NUMBER = ' class="n"'


def _render_cells(row: list[str], left: int) -> str:
    words = "".join(
        f'<th scope="row">{cell}</th>' if k == left - 1 else f"<td>{cell}</td>"
        for k, cell in enumerate(row[:left])
    )
    return words + "".join(f"<td{NUMBER}>{cell}</td>" for cell in row[left:])


def _render_cell(text: str) -> str:
    if len(text) <= LONGEST_CELL:
        return escape_text(text)
    return f'<span class="long" tabindex="0">{escape_text(text)}</span>'
