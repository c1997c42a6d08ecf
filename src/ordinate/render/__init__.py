"""Showing it: a result says what it is made of, and a renderer writes that down."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

from ordinate.render import text
from ordinate.render.document import Block, Document, Grid, Renderable, StoreText

__all__ = [
    "FORMATS_BY_SUFFIX",
    "RENDERERS",
    "Block",
    "Document",
    "Grid",
    "Renderable",
    "find_terminal_width",
    "render",
]


def _render_json(result: Renderable, store: StoreText | None = None) -> str:
    values, provenance = result.to_dict(), result.describe_provenance(store)
    text = _write_json(values, provenance, ascii_only=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a letter, which no file can have
        return _write_json(values, provenance, ascii_only=True)
    return text


def _write_json(values: Any, provenance: Any, *, ascii_only: bool) -> str:
    """Return a report as JSON; what it is made of is for programs, and stands on one line."""
    write = partial(json.dumps, ensure_ascii=ascii_only, allow_nan=False)
    shown = write(values, indent=2).removesuffix("\n}")
    return f'{shown},\n  "{PROVENANCE}": {write(provenance)}\n}}\n'


def _render_csv(result: Renderable) -> str:
    from ordinate.render.records import render_csv

    return render_csv(result.rows())


def _render_markdown(result: Renderable) -> str:
    from ordinate.render.markup import render_markdown

    return render_markdown(result.document())


def _render_latex(result: Renderable) -> str:
    from ordinate.render.markup import render_latex

    return render_latex(result.document())


def _render_html(result: Renderable, store: StoreText | None = None) -> str:
    from ordinate.render.html import render_page

    return render_page(result, store)


PROVENANCE = "provenance"  # the key of JSON under which a report says what it is made of
PROVEN_FORMATS = {"json", "html"}  # those that `ordinate verify` makes again
RENDERERS: dict[str, Callable[..., str]] = {
    "text": lambda result: text.render(result.document()),
    "json": _render_json,
    "csv": _render_csv,
    "markdown": _render_markdown,
    "latex": _render_latex,
    "html": _render_html,
}
FORMATS_BY_SUFFIX = {
    ".txt": "text",
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
}


def render(
    result: Renderable,
    report_format: str = "text",
    *,
    width: int | None = None,
    details: bool | None = None,
    store: StoreText | None = None,
) -> str:
    """Return a result in one of the formats of `RENDERERS`.

    Text keeps to a width if there is one, at the price of columns and, unless they are asked for,
    of details; other formats are always whole. JSON and pages carry what they are made of, or hand
    it to `store` where it is too large for them.
    """
    if report_format == "text":
        return text.render(
            result.document(),
            width,
            details=width is None if details is None else details,
        )
    if report_format in PROVEN_FORMATS:
        return RENDERERS[report_format](result, store)
    return RENDERERS[report_format](result)


def find_terminal_width() -> int:
    """Return the columns of the terminal, or those of a page where there is none."""
    return max(text.NARROWEST, shutil.get_terminal_size((text.PAGE_WIDTH, 24)).columns)
