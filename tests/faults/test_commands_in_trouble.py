"""Disks that are full, folders that cannot be written, closed streams: one line and 2, everywhere.

What is wrong is real: a limit of the size of files, a file system that is read-only, /dev/full.
"""

import contextlib
import gzip
import io
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from command import Ran, run
from experiments import lay_out

from ordinate.cli.main import COMMANDS, main
from ordinate.errors import BadOutput
from ordinate.examples import locate_example
from ordinate.tuning.search.studies import Study

TREE = ("--models", "poly_ridge", "--folds", "2", "--trials", "2", "--target", "density")
OUT = "out/made"  # below a folder of its own
# What writes, by what it does: OUT is a file, or the folder of an experiment.
WRITING = [
    f"evaluate cefr.csv -o {OUT}.html",
    f"evaluate cefr.csv --items {OUT}.csv",
    f"evaluate cefr.csv --items {OUT}.parquet",
    f"evaluate-regression densities.csv --target density --predicted temperature -o {OUT}.json",
    f"compare systems.csv --gold gold --systems tfidf,forest -o {OUT}.html",
    f"verify report.json -o {OUT}.txt",
    f"power systems.csv --gold gold --systems tfidf,forest -o {OUT}.txt",
    f"decode chances.csv --scale 1..2 --probabilities p_ --metric accuracy -o {OUT}.csv",
    f"init {OUT}",
    f"check -e study -o {OUT}.html",
    f"features list -e study -o {OUT}.txt",
    "features tfidf -e out/study",
    "tune -e out/study --models logistic --trials 1 --folds 2",
    "predict -e out/study",
    f"predict -e study --data study/ml-test-data/test.csv -o {OUT}.csv",
    f"predict -e study --data study/ml-test-data/test.csv -o {OUT}.parquet",
    f"rank -e study --metric mae -o {OUT}.csv",
    f"tune-regression densities.csv {' '.join(TREE)} -e {OUT}",
    f"predict-regression densities.csv -e found -o {OUT}.csv",
    f"analyze-search -e found -o {OUT}.html",
    f"metrics -o {OUT}.txt",
    f"advise --levels names --no-rare-levels --reader agreement -o {OUT}.txt",
    f"properties mae -o {OUT}.txt",
    f"meta systems.csv --gold gold --systems tfidf,forest,ensemble -o {OUT}.txt",
]
SHOWING = [
    *[x.partition(" -o ")[0] for x in WRITING if " -o " in x and not x.startswith("predict ")],
    "init out/new",
    "tune -e study --dry-run",
    f"tune-regression densities.csv {' '.join(TREE)} -e out/found --dry-run",
    "predict -e study --force",
    "predict-regression densities.csv -e found -o out/made.csv",
    "--version",
    "evaluate --help",
]


def test_every_command_gets_into_trouble():
    assert {words.split()[0] for words in WRITING} >= COMMANDS.keys()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """All that the commands read: an experiment with a model, a search, files."""
    root = tmp_path_factory.mktemp("work")
    with contextlib.chdir(root):
        lay_out(root / "study", n=36, sets=("strong",))
        for name, own in {"cefr": "cefr", "densities": "densities", "systems": "systems"}.items():
            shutil.copy(locate_example(own), f"{name}.csv")
        Path("cefr.csv.gz").write_bytes(gzip.compress(Path("cefr.csv").read_bytes()))
        Path("chances.csv").write_text("p_1,p_2\n0.25,0.75\n0.5,0.5\n")
        tuned = run("tune", "-e", "study", "--models", "logistic", "--trials", 1, "--folds", 2)
        searched = run("tune-regression", "densities.csv", *TREE, "-e", "found")
        assert tuned.code == searched.code == run("predict", "-e", "study").code == 0
        assert run("evaluate", "cefr.csv", "-o", "report.json").code == 0
    return root


@pytest.fixture
def out(work, monkeypatch):
    """The folder that everything is written to, which has an experiment in it."""
    monkeypatch.chdir(work)
    Path("out").mkdir()
    shutil.copytree("study", "out/study", ignore=shutil.ignore_patterns("predictions"))
    yield Path("out")
    shutil.rmtree("out")


def list_files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_refusal(ran: Ran, folder: Path, before: dict[Path, bytes]) -> None:
    """One line that says it, and what was there is there."""
    assert ran.code == 2, ran.err
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("ordinate: ")
    assert "move it away" not in ran.err
    assert not list(folder.rglob("*.ordinate*"))
    assert list_files(folder).items() >= before.items()


@contextlib.contextmanager
def limit_file_size(size):
    """Let no file grow beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("words", WRITING)
def test_a_full_disk_is_one_line_and_leaves_nothing(out, words):
    before = list_files(out)
    with limit_file_size(1):
        ran = run(*words.split())
    check_refusal(ran, out, before)
    assert not list(out.glob("made*")) or words.startswith("tune-regression")  # which goes on


@pytest.fixture
def read_only(out):
    """A folder of a file system that cannot be written, whoever tries."""
    if not shutil.which("mount") or os.getuid() != 0:
        pytest.skip("only root mounts file systems")
    bound = subprocess.run(["mount", "--bind", out, out], check=False, capture_output=True)
    if bound.returncode:
        pytest.skip(f"nothing can be mounted here: {bound.stderr.decode()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", out], check=True)
        yield out
    finally:
        subprocess.run(["umount", out], check=True)


@pytest.mark.parametrize("words", WRITING)
def test_a_folder_that_is_read_only_is_one_line(read_only, words):
    before = list_files(read_only)
    ran = run(*words.split())
    check_refusal(ran, read_only, before)
    assert "Read-only file system" in ran.err


@pytest.mark.usefixtures("out")
@pytest.mark.parametrize("words", SHOWING)
def test_standard_output_that_is_full_is_one_line(words):
    err = io.StringIO()
    with (
        Path("/dev/full").open("w", encoding="utf-8") as full,
        contextlib.redirect_stdout(full),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = main(words.split())
        except SystemExit as stop:
            code = stop.code
    assert code == 2
    said = "ordinate: Standard output cannot be used: No space left on device."
    assert err.getvalue().splitlines()[-1] == said  # `decode` shows its report there


def finish_trials(path):
    """Run the trials of a study that are not finished yet, each with much to write."""
    study = Study.open(path, "one", direction="maximize", seed=0)
    for batch in study.iterate_batches(lambda trial: {"x": trial.suggest_float("x", 0, 1)}, 8):
        for pending in batch.pending:
            batch.finish(pending.number, pending.params["x"], attributes={"note": "x" * 20_000})
        batch.close()
    return study.trials


def test_a_study_whose_disk_is_full_is_not_called_damaged_and_goes_on(tmp_path):
    path = tmp_path / "studies.db"
    whole = finish_trials(tmp_path / "other.db")
    Study.open(path, "one", direction="maximize", seed=0)
    with (
        limit_file_size(path.stat().st_size + 50_000),
        pytest.raises(BadOutput, match=r"studies\.db cannot be written: .* It is not damaged"),
    ):
        finish_trials(path)
    assert finish_trials(path) == whole


@pytest.mark.usefixtures("out")
@pytest.mark.parametrize("words", ["evaluate cefr.csv.gz", "evaluate utf16.csv"])
def test_input_that_finds_no_room_to_be_unpacked_names_the_folder(words):
    Path("utf16.csv").write_bytes(Path("cefr.csv").read_text("utf-8").encode("utf-16"))
    with limit_file_size(1):
        ran = run(*words.split())
    assert ran.code == 2
    assert f"File too large in {tempfile.gettempdir()}; TMPDIR names another folder." in ran.err


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("out")
@pytest.mark.parametrize(
    ("streams", "words", "code", "said"),
    [
        ("<&-", "evaluate -", 2, "standard input cannot be read: Bad file descriptor."),
        ("<&-", "evaluate cefr.csv", 0, ""),
        (">&-", "evaluate cefr.csv", 2, "Standard output cannot be used: Bad file descriptor."),
        (">&-", "--version", 2, "Standard output cannot be used: Bad file descriptor."),
        ("<&- >&-", "evaluate cefr.csv -o out/made.txt", 0, ""),
        ("2>&-", "evaluate absent.csv", 2, ""),
        ("2>/dev/full", "evaluate absent.csv", 2, ""),
        pytest.param(
            "<&- >&- 2>&-",  # which workers would have
            "tune -e out/study --models logistic --jobs 2 --trials 1 --folds 2 -o out/made.txt",
            0,
            "",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_closed_streams_are_told_where_they_are_needed(streams, words, code, said):
    shell = f'"$0" -W error -m ordinate {words} {streams}'
    ran = subprocess.run(
        ["/bin/bash", "-c", shell, sys.executable], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (code, f"ordinate: {said}\n" if said else "")


# --- names ----------------------------------------------------------------------------------------


@pytest.fixture
def strange(out):
    """Names that no output can have: a loop of links, a pipe, one that is not UTF-8."""
    (out / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(out / "pipe.csv")
    return out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("loop.csv", "symbolic links"),
        ("loop.csv/made.csv", "symbolic links"),
        ("pipe.csv", "no plain file"),
        ("\udcff.csv", "its name is not UTF-8"),
    ],
)
@pytest.mark.parametrize("flag", ["-o", "--items"])
def test_an_output_with_a_name_that_none_can_have_is_one_line(strange, flag, name, said):
    ran = run("evaluate", "cefr.csv", flag, strange / name, "--force")
    check_refusal(ran, strange, {})
    assert said in ran.err


@pytest.mark.parametrize(
    "words",
    ["init", f"tune-regression densities.csv {' '.join(TREE)} -e", "features tfidf -e", "tune -e"],
)
@pytest.mark.parametrize("name", ["loop.csv", "pipe.csv", "\udcff"])
def test_an_experiment_in_a_folder_that_is_none_is_one_line(strange, words, name):
    ran = run(*words.split(), strange / name)
    check_refusal(ran, strange, {})
    assert (strange / "loop.csv").is_symlink()
