"""Every report's JSON has a schema in the package, which is true of it and leaves no key out."""

import copy
import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from result_examples import (
    FURTHER_REPORTS,
    MAKERS,
    make_search_results,
)
from search_cases import CASES

import ordinate
from ordinate.errors import BadInput
from ordinate.results.comparison_report import ComparisonReport
from ordinate.results.provenance import CarriedReport
from ordinate.schemas import list_schemas, locate_schema

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("report_schemas", ROOT / "docs" / "report_schemas.py")
report_schemas = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(report_schemas)
VALIDATOR = jsonschema.Draft202012Validator


def find_problems(name, values, *, closed=True):
    """Return what a schema finds wrong; a closed one refuses keys that it does not name."""
    found = VALIDATOR(report_schemas.make_schema(name, closed=closed)).iter_errors(values)
    return [f"{error.json_path}: {error.message[-300:]}" for error in found]


def check(result):
    """Check the JSON of a report, and what it says of the reports inside."""
    values = json.loads(result.to_json())
    assert find_problems(type(result).__name__, values) == []
    # What one task alone asks for has a schema of its own.
    for part, name in PARTS.items():
        if isinstance(values.get(part), dict) and type(result).__name__ == "RegressionEvaluation":
            assert find_problems(name, values[part] | {"provenance": values["provenance"]}) == []
    return type(result).__name__


PARTS = {
    "residuals": "ResidualAnalysis",
    "comparison": "RegressionComparison",
    "shifted": "ShiftEvaluation",
    "levels": "Evaluation",
}
get_result = cache(lambda name: (MAKERS | FURTHER_REPORTS)[name]())


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    """The folders of searches, and what is said of them."""
    root = tmp_path_factory.mktemp("searches")
    return root, make_search_results(root)


def test_every_class_of_reports_has_a_schema():
    package = Path(ordinate.__file__).parent
    source = [path.read_text("utf-8") for path in package.rglob("*.py")]
    classes = {
        name
        for text in source
        for name in re.findall(r"^class (\w+)\((?:Result|ComparisonReport)\)", text, re.MULTILINE)
    }
    classes -= {CarriedReport.__name__, ComparisonReport.__name__}  # of others, and of tasks
    assert classes == set(report_schemas.REPORTS)
    assert list_schemas() == sorted(classes)


@pytest.mark.parametrize("name", report_schemas.REPORTS)
def test_the_files_are_what_their_declarations_make(name):
    assert locate_schema(name).read_text("utf-8") == report_schemas.format_schema(name)
    VALIDATOR.check_schema(json.loads(locate_schema(name).read_text("utf-8")))


@pytest.mark.parametrize("name", [*MAKERS, *FURTHER_REPORTS])
def test_a_report_follows_its_schema(name):
    check(get_result(name))


def test_reports_of_searches_follow_theirs(searches, tmp_path):
    _, made = searches
    checked = {check(result) for result in made.values()}
    report = get_result("evaluation")
    report.save(tmp_path / "report.json")
    checked.add(check(ordinate.verify(tmp_path / "report.json")))
    others = {type(get_result(name)).__name__ for name in (*MAKERS, *FURTHER_REPORTS)}
    assert checked | others == set(list_schemas())  # so no schema is untested


def test_reports_that_searches_store_follow_theirs(searches):
    """Beside trials and predictions, which are no reports."""
    root, _ = searches
    stored = [path for case in CASES for path in (root / case.name).rglob("results.json")]
    assert len(stored) == 2 * len(CASES)  # of the run, and the latest
    for path in stored:
        values = json.loads(path.read_text("utf-8"))
        assert find_problems("TuningResult", values) == []
        assert VALIDATOR(json.loads(locate_schema("TuningResult").read_text("utf-8"))).is_valid(
            values
        )


def test_a_schema_refuses_what_is_wrong_and_takes_keys_of_later_versions():
    values = json.loads(get_result("evaluation").to_json())
    schema = json.loads(locate_schema("Evaluation").read_text("utf-8"))
    assert VALIDATOR(schema).is_valid(values)
    assert VALIDATOR(schema).is_valid(values | {"later": 1})
    assert find_problems("Evaluation", values | {"later": 1})
    without = {key: value for key, value in values.items() if key != "scale"}
    assert "'scale' is a required property" in find_problems("Evaluation", without, closed=False)[0]
    for path, wrong in (
        (("task",), "compare"),
        (("metrics", "mae", "value"), "0.5"),
        (("metrics", "mae", "direction"), "up"),
        (("metrics", "mae", "baselines"), None),
        (("by", "other", "confusion_matrix"), [1, 2]),
        (("probabilities", "metrics", "brier", "low"), "none"),
    ):
        broken = copy.deepcopy(values)
        place = broken
        for key in path[:-1]:
            place = place[key]
        assert path[-1] in place
        place[path[-1]] = wrong
        assert not VALIDATOR(schema).is_valid(broken), path


def test_the_page_names_the_keys_of_an_evaluation():
    page = (ROOT / "docs" / "report.md").read_text("utf-8").partition("\n## JSON\n")[2]
    rows = re.findall(r"^\| (`.+?) \|", page.partition("\nNAME is")[0], re.MULTILINE)
    named = {key.partition(".")[0] for row in rows for key in re.findall(r"`([\w.]+)`", row)}
    schema = json.loads(locate_schema("Evaluation").read_text("utf-8"))
    assert {"schema", "metrics"} <= named
    assert set(schema["properties"]) - named == set()


def test_the_command_prints_where_a_schema_is_and_a_checker_takes_it(tmp_path):
    python = [sys.executable, "-m"]
    asked = [*python, "ordinate.schemas", "Evaluation"]
    path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(path) == locate_schema("Evaluation")
    get_result("evaluation").save(tmp_path / "report.json")
    check_file = [*python, "check_jsonschema", "--schemafile", path, tmp_path / "report.json"]
    ran = subprocess.run(check_file, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_an_unknown_schema_is_refused_with_those_that_there_are():
    with pytest.raises(BadInput, match=r"There is no schema 'nope'. There are: .*Evaluation"):
        locate_schema("nope")
