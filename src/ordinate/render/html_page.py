"""HTML pages: a whole report in one file, which needs no network and runs no script but its own.

Everything is drawn and written here, every variant of it. The script (`page.js`) shows variants
and sorts; without it, the first variants are shown.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ordinate.render import svg
from ordinate.render.charts import Chart
from ordinate.render.document import NOTES_TITLE, Document, Grid, Variants
from ordinate.render.html import (
    escape_text,
    read_style,
    render_grid,
    render_notes,
    render_text,
)
from ordinate.render.page_variants import render_chooser, render_variants

if TYPE_CHECKING:
    from ordinate.render import Renderable, StoreText

LONGEST_TITLE = 120  # letters of what a browser writes on a tab
LARGEST_SUMMARY = 1_000_000  # letters of the report as JSON; a larger one is left out
VERIFY = " <code>ordinate verify</code> makes this page again, and says whether all digits agree."
METRIC = "metric"
Choices: TypeAlias = Mapping[str, Sequence[str]]  # what can be chosen, by what varies


def render_page(result: "Renderable", store: "StoreText | None" = None) -> str:
    """Return a report as a page: verdict, charts, tables, notes."""
    document, charts = result.document(), result.list_charts()
    choices = _list_choices(document, charts)
    sections = [
        Section("verdict", "Verdict", _render_verdict(document, choices)),
        Section("charts", "Charts", _render_charts(charts, choices)),
        Section("tables", "Tables", _render_blocks(document, choices)),
        Section("notes", NOTES_TITLE, render_notes(document)),
    ]
    written = [section for section in sections if section.content]
    script = files(__package__).joinpath("page.js").read_text(encoding="utf-8")
    head = _render_head(document, script)
    data = [_render_summary(result)]
    data += [_render_data("ordinate-provenance", result.describe_provenance(store))]
    parts = [
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{head}\n</head>',
        '<body class="ordinate">',
        _render_header(document, choices, written),
        "<main>\n" + "\n".join(section.render() for section in written) + "\n</main>",
        f"<footer><p>Made with Ordinate {version('ordinate')}.{VERIFY}</p></footer>",
        *filter(None, data),
        f'<script type="module">{script}</script>',
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


class Section(NamedTuple):
    """A part of the page with a head of its own; one without content is not written."""

    name: str
    title: str
    content: str

    def render(self) -> str:
        """Return the section."""
        return (
            f'<section id="{self.name}" aria-labelledby="{self.name}-title">\n'
            f'<h2 id="{self.name}-title">{self.title}</h2>\n{self.content}\n</section>'
        )


# --- head ----------------------------------------------------------------------------------------


def _render_head(document: Document, script: str) -> str:
    """Return what a browser must know first: whose code it may run, titles, style sheets."""
    chosen = "".join(
        f"@media screen{{[data-theme={name}] .ordinate,[data-theme={name}] .ordinate-chart"
        f"{{{colours}}}}}\n"
        for name, colours in (("light", svg.LIGHT), ("dark", svg.DARK))
    )
    page = read_style("html.css") + read_style("page.css") + chosen
    policy = (
        f"default-src 'none'; style-src {_hash(page)} {_hash(svg.STYLE)}; "
        f"script-src {_hash(script)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    title = ": ".join(filter(None, [document.source, document.title]))
    title = title[: LONGEST_TITLE - 1] + "…" * (len(title) >= LONGEST_TITLE)
    return "\n".join(
        [
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta name="generator" content="Ordinate {version("ordinate")}">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape_text(title)}</title>",
            f"<style>{page}</style>",
            f'<style id="chart-style">{svg.STYLE}</style>',
        ]
    )


def _hash(text: str) -> str:
    """Return by which hash a content security policy allows a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _render_header(document: Document, choices: Choices, sections: Sequence[Section]) -> str:
    listed = "\n".join(f'<li><a href="#{x.name}">{x.title}</a></li>' for x in sections)
    choosers = "\n".join(render_chooser(kind, names) for kind, names in choices.items())
    return (
        f"<header>\n{render_text(document.title, 'h1')}\n</header>\n"
        f'<div class="top-bar">\n<nav aria-label="Sections">\n<ul>\n{listed}\n</ul>\n</nav>\n'
        f'{choosers}\n<button type="button" id="theme" hidden>Dark</button>\n</div>'
    )


# --- what follows a choice -----------------------------------------------------------------------


def _list_choices(document: Document, charts: Sequence[Chart]) -> Choices:
    """Return the names that are chosen once for the page, by what varies: metric, test set.

    What only one view varies by is chosen there, but for metrics.
    """
    views: dict[str, dict[str, list[str]]] = {METRIC: {}}
    for chart in charts:
        if chart.variant:
            views.setdefault(chart.varies_by, {}).setdefault(chart.name, []).append(chart.variant)
    metrics = [[*document.verdicts]]
    metrics += [[*x.metrics] for x in document.list_blocks() if isinstance(x, Variants)]
    metrics += views.pop(METRIC).values()
    choices = {METRIC: next((names for names in metrics if len(names) > 1), [])}
    choices |= {
        kind: list(dict.fromkeys(name for names in lists.values() for name in names))
        for kind, lists in views.items()
        if len(lists) > 1
    }
    return {kind: names for kind, names in choices.items() if len(names) > 1}


def _render_verdict(document: Document, choices: Choices) -> str:
    """Return what is answered by each metric, and what that measures."""
    verdicts = document.verdicts if len(document.verdicts) > 1 else {"": document.verdict}
    first = next(iter(document.verdicts), "")
    written = {}
    for name, verdict in verdicts.items():
        metric = name or first
        about = document.metric_titles.get(metric, "")
        if verdict:
            more = render_text(f"{metric}: {about}", kind="about") if about else ""
            written[name] = "\n".join(filter(None, [render_text(verdict, kind="verdict"), more]))
    return render_variants(written, METRIC, choices) if written else ""


def _render_charts(charts: Sequence[Chart], choices: Choices) -> str:
    views: dict[tuple[str, str], dict[str, str]] = {}
    for chart in charts:
        views.setdefault((chart.name, chart.varies_by), {})[chart.variant] = _render_figure(chart)
    drawn = "\n".join(
        f'<div class="view">\n{render_variants(figures, varies_by, choices)}\n</div>'
        for (_, varies_by), figures in views.items()
    )
    return f'<div class="views">\n{drawn}\n</div>' if drawn else ""


def _render_figure(chart: Chart) -> str:
    """Return a chart with what it shows; a phone has a drawing of its own."""
    name = "-".join(filter(None, (chart.name, chart.variant)))
    narrow = svg.render_narrow_drawing(chart)
    return (
        f'<figure data-name="{escape_text(name)}">\n<figcaption>\n'
        f"{render_text(chart.title, 'h3')}\n{render_text(chart.description)}\n</figcaption>\n"
        f'<div class="drawing">{svg.render_drawing(chart)}</div>\n'
        + (f"<template>{narrow}</template>\n" if narrow else "")
        + "</figure>"
    )


def _render_blocks(document: Document, choices: Choices) -> str:
    return "\n".join(
        render_variants(
            {name: "\n".join(map(_render_block, block.make(name))) for name in block.metrics},
            METRIC,
            choices,
        )
        if isinstance(block, Variants)
        else _render_block(block)
        for block in document.list_blocks()
    )


def _render_block(block: str | Grid) -> str:
    return render_grid(block) if isinstance(block, Grid) else render_text(block)


# --- data ----------------------------------------------------------------------------------------


def _render_summary(result: "Renderable") -> str:
    """Return the report as JSON, unless it is too large for a page."""
    element = _render_data("ordinate-summary", result.to_dict())
    return "" if len(element) > LARGEST_SUMMARY else element


def _render_data(name: str, values: Any) -> str:
    """Return plain values as JSON in an element, which nothing in them ends."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'
