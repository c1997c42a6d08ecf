"""HTML: a piece for notebooks, a page for files."""

from html import escape

from ordinate.render.document import NOTES_TITLE, Document, Grid, format_grid_rows


def render(document: Document) -> str:
    """Return the document as a piece of HTML; every text in it is escaped."""
    parts = [f"<h3>{escape(document.title)}</h3>"]
    parts += [
        _render_grid(b) if isinstance(b, Grid) else f"<p>{escape(b)}</p>"
        for b in document.list_body()
    ]
    if notes := document.list_notes():
        items = "".join(f"\n<li>{escape(note)}</li>" for note in notes)
        parts.append(f"<p>{NOTES_TITLE}</p>\n<ul>{items}\n</ul>")
    return '<div class="ordinate">\n' + "\n".join(parts) + "\n</div>\n"


def render_page(document: Document) -> str:
    """Return the document as a complete page, which says how its characters are encoded."""
    title = escape(document.title)
    head = f'<meta charset="utf-8">\n<title>{title}</title>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n{render(document)}</body>\n</html>\n"
    )


def _render_grid(grid: Grid) -> str:
    header, *rows = format_grid_rows(grid)
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "\n".join(f"<tr>{_render_cells(row, grid.left)}</tr>" for row in rows)
    caption = f"<caption>{escape(grid.title)}</caption>" if grid.title else ""
    return f"<table>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _render_cells(row: list[str], left: int) -> str:
    words = "".join(f'<th scope="row">{escape(cell)}</th>' for cell in row[:left])
    return words + "".join(f'<td style="text-align:right">{escape(x)}</td>' for x in row[left:])
