"""A site over a folder of reports: static pages, written whole or not at all."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ordinate.errors import BadInput, BadOutput, OrdinateError, shorten
from ordinate.experiment.layout import TEST_PREDICTIONS_FILE, refuse_reserved_path
from ordinate.experiment.manifest import Manifest
from ordinate.experiment.safe_files import compute_digest, replace_folder
from ordinate.render import Document, Grid, render
from ordinate.render.atomic_files import store_beside
from ordinate.render.charts import Chart
from ordinate.render.document import Link
from ordinate.render.html_page import Section, render_data, render_document
from ordinate.results.base import to_plain
from ordinate.site.leaderboard_history import collect_histories, describe_histories
from ordinate.site.report_listing import ListedReport, ReportListing, flatten_value
from ordinate.site.stored_reports import (
    ARTIFACT,
    BrokenReport,
    StoredReport,
    is_site,
    locate_report,
    read_reports,
)
from ordinate.site.wrong_items import describe_wrong_items, find_wrong_items

PAGES = {
    "index.html": "Reports",
    "leaderboard.html": "Leaderboards",
    "compare.html": "Side by side",
    "items.html": "Wrong items",
}
LINKS = tuple(Link(title, page) for page, title in PAGES.items())
REPORTS = "reports"  # the folder of the pages of reports
LONGEST_NAME = 40  # letters of a file that is called after a report
UNTESTED = (
    "Differences are those of the values, and are not tested: whether a system is significantly "
    "better takes the predictions of both (ordinate compare)."
)
Progress = Callable[[str], None]

SIDE_BY_SIDE = """\
<div id="side-by-side">
<form><label>First <select id="first"></select></label>
<label>Second <select id="second"></select></label></form>
<p id="data" role="status"></p>
<div class="table plain" tabindex="0" role="region" aria-label="Values of both">
<table id="differences"><caption>Values of both, and second minus first</caption>
<thead><tr><th scope="col">metric</th><th scope="col">system</th>\
<th scope="col" class="n">first</th><th scope="col" class="n">second</th>\
<th scope="col" class="n">difference</th><th scope="col" class="n">which is</th></tr></thead>
<tbody></tbody>
</table>
</div>
<div class="pages">
<div class="page"></div>
<div class="page"></div>
</div>
</div>"""


def write_site(
    folder: Path | str,
    output: Path | str,
    *,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> ReportListing:
    """Write a static site over the reports and experiments in a folder, and list them.

    Pages are made again from what reports carry; nothing of a file is executed or copied. The site
    is written whole or not at all. `force` replaces one that Ordinate wrote, and nothing else;
    `progress` is told the path of each report.

    >>> import tempfile
    >>> import ordinate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = ordinate.evaluate(["A1", "B1", "B2"], ["A1", "B1", "C1"], "cefr")
    ...     result.save(f"{folder}/report.html")
    ...     listing = write_site(folder, f"{folder}/site")
    >>> [listed.report.path for listed in listing.reports]
    ['report.html']
    """
    home, site = Path(folder), Path(output)
    _check_paths(home, site, force=force)
    with replace_folder(site) as temporary:
        (temporary / REPORTS).mkdir()
        listing = _write_reports(home, temporary, progress)
        items, problems = _collect_items(home, listing)
        pages = {
            "index.html": (listing.document(), [], ()),
            "leaderboard.html": (*describe_histories(collect_histories(listing.reports)), ()),
            "compare.html": (*_describe_choice(listing), _make_choice(listing)),
            "items.html": (describe_wrong_items(items, problems), [], ()),
        }
        for name, (document, charts, sections) in pages.items():
            _write_page(temporary / name, render_document(document, charts, *sections, links=LINKS))
        command = shlex.join(["ordinate", "site", str(folder), "-o", str(output)])
        Manifest.of(
            temporary, ARTIFACT, home.resolve().name, config={}, data={}, seed=None, command=command
        ).write(temporary)
        _check_paths(home, site, force=force)  # what came meanwhile is not replaced either
    return listing


def _check_paths(folder: Path, output: Path, *, force: bool) -> None:
    """Refuse a folder that is not there, and an output that would take the place of anything."""
    if not folder.is_dir():
        raise BadInput(f"{shorten(str(folder))} is no folder. Name one that holds reports.")
    if folder.resolve().is_relative_to(output.resolve()):
        raise BadOutput(
            f"{shorten(str(output))} holds the reports, so no site can take its place. Name a "
            "folder in it, or another one."
        )
    refuse_reserved_path(output.resolve())
    if not output.exists() and not output.is_symlink():
        return
    if not force:
        raise BadOutput(f"{shorten(str(output))} exists already. Pass --force to replace a site.")
    if output.is_symlink() or not output.is_dir() or not is_site(output):
        raise BadOutput(
            f"{shorten(str(output))} is no site that Ordinate wrote, so it is not replaced. Name "
            "another folder."
        )
    if foreign := Manifest.read(output).list_further_files(output):
        raise BadOutput(
            f"{shorten(str(output))} holds {shorten(foreign[0])}, which is no part of the site. "
            "Move it elsewhere."
        )


def _write_page(path: Path, page: str) -> None:
    path.write_bytes(page.encode(errors="replace"))  # labels may have half a character


# --- pages of reports ----------------------------------------------------------------------------


def _write_reports(folder: Path, site: Path, progress: Progress) -> ReportListing:
    """Write the page of each report while it is at hand, and list all of them."""
    listed: dict[str, ListedReport] = {}
    broken: list[BrokenReport] = []
    same: list[tuple[str, str]] = []
    for found in read_reports(folder):
        progress(found.path)
        if isinstance(found, BrokenReport):
            broken.append(found)
        elif found.digest in listed:
            same.append((found.path, listed[found.digest].report.path))
        else:
            page, problem = _write_report(found, site)
            broken += [problem] if problem else []
            listed[found.digest] = ListedReport(replace(found, result=None), page)
    latest = sorted(listed.values(), key=lambda one: one.report.path)
    latest.sort(key=lambda one: one.report.date, reverse=True)
    return ReportListing(folder.resolve().name, tuple(latest), tuple(broken), tuple(same))


def _write_report(found: StoredReport, site: Path) -> tuple[str | None, BrokenReport | None]:
    """Write the page of a report that can be made again; return its name, or why there is none."""
    if found.result is None:
        return None, None
    page = f"{REPORTS}/{_name_page(found.path)}"
    try:
        with store_beside(site / page) as store:
            _write_page(site / page, render(found.result, "html", store=store))
    except OrdinateError as problem:
        return None, BrokenReport(found.path, f"it has no page: {problem}")
    except Exception as problem:  # noqa: BLE001 - a damaged report may break any view, and no other
        return None, BrokenReport(found.path, f"it has no page ({type(problem).__name__}).")
    return page, None


def _name_page(path: str) -> str:
    """Return a file name of plain letters, one for each path.

    >>> _name_page("runs/Größe 1.json")
    'runs-gr-e-1-json-...html'
    """
    letters = "".join(x if x.isascii() and x.isalnum() else " " for x in path.lower())
    return f"{'-'.join([*letters.split()])[:LONGEST_NAME]}-{compute_digest(path, 8)}.html"


# --- items ---------------------------------------------------------------------------------------


def _collect_items(folder: Path, listing: ReportListing) -> tuple[list[str | Grid], list[str]]:
    """Return the items that systems of experiments got most wrong, and why some have none."""
    items: list[str | Grid] = []
    problems: list[str] = []
    for name in (one.report.path for one in listing.reports if one.report.holds_items):
        try:
            items += find_wrong_items(locate_report(folder, name), name)
        except OrdinateError as problem:
            problems.append(str(problem).replace(f"{folder}/", ""))
        except Exception as problem:  # noqa: BLE001 - damaged predictions may break anything
            problems.append(
                f"{name}: {TEST_PREDICTIONS_FILE} is damaged ({type(problem).__name__})."
            )
    return items, problems


# --- side by side --------------------------------------------------------------------------------


def _describe_choice(listing: ReportListing) -> tuple[Document, list[Chart]]:
    verdict = "Choose two reports: the table has what both say of the same metrics."
    if not listing.reports:
        verdict = "There is no report to choose."
    return Document("Two reports side by side", (), verdict, (UNTESTED,)), []


def _make_choice(listing: ReportListing) -> Sequence[Section]:
    """Return the part of the page in which two reports are chosen, with their values."""
    if not listing.reports:
        return ()
    values = [
        {
            "id": compute_digest(one.report.path, 8),
            "path": one.report.path,
            "title": f"{one.report.path} ({one.report.kind}, {one.date})",
            "page": one.page,
            "values": [to_plain(flatten_value(value)) for value in one.report.values],
        }
        for one in listing.reports
    ]
    content = f"{SIDE_BY_SIDE}\n{render_data('reports', values)}"
    script, policy = "side_by_side.js", "frame-src 'self'"
    return (Section("choose", "Reports", content, script, policy),)
