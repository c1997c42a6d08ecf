"""What pages show, compared with what runs: words and numbers, and the shapes of drawings."""

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parent.parent.parent
FITTING = ("numpy", "scipy", "scikit-learn", "lightgbm", "optuna", "torch")
ROUNDING = 0.51  # coordinates of other versions of numeric libraries
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def load_script(name):
    """Return a script of the docs as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blank_times_and_hashes(text):
    """Return a text without times and hashes: these change with the last digit of a feature."""
    timeless = re.sub(r"\b[0-9a-f]{64}\b|\d{4}-\d\d-\d\dT[\d:+]+|(?<=python )[\d.]+", "", text)
    return re.sub(r"-(\s*)[0-9a-f]{12}\b", r"-\1hash", timeless)


def list_words(text):
    """Return words, without times and hashes, however they are broken into lines."""
    return re.sub(r"-\s+", "-", blank_times_and_hashes(text)).split()


def find_block(name, start):
    """Return the code of a page that begins so."""
    page = (ROOT / name).read_text("utf-8")
    (block,) = re.findall(rf"^```\w*\n({re.escape(start)}.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return block


def skip_other_versions():
    """Skip a test of fits where the libraries are not those with which pages are made."""
    pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    other = [x for x in FITTING if f"{x}=={version(x).partition('+')[0]}" not in pinned]
    if other:
        pytest.skip(f"other versions of {', '.join(other)} fit other models than the page shows")


def read_elements(drawing):
    """Return tags and texts in their order, and all numbers in attributes."""
    elements = [*ET.fromstring(drawing).iter()]  # noqa: S314 - of our own making
    shape = [(x.tag, x.text, sorted(x.attrib)) for x in elements]
    numbers = [float(n) for x in elements for v in x.attrib.values() for n in NUMBER.findall(v)]
    return shape, numbers


def read_words(drawing):
    """Return what is written in a drawing, whatever the numbers in it."""
    return {(tag, NUMBER.sub("#", text)) for tag, text, _ in read_elements(drawing)[0] if text}


def assert_same_drawing(drawing, file, *, fitted=False):
    """Compare a drawing with the one on file: of fitted models, numbers are the processor's."""
    kept = file.read_text("utf-8")
    assert read_words(kept) == read_words(drawing), file.name
    if not fitted:
        shape, numbers = read_elements(drawing)
        kept_shape, rounded = read_elements(kept)
        assert kept_shape == shape, file.name
        assert numbers == pytest.approx(rounded, abs=ROUNDING), file.name
