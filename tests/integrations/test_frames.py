"""Frames of pandas and Polars have the namespace `ordinate` once it is asked for."""

import subprocess
import sys

import pandas as pd
import polars as pl
import pytest

import ordinate
from ordinate.errors import MissingExtra
from ordinate.integrations import frames
from ordinate.integrations.frames import register_frames

COLUMNS = {
    "level": ["A1", "B1", "B2", "A2"],
    "one": ["A1", "B2", "B2", "A2"],
    "two": ["A1", "A1", "B2", "B1"],
    "target": [1.0, 2.0, 3.0, 4.0],
    "guess": [1.5, 2.0, 2.5, 4.0],
}


@pytest.fixture(params=[pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=lambda x: x.__module__)
def frame(request):
    assert register_frames() == ["pandas", "polars"]  # as often as one likes
    return request.param(COLUMNS)


def test_a_frame_evaluates_its_columns(frame):
    found = frame.ordinate.evaluate("level", "one", metrics="mae")
    assert found.metrics["mae"].value == 0.25
    assert found == ordinate.evaluate(frame, gold="level", predicted="one", metrics="mae")


def test_a_frame_compares_its_columns(frame):
    found = frame.ordinate.compare("level", ["one", "two"], metrics="mae", resamples=100)
    assert found.to_dict()["systems"] == ["one", "two"]


def test_a_frame_evaluates_a_regression(frame):
    found = frame.ordinate.evaluate_regression("target", "guess", interval=None)
    assert found.metrics["mae"].value == 0.25


def test_frames_of_nobody_are_not_registered(monkeypatch):
    monkeypatch.setattr(frames, "_REGISTRIES", {"a library without frames": lambda: True})
    with pytest.raises(MissingExtra, match="import pandas or polars first"):
        register_frames()


def test_importing_the_module_registers_nothing_and_imports_no_frames():
    code = (
        "import sys, ordinate.integrations.frames as frames\n"
        "assert not {'pandas', 'polars'} & set(sys.modules)\n"
        "import polars\n"
        "assert not hasattr(polars.DataFrame, 'ordinate')\n"
        "print(frames.register_frames())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "['polars']\n", ran.stderr
