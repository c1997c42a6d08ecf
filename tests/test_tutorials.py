"""Tutorials run as notebooks, in a kernel, and show what they print and draw."""

import pytest
from shown_output import (
    ROOT,
    assert_same_drawing,
    list_words,
    load_script,
    skip_other_versions,
)

FOLDER = ROOT / "docs" / "tutorials"
MOST_BYTES = 200_000  # of all pictures
FITS = {"density-surrogate", "tune-from-texts"}  # half a minute each, where much else runs


TUTORIALS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in FITS))
    for path in sorted(FOLDER.glob("*.md"))
]


@pytest.mark.parametrize("path", TUTORIALS)
def test_a_tutorial_shows_what_its_cells_print_and_draw(path):
    if path.stem in FITS:
        skip_other_versions()
    page = path.read_text("utf-8")
    made, pictures = load_script("notebooks").with_cells(page)
    assert list_words(made) == list_words(page)
    assert {x.name for x in (FOLDER / path.stem).glob("*")} == {x.split("/")[1] for x in pictures}
    for name, drawing in pictures.items():
        assert_same_drawing(drawing, FOLDER / name, fitted=path.stem in FITS)


def test_a_page_that_hides_what_a_cell_prints_is_refused():
    with pytest.raises(ValueError, match="shows something else"):
        load_script("notebooks").with_cells("```python\nprint('hidden')\n```\n")


def test_a_cell_that_fails_names_its_error():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        load_script("notebooks").with_cells("```python\n1 / 0\n```\n\n```text\n1\n```\n")


def test_tutorials_are_written_as_notebooks(tmp_path):
    load_script("notebooks").main(tmp_path)
    written = {x.stem for x in tmp_path.glob("*.ipynb")}
    assert (
        written
        == {x.stem for x in FOLDER.glob("*.md")}
        == {
            *("billion-rows", "cefr-classifier", "density-surrogate"),
            *("is-a-really-better", "tune-from-texts", "which-metric"),
        }
    )


def test_pictures_are_small():
    assert sum(x.stat().st_size for x in FOLDER.rglob("*.svg")) < MOST_BYTES
