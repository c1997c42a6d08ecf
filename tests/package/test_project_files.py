"""Files for other programs are what their published schemas ask for, and say what is true."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import ordinate
from ordinate.examples import locate_example

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHECKED = [("github-workflows", path) for path in WORKFLOWS]
CHECKED.append(("citation-file-format", ROOT / "CITATION.cff"))
CHECKED.append(("github-actions", ROOT / "action.yml"))


@pytest.mark.parametrize(("schema", "path"), CHECKED, ids=lambda x: getattr(x, "name", x))
def test_the_file_follows_its_schema(schema, path):
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    force = ["--force-filetype", "yaml"]
    ran = subprocess.run([*check, *force, path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_step_of_a_workflow_is_a_target_of_the_makefile(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    steps = re.findall(r"- run: (.+)", path.read_text("utf-8"))
    assert steps
    for step in steps:
        called = re.match(r"make ([a-z-]+)", step)
        assert called[1] in targets if called else step.endswith("bash .ci/run"), step


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("inputs", "code", "told"),
    [
        ({"FAIL_UNDER": "cem_ord=0.6 mae=0.9"}, 0, "240 items on A1 < A2"),
        ({"FAIL_UNDER": "accuracy=0.46\nmae=1"}, 0, "::warning title=Ordinate::accuracy is 0.45"),
        ({"FAIL_UNDER": "cem_ord=0.9"}, 3, "::error title=Ordinate::cem_ord is 0.72"),
        ({"FAIL_UNDER": "cem_ord=0.6;touch${IFS}x"}, 2, "::error title=Ordinate::"),
        ({"FAIL_UNDER": "cem_ord=0.6 --bogus"}, 2, "::error title=Ordinate::"),
        ({"FAIL_UNDER": " "}, 2, "::error title=Ordinate::fail-under is empty"),
        ({"ARGUMENTS": "--gold 'gold"}, 2, "::error title=Ordinate::arguments has a quote"),
        ({"ARGUMENTS": "--items ../items.csv --fail-under mae=0.1"}, 3, "240 items on A1 < A2"),
        ({"FILES": "--load=run.py 'my levels.csv'"}, 2, "::error title=Ordinate::There is no file"),
    ],
    ids=[
        "passes",
        "warns",
        "fails",
        "executes nothing",
        "wrong usage",
        "empty",
        "an open quote",
        "items",
        "a file like a flag",
    ],
)
def test_the_action_shows_numbers_and_lets_the_interval_decide(tmp_path, inputs, code, told):
    text = (ROOT / "action.yml").read_text("utf-8")
    assert "update-environment: false" in text  # the caller's Python stays
    script = textwrap.dedent(text.rpartition("run: |\n")[2])
    assert "${{" not in script  # an input is no part of a script
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    programs = temporary / "ordinate" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    shutil.copy(locate_example("cefr"), work / "my levels.csv")
    (work / "run.py").write_text("open('../ran', 'w')")
    before = {x.name for x in work.iterdir()}
    given = {"FILES": "'my levels.csv'", "FAIL_UNDER": "mae=0.9", "FAIL_WHEN": "significant"}
    given |= {"ARGUMENTS": "--gold gold --predicted predicted", "REPORT": "page.html"}
    given |= {"RUNNER_TEMP": str(temporary), **inputs}
    summary = tmp_path / "summary.md"
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=work,
        env=os.environ | given | {"GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    assert told in ran.stdout
    assert {x.name for x in work.iterdir()} - before == ({"page.html"} if code != 2 else set())
    assert (summary.exists() and "| cem" in summary.read_text("utf-8")) == (code != 2)
    assert not (tmp_path / "ran").exists()


def test_the_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.+)$", text, re.MULTILINE)[1] == ordinate.__version__


def test_hooks_before_a_commit_call_programs_of_the_environment():
    tests = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]["test"]
    installed = {re.match(r"[\w-]+", name)[0] for name in tests}
    entries = re.findall(r"entry: \.venv/bin/(\S+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert len(entries) == 4
    programs = {"lint-imports": "import-linter"}
    assert {programs.get(entry, entry) for entry in entries} <= installed


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["eval"], {"evaluate", "evaluate-regression"}),
        (["evaluate", "--met"], {"--metrics"}),
        (["evaluate", "--format", "j"], {"json"}),
        (["evaluate", "lev"], {"levels.csv"}),
    ],
    ids=["command", "flag", "choice", "file"],
)
def test_bash_completes(tmp_path, words, completed):
    (tmp_path / "levels.csv").touch()
    printed = [sys.executable, "-m", "ordinate", "--print-completion", "bash"]
    script = subprocess.run(printed, capture_output=True, text=True, check=True).stdout
    asked = (
        f"COMP_WORDS=(ordinate {' '.join(words)}); COMP_CWORD={len(words)}\n"
        '_shtab_ordinate; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    bash = ["bash", "-c", script + asked]
    ran = subprocess.run(bash, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == completed
