"""The gallery: its code runs, its pictures are what the code makes, and every view is there."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery.md"
MOST_BYTES = 1_500_000  # of all pictures
ROUNDING = 0.51  # coordinates of other versions of numeric libraries
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NAMED = re.compile(r'(?:Chart|make_chart|_chart_cells)\(\s*(?:result,\s*)?"(\w+)"')
# Of models fitted with the page: their last digits, and ticks with them, are the processor's.
FITTED = {"history", "importance", "learning_curves", "optimism", "screening"}
ELSEWHERE = {"case_leaderboard", "replication"}  # like another view, or made by a long study


@pytest.fixture(scope="module")
def drawn():
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    return build.draw_gallery(GALLERY.read_text("utf-8"))


def read_elements(drawing):
    """Return tags and texts in their order, and all numbers in attributes."""
    elements = [*ET.fromstring(drawing).iter()]  # noqa: S314 - of our own making
    shape = [(x.tag, x.text, sorted(x.attrib)) for x in elements]
    numbers = [float(n) for x in elements for v in x.attrib.values() for n in NUMBER.findall(v)]
    return shape, numbers


def read_words(drawing):
    """Return what is written, whatever the numbers in it."""
    return {(tag, NUMBER.sub("#", text)) for tag, text, _ in read_elements(drawing)[0] if text}


def test_pictures_are_what_the_code_makes(drawn):
    folder = GALLERY.with_suffix("")
    assert {path.stem for path in folder.glob("*.svg")} == {*drawn}
    for name, drawing in drawn.items():
        kept = (folder / f"{name}.svg").read_text("utf-8")
        assert read_words(kept) == read_words(drawing), name
        if name not in FITTED:
            shape, numbers = read_elements(drawing)
            kept_shape, rounded = read_elements(kept)
            assert kept_shape == shape, name
            assert numbers == pytest.approx(rounded, abs=ROUNDING), name


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
