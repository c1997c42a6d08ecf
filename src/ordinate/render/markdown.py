"""Markdown, as in pull requests and notebooks."""

import re

from ordinate.render.document import NOTES_TITLE, Document, Grid, format_grid_rows


def render(document: Document) -> str:
    """Return the document as Markdown."""
    parts = [f"---\n{document.front_matter}\n---"] if document.front_matter else []
    parts += [f"# {escape(document.title)}"]
    parts += [_render_grid(b) if isinstance(b, Grid) else escape(b) for b in document.list_body()]
    if notes := document.list_notes():
        parts += [f"**{NOTES_TITLE}**", "\n".join(f"* {escape(note)}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Return a text in which nothing is taken for markup.

    >>> escape("a|b <c> *d*")
    'a\\|b &lt;c&gt; \\*d\\*'
    """
    flat = " ".join(text.split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", flat)


def _render_grid(grid: Grid) -> str:
    marks = [":--" if index < grid.left else "--:" for index in range(len(grid.header))]
    lines = ["| " + " | ".join(map(escape, row)) + " |" for row in format_grid_rows(grid)]
    lines.insert(1, "| " + " | ".join(marks) + " |")
    title = [f"**{escape(grid.title)}**", ""] if grid.title else []
    return "\n".join([*title, *lines])
