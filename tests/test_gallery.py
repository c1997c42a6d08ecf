"""The gallery: its code runs, its pictures are what the code makes, and every view is there."""

import re

import pytest
from shown_output import ROOT, assert_same_drawing, load_script

GALLERY = ROOT / "docs" / "gallery.md"
MOST_BYTES = 1_500_000  # of all pictures
NAMED = re.compile(r'(?:Chart|make_chart|_chart_cells)\(\s*(?:result,\s*)?"(\w+)"')
FITTED = {"history", "importance", "learning_curves", "optimism", "screening"}
ELSEWHERE = {"case_leaderboard", "replication"}  # like another view, or made by a long study


@pytest.fixture(scope="module")
def drawn():
    return load_script("build").draw_gallery(GALLERY.read_text("utf-8"))


@pytest.mark.slow
def test_pictures_are_what_the_code_makes(drawn):
    folder = GALLERY.with_suffix("")
    assert {path.stem for path in folder.glob("*.svg")} == {*drawn}
    for name, drawing in drawn.items():
        assert_same_drawing(drawing, folder / f"{name}.svg", fitted=name in FITTED)


def test_every_view_is_on_the_page():
    made = {
        name
        for path in (ROOT / "src" / "ordinate").rglob("*.py")
        for name in NAMED.findall(path.read_text("utf-8"))
    }
    shown = set(re.findall(r'\.plot\(\s*"(\w+)"', GALLERY.read_text("utf-8")))
    assert made - shown - ELSEWHERE == set()


def test_pictures_are_small():
    folder = GALLERY.with_suffix("")
    assert sum(path.stat().st_size for path in folder.glob("*.svg")) < MOST_BYTES
