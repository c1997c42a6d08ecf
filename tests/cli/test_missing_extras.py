"""With the base dependencies alone, each command of an experiment says which extra to install."""

import os
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest
from experiments import lay_out
from regression_tables import write
from saved_models import crown, save_model

BASE = {"numpy", "scipy", "duckdb", "_duckdb", "narwhals", "ordinate"}
# Run by the process at its start: what is not there cannot be imported.
WITHOUT_EXTRAS = "import sys\nfor name in {names}: sys.modules[name] = None\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with an experiment that has a model, and a table."""
    root = tmp_path_factory.mktemp("made")
    crown(lay_out(root / "study"), save_model(root / "study", "strong"))
    write(root / "data.csv")
    hooks = root / "hooks"
    hooks.mkdir()
    names = sorted(name for name in {*packages_distributions()} - BASE if name.isidentifier())
    (hooks / "sitecustomize.py").write_text(WITHOUT_EXTRAS.format(names=names), "utf-8")
    return root


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("init new", "tune"),
        ("features tfidf -e study", "tune"),
        ("features lexical -e study", "tune"),
        ("tune -e study", "tune"),
        ("predict -e study", "tune"),
        ("rank -e study", "tune"),
        ("tune-regression data.csv --target y -e new", "regression"),
    ],
)
def test_a_missing_package_is_answered_with_the_line_that_installs_its_extra(made, line, extra):
    found = [str(made / "hooks"), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = [sys.executable, "-m", "ordinate", *line.split()]
    settings = os.environ | {"PYTHONPATH": os.pathsep.join(found)}
    ran = subprocess.run(told, cwd=made, env=settings, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert f"pip install 'ordinate[{extra}]'" in ran.stdout + ran.stderr
