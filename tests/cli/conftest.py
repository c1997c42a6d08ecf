"""What tests of commands share."""

import tempfile
from pathlib import Path

import pytest
from command import run
from regression_tables import write


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Work in an empty folder, so that files are called by their names."""
    folder, temporary = tmp_path / "work", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def tuned_table(tmp_path_factory):
    """A table, the folder of a search on it, and what the command printed as JSON."""
    base = tmp_path_factory.mktemp("tuned-table")
    data, root = write(base / "data.csv"), base / "found"
    settings = ("--models", "poly_ridge,kernel_ridge", "--trials", "2", "--folds", "2")
    flags = ("--target", "y", "--unit", "kg/m³", *settings, "-e", root, "--format", "json")
    return data, root, run("tune-regression", data, *flags)
