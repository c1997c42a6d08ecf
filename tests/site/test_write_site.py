"""A site shows every report of a folder, and what is broken stops nothing."""

import base64
import copy
import hashlib
import json
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from command import run
from report_folders import GOLD, SHIFTED, evaluate, save_report
from verified_reports import change_digit

import ordinate
from ordinate.errors import BadInput, BadOutput
from ordinate.examples import locate_example
from ordinate.render import RENDERERS
from ordinate.results.provenance import compute_checksum
from ordinate.results.verification import load_report, verify
from ordinate.site import write_site

PAGES = ["compare.html", "index.html", "items.html", "leaderboard.html"]
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "../x",
    "😀",
    "\u202eمرحبا",
    "'\"&",
    "L" * 10_000,
]


class Tags(HTMLParser):
    """Collects tags with their attributes, and what stands in scripts and style sheets."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.code, self.texts = [], [], []
        self._open = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in {"script", "style"} else None

    def handle_endtag(self, _):
        self._open = None

    def handle_data(self, data):
        if self._open:
            self.code.append((*self._open, data))
        else:
            self.texts.append(data)


def read_pages(site):
    return {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in find_pages(site)}


def find_pages(site):
    return sorted(site.rglob("*.html"))


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def read_tree(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_report_has_a_row_and_a_page_that_can_be_verified(reports, tmp_path):
    site = tmp_path / "site"
    listing = write_site(reports, site)
    assert [(one["path"], one["kind"], one["date"][:10]) for one in listing.rows()] == [
        ("third.json", "regression", "2024-10-06"),
        ("runs/second.html", "comparison", "2024-10-05"),
        ("first.json", "evaluation", "2024-10-04"),
    ]
    assert listing.broken == ()
    assert sorted(path.name for path in site.iterdir()) == sorted(
        [*PAGES, "manifest.json", "reports"]
    )
    for row in listing.rows():
        page = site / row["page"]
        result = load_report(reports / row["path"])
        assert page.read_text("utf-8") == RENDERERS["html"](result)
        assert verify(page).agrees
    index = (site / "index.html").read_text("utf-8")
    assert all(f'<a href="{row["page"]}">{row["path"]}</a>' in index for row in listing.rows())
    assert "3 reports of 4 systems on 2 data sets." in index


def test_the_headline_is_the_best_system_by_the_first_metric(reports, tmp_path):
    rows = {one["path"]: one for one in write_site(reports, tmp_path / "site").rows()}
    mae = evaluate(SHIFTED).metrics["mae"]
    second = rows["runs/second.html"]
    assert (second["system"], second["metric"]) == ("good", "mae")
    for row in (rows["first.json"], second):
        assert (row["value"], row["low"], row["high"]) == (
            mae.value,
            mae.estimate.low,
            mae.estimate.high,
        )
    assert rows["first.json"]["system"] == "first"


def test_every_link_leads_somewhere_and_no_page_asks_for_anything_else(reports, tmp_path):
    site = tmp_path / "site"
    write_site(reports, site)
    for path, page in read_pages(site).items():
        parsed = Tags(page)
        for tag, attributes in parsed.tags:
            if tag == "a" and not attributes["href"].startswith("#"):
                assert ((site / path).parent / attributes["href"]).is_file()
            assert "src" not in attributes
            assert not [name for name in attributes if name.startswith("on")]
        (policy,) = [x["content"] for tag, x in parsed.tags if "http-equiv" in x]
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        for _, attributes, text in parsed.code:
            if not attributes.get("type", "").startswith("application/"):  # data are no code
                digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
                assert f"'sha256-{digest}'" in policy


def test_names_of_any_kind_are_text(tmp_path):
    folder, site = tmp_path / "reports", tmp_path / "site"
    systems = dict.fromkeys(HOSTILE, GOLD)
    hostile = ordinate.compare(GOLD, systems, "cefr", metrics="mae", resamples=100)
    save_report(hostile, folder / "<img src=x onerror=alert(1)>😀\u202e.json")
    scale = ordinate.Scale(HOSTILE)
    labels = ordinate.evaluate(HOSTILE, HOSTILE[::-1], scale, metrics="mae", by=HOSTILE)
    save_report(labels, folder / ("x" * 200 + ".html"))
    listing = write_site(folder, site)
    assert len(listing.reports) == 2
    assert listing.broken == ()
    tame = {"a", "body", "button", "caption", "desc", "details", "div", "figcaption", "figure"}
    for path, page in read_pages(site).items():
        assert re.fullmatch(r"(reports/)?[a-z0-9-]+\.html", path)
        parsed = Tags(page)
        assert not {tag for tag, _ in parsed.tags} & {"img", "b", "alert"}
        assert sum(tag == "script" for tag, _ in parsed.tags) <= 4
        assert tame & {tag for tag, _ in parsed.tags}
        assert not [x for _, x in parsed.tags if any(name.startswith("on") for name in x)]
        for _, attributes, text in parsed.code:
            if attributes.get("type") == "application/json" and attributes.get("id") == "reports":
                names = {value["system"] for one in json.loads(text) for value in one["values"]}
                assert set(HOSTILE) <= names
    shown = "".join(Tags((site / "leaderboard.html").read_text("utf-8")).texts)
    assert "<script>alert(1)</script>" in shown


BROKEN = {
    "cut.json": ('{"schema": 1, "task": "lab', "cut off"),
    "empty.html": ("", "neither a page nor JSON"),
    "foreign.html": ("<html><script>alert(1)</script></html>", "no report of Ordinate"),
    "foreign.json": ('{"name": "package"}', "no report of Ordinate"),
    "list.json": ("[1, 2]", "neither a page nor JSON"),
    "deep.json": ('{"a":' * 100_000, "damaged or cut off"),
    "bytes.json": (b"\xff\xfe\x00", "it is no text"),
}


def forge_counts(stored, number):
    """Return a report of another count, whose checksum is right."""
    provenance = copy.deepcopy(stored["provenance"])
    waiting = [provenance["made_of"]]
    while waiting:
        part = waiting.pop()
        if part.get("$") == "ConfusionMatrix":
            part["weights"][0][0] = number
        waiting += [x for x in part.values() if isinstance(x, dict)]
    assert provenance != stored["provenance"]
    provenance["sha256"] = compute_checksum(provenance, provenance["made_of"])
    return stored | {"provenance": provenance}


def test_what_is_broken_is_shown_with_its_reason_and_stops_nothing(reports, tmp_path):
    for name, (content, _) in BROKEN.items():
        data = content if isinstance(content, bytes) else content.encode()
        (reports / name).write_bytes(data)
    stored = json.loads((reports / "first.json").read_text("utf-8"))
    (reports / "huge.json").write_text(json.dumps(forge_counts(stored, 10**400)))
    (reports / "infinite.json").write_text(json.dumps(stored).replace("0.95", "1e999"))
    (reports / "changed.json").write_text(json.dumps(stored).replace("15.0", "16.0"))
    listing = write_site(reports, tmp_path / "site")
    reasons = {one.path: one.reason for one in listing.broken}
    assert {*reasons} == {*BROKEN, "huge.json", "infinite.json", "changed.json"}
    for name, (_, reason) in BROKEN.items():
        assert reason in reasons[name]
    assert "was changed after it was written" in reasons["changed.json"]
    assert [one.report.path for one in listing.reports] == [
        "third.json",
        "runs/second.html",
        "first.json",
    ]
    shown = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "10 files are broken." in shown
    assert "alert(1)" not in shown


def test_an_empty_folder_has_a_site_that_says_so(tmp_path):
    (tmp_path / "empty").mkdir()
    listing = write_site(tmp_path / "empty", tmp_path / "site")
    assert listing.document().verdict == "There is no report in empty."
    assert [path.name for path in find_pages(tmp_path / "site")] == PAGES


def test_the_same_report_in_two_formats_is_shown_once(tmp_path):
    save_report(evaluate(GOLD), tmp_path / "in" / "a.html")
    save_report(evaluate(GOLD), tmp_path / "in" / "b.json")
    listing = write_site(tmp_path / "in", tmp_path / "site")
    assert [one.report.path for one in listing.reports] == ["a.html"]
    assert listing.same == (("b.json", "a.html"),)


def test_shards_are_no_reports_and_not_broken(reports, tmp_path):
    before = write_site(reports, tmp_path / "before").rows()
    labels = ["count", locate_example("cefr"), "--gold", "gold", "--predicted", "predicted"]
    systems = ["count", locate_example("systems"), "--systems", "tfidf,forest"]
    for name, command in {"monday": labels, "two": systems}.items():
        assert run(*command, "-o", reports / f"{name}.json").code == 0
    listing = write_site(reports, tmp_path / "site")
    assert (listing.rows(), listing.broken) == (before, ())
    shards = tmp_path / "shards"
    shards.mkdir()
    (reports / "two.json").rename(shards / "two.json")
    assert "There is no report in shards." in str(write_site(shards, tmp_path / "none"))


def test_a_report_that_shows_other_numbers_is_broken_and_displaces_none(tmp_path):
    for form in ("json", "html"):
        save_report(evaluate(SHIFTED), tmp_path / "in" / f"whole.{form}")
        changed = save_report(evaluate(SHIFTED), tmp_path / "in" / f"changed.{form}")
        text = changed.read_text("utf-8")
        place = re.search(r'"value": 0\.\d|<td class="n">0\.\d', text).end() - 1
        changed.write_text(change_digit(text, place), "utf-8")
    listing = write_site(tmp_path / "in", tmp_path / "site")
    assert [one.report.path for one in listing.reports] == ["whole.html"]
    assert listing.same == (("whole.json", "whole.html"),)
    assert [one.path for one in listing.broken] == ["changed.html", "changed.json"]
    assert all("it was changed after it was written" in one.reason for one in listing.broken)


def test_a_page_whose_report_is_large_can_be_verified(tmp_path, monkeypatch):
    monkeypatch.setattr("ordinate.results.provenance.LARGEST_MADE_OF", 500)
    save_report(evaluate(SHIFTED, groups=list(range(60))), tmp_path / "in" / "large.html")
    site = tmp_path / "site"
    (row,) = write_site(tmp_path / "in", site).rows()
    assert verify(site / row["page"]).agrees
    assert len(list_names(site / "reports")) == 2
    write_site(tmp_path / "in", site, force=True)
    assert verify(site / row["page"]).agrees


def test_links_hidden_files_and_other_sites_are_left_alone(reports, tmp_path):
    outside = save_report(evaluate(GOLD), tmp_path / "outside" / "secret.json")
    (reports / "link.json").symlink_to(outside)
    (reports / "folder").symlink_to(outside.parent)
    save_report(evaluate(GOLD), reports / ".hidden" / "report.json")
    site = reports / "site"
    first = write_site(reports, site)
    again = write_site(reports, site, force=True)
    assert first.rows() == again.rows()
    assert len(again.reports) == 3
    assert again.broken == ()


# --- where it is written -------------------------------------------------------------------------


def test_nothing_is_overwritten_but_a_site_and_that_when_asked(reports, tmp_path):
    site = tmp_path / "site"
    write_site(reports, site)
    before = read_tree(site)
    with pytest.raises(BadOutput, match=r"exists already\. Pass --force"):
        write_site(reports, site)
    (site / "notes.txt").write_text("mine")
    with pytest.raises(BadOutput, match=r"holds 'notes\.txt', which is no part of the site"):
        write_site(reports, site, force=True)
    (site / "notes.txt").unlink()
    assert read_tree(site) == before
    save_report(evaluate(GOLD), reports / "more.json")
    assert len(write_site(reports, site, force=True).reports) == 4
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_no_site_is_never_replaced(reports, tmp_path, kind):
    target = tmp_path / "mine"
    if kind == "folder":
        target.mkdir()
    elif kind == "file":
        target.write_text("mine")
    else:
        write_site(reports, tmp_path / "site")
        target.symlink_to(tmp_path / "site")
    with pytest.raises(BadOutput, match="no site that Ordinate wrote"):
        write_site(reports, target, force=True)


def test_the_reports_themselves_are_never_replaced(reports, tmp_path):
    for target in (reports, tmp_path):
        with pytest.raises(BadOutput, match="holds the reports"):
            write_site(reports, target, force=True)
    with pytest.raises(BadInput, match="is no folder"):
        write_site(tmp_path / "nowhere", tmp_path / "site")
    assert not (tmp_path / "site").exists()


KILLED = """
import os, signal, sys
from ordinate.site import write_site
seen = []
def kill(path):
    seen.append(path)
    if len(seen) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
write_site(sys.argv[1], sys.argv[2], force=len(sys.argv) > 3, progress=kill)
"""


def test_a_kill_leaves_no_half_site(reports, tmp_path):
    site = tmp_path / "site"
    run = [sys.executable, "-c", KILLED, str(reports), str(site)]
    assert subprocess.run(run, check=False).returncode == -signal.SIGKILL
    assert not site.exists()
    write_site(reports, site)
    before = read_tree(site)
    assert subprocess.run([*run, "--force"], check=False).returncode == -signal.SIGKILL
    assert read_tree(site) == before
    assert len(write_site(reports, site, force=True).reports) == 3


def test_an_error_midway_leaves_nothing(reports, tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_site(reports, tmp_path / "site", progress=interrupt)
    assert list_names(tmp_path) == ["reports"]
