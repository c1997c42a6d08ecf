"""HTML: a whole report as a page in one file, and a piece of one for notebooks.

A page needs no network and runs no script but its own. Everything is drawn and written here, every
variant of it: the first stands in the page as it is, the others wait in it, compressed, until they
are chosen. The script (`page.js`) shows variants and sorts; without it, the first ones are shown.
"""

import base64
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from ordinate.render import svg
from ordinate.render.charts import Chart
from ordinate.render.document import (
    NOTES_TITLE,
    Document,
    Grid,
    Renderable,
    StoreText,
    Variants,
    format_grid_rows,
)
from ordinate.render.packed_text import pack_text
from ordinate.render.svg import escape_text

MOST_DRAWINGS = 2  # of a piece: those that answer first
LARGEST_PIECE = 200_000  # letters of a piece, without its style sheet
TOO_LARGE = "What stands here is too large for a notebook: result.save('report.html') shows it."
LONGEST_CELL, LONGEST_SENTENCE = 240, 2_000  # letters; the rest of a longer text is scrolled to
LONGEST_TITLE = 120  # letters of what a browser writes on a tab
LARGEST_SUMMARY = 1_000_000  # letters of the report as JSON; a larger one is left out
VERIFY = " <code>ordinate verify</code> makes this page again, and says whether all digits agree."
METRIC = "metric"
Choices: TypeAlias = Mapping[str, Sequence[str]]  # what can be chosen, by what varies
PACKED_TYPE = "application/x-ordinate-variants"
NONE_TEXT = {"metric": "Undefined by this metric."}


# --- pages ---------------------------------------------------------------------------------------


def render_page(result: Renderable, store: "StoreText | None" = None) -> str:
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


def _render_summary(result: Renderable) -> str:
    """Return the report as JSON, unless it is too large for a page."""
    element = _render_data("ordinate-summary", result.to_dict())
    return "" if len(element) > LARGEST_SUMMARY else element


def _render_data(name: str, values: Any) -> str:
    """Return plain values as JSON in an element, which nothing in them ends."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


# --- variants ------------------------------------------------------------------------------------


def render_variants(
    elements: Mapping[str, str], varies_by: str, choices: Mapping[str, Collection[str]]
) -> str:
    """Return elements of which one is shown: by a choice for the whole page, or by their own.

    `choices` are the names that can be chosen for the whole page, by what varies.
    """
    (first, shown), *others = elements.items()
    if not others:
        return shown
    parts = [
        render_variant(first, shown),
        f'<script type="{PACKED_TYPE}">{pack_text(json.dumps(dict(others)))}</script>',
    ]
    if set(elements) <= set(choices.get(varies_by, ())):
        none = NONE_TEXT.get(varies_by, f"There is none for this {varies_by}.")
        parts.append(f'<p class="none" hidden>{none}</p>')
        head = f'<div class="variants" data-follows="{varies_by}">'
    else:
        head = f'<div class="variants">\n{render_chooser(varies_by, elements)}'
    return "\n".join([head, *parts, "</div>"])


def render_chooser(varies_by: str, names: Iterable[str]) -> str:
    """Return a list of names to choose from, which is hidden until the script runs."""
    options = "".join(f"<option>{escape_text(name)}</option>" for name in names)
    label = varies_by.capitalize()
    return (
        f'<label class="chooser" hidden>{label} <select data-chooses="{varies_by}">{options}'
        "</select></label>"
    )


def render_variant(name: str, element: str) -> str:
    """Return an element that is shown where its name is chosen."""
    return f'<div data-variant="{escape_text(name)}">\n{element}\n</div>'


# --- pieces and elements -------------------------------------------------------------------------


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
