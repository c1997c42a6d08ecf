"""The examples that ship with the package: there, on their scale, and of known provenance."""

import contextlib
import csv
import io
import json
import re
import subprocess
import sys
from collections import Counter
from importlib.resources import files

import pytest
from command import run

import ordinate
from ordinate.cli.main import main
from ordinate.errors import BadInput
from ordinate.examples import EXAMPLE_FILES, locate_example
from ordinate.scale import PRESETS

FOLDER = files("ordinate.examples")
PROVENANCE = (FOLDER / "README.md").read_text(encoding="utf-8")


def _rows(name: str) -> list[dict[str, str]]:
    with locate_example(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXAMPLE_FILES)
def test_an_example_is_where_it_is_said_to_be(name):
    assert locate_example(name).is_file()
    assert locate_example(name).name == EXAMPLE_FILES[name]


def test_an_unknown_example_is_refused_with_those_that_there_are():
    with pytest.raises(BadInput, match=r"There is no example 'nope'. There are: .*cefr"):
        locate_example("nope")


def test_every_file_that_ships_has_its_provenance():
    shipped = {file.name for file in FOLDER.iterdir() if not file.name.endswith((".py", ".md"))}
    shipped.discard("__pycache__")
    assert shipped == set(EXAMPLE_FILES.values())
    for name in shipped:
        (line,) = [line for line in PROVENANCE.splitlines() if f"`{name}`" in line]
        what, provenance = line.strip("| ").split("|")[1:3]
        assert what.strip()
        assert len(provenance.split()) > 10
        assert "BSD-3-Clause" in provenance


def test_the_cefr_example_is_on_the_cefr_scale_with_every_level():
    rows = _rows("cefr")
    assert {row["gold"] for row in rows} == set(PRESETS["cefr"])
    assert {row["predicted"] for row in rows} <= set(PRESETS["cefr"])
    assert len({row["id"] for row in rows}) == len(rows)
    assert f"{len(rows)} items" in PROVENANCE


def test_the_cefr_example_beats_constants_and_is_not_perfect():
    rows = _rows("cefr")
    columns = ([row[name] for row in rows] for name in ("gold", "predicted"))
    result = ordinate.evaluate(*columns, scale="cefr", by=[row["task"] for row in rows])
    assert all(score.beats_constant is not False for score in result.metrics.values())
    assert 0.3 < result.metrics["accuracy"].value < 0.9
    assert len(result.by) > 1


def test_an_example_is_evaluated_without_further_options():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["evaluate", str(locate_example("cefr")), "--format", "json"]) == 0
    found = json.loads(out.getvalue())
    assert found["n"] == len(_rows("cefr"))
    assert found["scale"] == list(PRESETS["cefr"])


@pytest.mark.parametrize("arguments", [[], ["cefr"]])
def test_the_path_of_an_example_can_be_asked_for(arguments):
    command = [sys.executable, "-m", "ordinate.examples", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{locate_example('cefr')}\n"


def test_the_texts_are_many_for_each_level_and_all_different():
    rows = _rows("texts")
    levels = Counter(row["level"] for row in rows)
    assert levels == dict.fromkeys(PRESETS["cefr"], 42)
    assert len({row["id"] for row in rows}) == len({row["text"] for row in rows}) == len(rows)
    sentences = [re.split(r"(?<=[.!?])\"?\s+(?=[A-Z\"'])", row["text"]) for row in rows]
    assert all(2 <= len(parts) <= 6 for parts in sentences)
    every = [part for parts in sentences for part in parts if len(part.split()) > 3]
    assert len(set(every)) == len(every)
    topics = Counter((row["topic"], row["level"]) for row in rows)
    assert len({topic for topic, _ in topics}) >= 20
    assert all(len({topics[topic, level] for level in levels}) == 1 for topic, _ in topics)


# --- densities -----------------------------------------------------------------------------------


def test_the_densities_are_those_that_the_generator_makes():
    from ordinate.examples.densities import simulate_densities

    assert locate_example("densities").read_text(encoding="utf-8") == simulate_densities()
    assert "600 rows" in PROVENANCE
    assert simulate_densities(5, seed=1) != simulate_densities(5, seed=0)


def test_a_density_fulfils_the_equation_of_state():
    from ordinate.examples.densities import ALKANES, GAS_CONSTANT, compute_density

    for substance in ALKANES:
        for temperature, pressure in [(250.0, 0.2), (450.0, 3.0), (600.0, 50.0)]:
            v = substance.molar_mass * 1e-3 / compute_density(substance, temperature, pressure)
            tc, pc = substance.critical_temperature, substance.critical_pressure * 1e6
            w = substance.acentric_factor
            kappa = 0.37464 + 1.54226 * w - 0.26992 * w * w
            a = (
                0.45724
                * (GAS_CONSTANT * tc) ** 2
                / pc
                * (1 + kappa * (1 - (temperature / tc) ** 0.5)) ** 2
            )
            b = 0.07780 * GAS_CONSTANT * tc / pc
            found = GAS_CONSTANT * temperature / (v - b) - a / (v * v + 2 * b * v - b * b)
            assert found * 1e-6 == pytest.approx(pressure, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "boils"), [("propane", 231.0), ("butane", 272.7), ("hexane", 341.9), ("decane", 447.3)]
)
def test_substances_boil_where_they_do(name, boils):
    from ordinate.examples.densities import ALKANES, compute_density

    (substance,) = [each for each in ALKANES if each.name == name]
    assert compute_density(substance, boils - 4, 0.101325) > 400
    assert compute_density(substance, boils + 4, 0.101325) < 10


def test_the_densities_have_gas_and_liquid_of_every_substance_but_no_order():
    rows = _rows("densities")
    by_name = Counter(row["substance"] for row in rows)
    assert len(by_name) == 10
    assert min(by_name.values()) >= 30
    found = [float(row["density"]) for row in rows]
    assert found != sorted(found)
    assert 0.2 < sum(value < 100 for value in found) / len(found) < 0.6
    assert 0 < min(found) < max(found) < 800


SHOWN = {
    "evaluate": ("evaluate", "cefr", "--predicted", "predicted"),
    "by": ("evaluate", "cefr", "--predicted", "predicted", "--by", "task"),
    "clusters": ("evaluate", "systems", "--predicted", "tfidf", "--groups", "writer"),
    "compare": ("compare", "systems", "--systems", "tfidf,forest,transformer,ensemble"),
    "power": ("power", "systems", "--systems", "tfidf,forest", "--difference", "0.05"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_report_of_an_example_fits_a_page_and_with_fewer_columns_a_terminal(
    name, tmp_path, monkeypatch
):
    command, example, *options = SHOWN[name]
    arguments = (command, locate_example(example), "--gold", "gold", *options)
    report = tmp_path / "report.txt"
    assert run(*arguments, "-o", report).code == 0
    assert max(map(len, report.read_text("utf-8").splitlines())) <= 100
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, run(*arguments).out.splitlines())) <= 80
