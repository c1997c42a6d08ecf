"""Showing it: a result says what it is made of, and a renderer writes that down."""

import json
from collections.abc import Callable
from typing import Any, Protocol

from ordinate.render import csv_records, html, latex, markdown, text
from ordinate.render.document import Document, Grid

__all__ = ["RENDERERS", "Document", "Grid", "Result", "html", "render"]


class Result(Protocol):
    """What a renderer may ask of a result."""

    def document(self) -> Document:
        """Return headings, sentences and grids for people."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each number."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, nan as None."""


def _render_json(result: Result) -> str:
    plain = result.to_dict()
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2, default=str) + "\n"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "text": lambda result: text.render(result.document()),
    "json": _render_json,
    "csv": lambda result: csv_records.render(result.rows()),
    "markdown": lambda result: markdown.render(result.document()),
    "latex": lambda result: latex.render(result.document()),
}


def render(result: Result, form: str = "text") -> str:
    """Return a result in one of the forms of `RENDERERS`."""
    return RENDERERS[form](result)
