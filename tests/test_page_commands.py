"""Every command that a page shows can be run, and every block of a page is run by some test."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import run
from each_case import each_case
from page_commands import list_blocks, list_commands, shrink, write_files
from shown_output import ROOT

from ordinate.cli.main import build_parser
from ordinate.metrics.catalogue import CATALOGUE

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
WITH_COMMANDS = [name for name, page in PAGES.items() if list_commands(page)]
EXPERIMENTS = {"init", "-e", "--config"}  # what makes or takes one
PARSED_ONLY = {  # by what they begin with
    "advise": "asks on a terminal",
    "features embeddings": "takes a model of the reader's",
    "features perplexity": "takes a model of the reader's",
    "properties --search": "`make properties` runs it",
}
PASSED = {0, 3}  # 3: --fail-under
SEARCH = "ordinate tune-regression densities.csv --target density -e found"
BEFORE = {  # what a page takes for done
    "docs/features.md": [
        "ordinate init study --train essays.csv",
        "ordinate features lexical -e study",
    ],
    "docs/tutorials/density-surrogate.md": [SEARCH],
}
PROGRAMS = {"ordinate", "make", "pip", "mkdir", "cp", "python", "source", "check-jsonschema"}

FRAGMENTS = (  # of libraries that tests of the integrations run them with
    "measure = XGBoostMetric(",
    "from ordinate.integrations.mlflow import",
)


def needs_experiment(command):
    return bool(EXPERIMENTS & {*command})


WITH_EXPERIMENTS = [
    name for name in WITH_COMMANDS if any(map(needs_experiment, list_commands(PAGES[name])))
]


def is_parsed_only(command):
    line = shlex.join(command[1:])
    return any(line == start or (line.startswith(start) and " " in start) for start in PARSED_ONLY)


@each_case("name", WITH_COMMANDS)
def test_the_parser_knows_every_flag_on_the_page(name):
    for program, *arguments in list_commands(PAGES[name]):
        if program == "ordinate":
            build_parser([arguments[0]]).parse_args(arguments)


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_commands_that_need_no_experiment_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in list_commands(PAGES[name]):
        if not needs_experiment(command):
            run_command(command)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EXPERIMENTS)
def test_the_commands_of_a_page_run_one_after_the_other(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in BEFORE.get(name, ()):
        run_command(shlex.split(line))
    for block in list_blocks(PAGES[name]):
        if block.language == "toml":
            Path("tune.toml").write_text(block.text, encoding="utf-8")
        for command in block.commands:
            run_command(command)


def run_command(command):
    """Run a command of a page in the folder, in small where it would take minutes."""
    program, *arguments = command
    if program == "mkdir":
        Path(arguments[0]).mkdir()
    elif program == "bash":
        run_in_shell(command)
    elif not is_parsed_only(command):
        write_files(Path(), arguments)
        if "another" in arguments:
            shutil.copytree("found", "another")
        if "-o" in arguments:
            Path(arguments[arguments.index("-o") + 1]).unlink(missing_ok=True)
        ran = run(*shrink(arguments))
        assert ran.code in PASSED, f"{shlex.join(command)}: {ran.err}"
        for key in [key for key, metric in CATALOGUE.items() if metric.family == "own"]:
            del CATALOGUE[key]  # which --load declares


def run_in_shell(command):
    """Run a line as it stands, where there is a POSIX shell, with a home of its own."""
    if sys.platform != "win32":
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = os.environ | {"PATH": programs, "HOME": str(Path.cwd())}
        ran = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, ""), f"{command[-1]}: {ran.stderr}{ran.stdout}"


def test_the_page_on_files_shows_how_bad_lines_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gold = [f"{k + 1},{('A1', 'A2', 'B1', 'B2')[k % 4]}" for k in range(20)]
    bad = ["3,B1,A1,x", "5,A1,B2,y"]
    Path("gold.csv").write_text("\n".join(["id,gold", *gold, ""]), encoding="utf-8")
    rows = ["id,predicted", *gold[:3], *bad, *gold[3:], ""]
    Path("run.csv").write_text("\n".join(rows), encoding="utf-8")
    flags = ("--gold-file", "gold.csv", "--id", "id", "--bad-lines", "skip")
    ran = run("evaluate", "run.csv", *flags)
    (note,) = re.findall(r"(?s)2 lines of run.csv.*?x'\)\.", ran.out)
    blocks = [block.text for block in list_blocks(PAGES["docs/files.md"])]
    assert note.split() in [x.split() for x in blocks]


def test_every_command_that_is_not_run_is_on_a_page():
    lines = {shlex.join(x[1:]) for page in PAGES.values() for x in list_commands(page)}
    for start in PARSED_ONLY:
        assert any(line.startswith(start) for line in lines), start


@each_case("name", list(PAGES))
def test_every_block_is_run(name):
    """Examples of Python are doctests, cells or the gallery; the rest are commands and outputs."""
    notebook = name.startswith("docs/tutorials/") or name == "docs/gallery.md"
    for block in list_blocks(PAGES[name]):
        if block.language == "python":
            assert notebook or block.text.startswith(">>> "), block.text
        elif block.language in ("", "sh", "bash"):
            lines = re.sub(r"\\\n", " ", block.text).splitlines()
            if not {line.partition(" ")[0] for line in lines} <= PROGRAMS:
                assert block.text.startswith(FRAGMENTS), block.text
