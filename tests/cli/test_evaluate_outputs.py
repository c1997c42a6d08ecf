"""`ordinate evaluate`: items that disagree, written files, and the process."""

import csv
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import run
from evaluate_reports import (
    CELLS,
    COMPLETE,
    FORMS,
    GOLD,
    JOINED,
    PAIRS,
    RUN,
    evaluate_rows,
    filled,
    names,
    read_items,
    report,
    write,
)
from hostile_texts import EXACT_TEXTS
from row_files import to_csv

pytestmark = pytest.mark.usefixtures("here")

COMMAND = [sys.executable, "-m", "ordinate"]
PATIENCE = 60  # seconds after which a child counts as hung

# --- the items that disagree ---------------------------------------------------------------------

NOTED = 'id,gold,predicted,note\n1,A1,A1,x\n2,B1,B2,"a, ""b""\nc"\n3,C1,A1,é\n4,C2,B2,-5\n'
WRONG = [
    {"id": "2", "gold": "B1", "predicted": "B2", "note": 'a, "b"\nc', "steps_off": 1},
    {"id": "3", "gold": "C1", "predicted": "A1", "note": "é", "steps_off": -4},
    {"id": "4", "gold": "C2", "predicted": "B2", "note": "-5", "steps_off": -2},
]


@pytest.mark.parametrize("name", ["wrong.csv", "wrong.jsonl", "wrong.parquet"])
def test_items_are_the_rows_that_disagree_with_all_their_columns(name):
    found = report(write("some.csv", NOTED), "--items", name)
    assert read_items(name) == WRONG
    assert len(read_items(name)) == sum(
        n for (gold, said), n in filled(found).items() if gold != said
    )


@pytest.mark.parametrize("name", ["wrong.pdf", "wrong.xlsx", "wrong.csv.gz"])
def test_items_are_not_written_as_csv_under_the_suffix_of_something_else(name):
    found = run("evaluate", write("some.csv", NOTED), "--scale", "cefr", "--items", name)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "Items are written as .csv" in found.err
    assert not Path(name).exists()


def test_without_disagreement_items_are_a_header():
    report(write("some.csv", "gold,predicted\nA1,A1\n"), "--items", "wrong.csv")
    assert Path("wrong.csv").read_text() == "gold,predicted,steps_off\n"


@pytest.mark.parametrize("missing", ["drop", "worst"])
def test_an_item_without_a_prediction_disagrees_and_one_without_gold_does_not(missing):
    lines = ["1,A1,A1", "2,B1,", *([",,A1"] if missing == "drop" else [])]
    write("some.csv", "\n".join(["id,gold,predicted", *lines, ""]))
    report("some.csv", "--scale", "cefr", "--missing", missing, "--items", "wrong.csv")
    assert read_items("wrong.csv") == [
        {"id": "2", "gold": "B1", "predicted": "", "steps_off": None}
    ]


def test_items_of_several_files_keep_the_columns_of_each():
    write("a.csv", "gold,predicted,x\nA1,A2,1\n")
    write("b.csv", "y,predicted,gold\n7,A1,B1\n")
    report("a.csv", "b.csv", "--items", "wrong.jsonl")
    kept = [{k: v for k, v in row.items() if v is not None} for row in read_items("wrong.jsonl")]
    assert kept == [
        {"gold": "A1", "predicted": "A2", "x": "1", "steps_off": 1},
        {"gold": "B1", "predicted": "A1", "y": "7", "steps_off": -2},
    ]


@pytest.mark.parametrize("key", ["id", "gold", "predicted", "steps_off"])
def test_items_of_a_join_have_the_id_and_both_labels(key):
    write("gold.csv", f"{key},level\n1,A1\n2,B1\n")
    write("run.csv", f"{key},answer\n2,B2\n1,A1\n")
    named = ("--id", key, "--gold", "level", "--predicted", "answer")
    report("run.csv", "--gold-file", "gold.csv", *named, "--items", "wrong.jsonl")
    (row,) = read_items("wrong.jsonl")
    assert sorted(map(str, row.values())) == ["1", "2", "B1", "B2"]
    assert row[key] == "2"


def test_items_keep_a_column_that_is_called_like_their_own():
    write("some.csv", "steps_off,gold,predicted\nkept,A1,A2\n")
    report("some.csv", "--items", "wrong.jsonl")
    (row,) = read_items("wrong.jsonl")
    assert sorted(map(str, row.values())) == ["1", "A1", "A2", "kept"]


def test_items_of_numbers_in_other_spellings_agree():
    write("some.csv", "gold,predicted\n1,1.0\n2.0,2\n2,3.0\n")
    report("some.csv", "--scale", "1..3", "--items", "wrong.csv")
    assert read_items("wrong.csv") == [{"gold": "2", "predicted": "3.0", "steps_off": 1}]


def test_items_keep_every_text_as_it_was():
    rows = [{"gold": "A1", "predicted": "A2", "=note": x} for x in EXACT_TEXTS]
    Path("some.csv").write_bytes(to_csv(rows, quoting=csv.QUOTE_ALL))
    report("some.csv", "--items", "wrong.csv")
    with Path("wrong.csv").open(encoding="utf-8", newline="") as file:
        assert [row["=note"] for row in csv.DictReader(file)] == EXACT_TEXTS


# --- files that are written ----------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-o", "--items"])
def test_nothing_is_overwritten_without_force(here, flag):
    write("some.csv", PAIRS)
    write("out.csv", "kept")
    refused = run("evaluate", "some.csv", flag, "out.csv")
    assert (refused.code, refused.out) == (2, "")
    assert "--force" in refused.err
    assert Path("out.csv").read_text() == "kept"
    assert run("evaluate", "some.csv", flag, "out.csv", "--force").code == 0
    assert Path("out.csv").read_text() != "kept"
    assert names(here) == ["out.csv", "some.csv"]


def test_a_failure_leaves_what_was_there_even_with_force(here):
    write("some.csv", "gold,predicted\nA1,ZZ\n")
    write("out.json", "kept")
    write("wrong.csv", "kept too")
    asked = ("--scale", "cefr", "-o", "out.json", "--items", "wrong.csv", "--force")
    assert run("evaluate", "some.csv", *asked).code == 2
    assert (Path("out.json").read_text(), Path("wrong.csv").read_text()) == ("kept", "kept too")
    assert names(here) == ["out.json", "some.csv", "wrong.csv"]


def test_report_and_items_are_written_both_or_not_at_all(here):
    write("some.csv", PAIRS)
    write("wrong.csv", "kept")
    assert run("evaluate", "some.csv", "-o", "out.json", "--items", "wrong.csv").code == 2
    assert names(here) == ["some.csv", "wrong.csv"]


def test_report_and_items_cannot_be_one_file(here):
    write("some.csv", PAIRS)
    ran = run("evaluate", "some.csv", "-o", "out.csv", "--items", "out.csv")
    assert ran.code == 2
    assert names(here) == ["some.csv"]


@pytest.mark.parametrize("flag", ["-o", "--items"])
def test_no_input_is_overwritten_even_with_force(flag):
    write("run.csv", RUN)
    write("gold.csv", GOLD)
    write("map.csv", "from,to\nx,A1\n")
    asked = ("--gold-file", "gold.csv", "--id", "id", "--map", "map.csv", "--missing", "drop")
    for name in ("run.csv", "gold.csv", "map.csv"):
        before = Path(name).read_bytes()
        ran = run("evaluate", "run.csv", *asked, flag, f"./{name}", "--force")
        assert (ran.code, Path(name).read_bytes()) == (2, before)
        assert name in ran.err


def test_a_written_file_has_the_usual_permissions():
    write("some.csv", PAIRS)
    before = os.umask(0o027)
    try:
        report("some.csv", "-o", "out.json", "--items", "wrong.csv")
    except json.JSONDecodeError:
        pass  # the report went to the file
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(Path(name).stat().st_mode) for name in ("out.json", "wrong.csv")]
    assert modes == [0o640, 0o640]


def test_an_output_that_is_no_plain_file_is_never_replaced_by_one():
    write("some.csv", PAIRS)
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        run("evaluate", "some.csv", "-o", "pipe", "--force")
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def test_a_link_as_output_stays_a_link():
    write("some.csv", PAIRS)
    write("target.txt", "old")
    Path("link.txt").symlink_to("target.txt")
    assert run("evaluate", "some.csv", "-o", "link.txt", "--force").code == 0
    assert Path("link.txt").is_symlink()
    assert Path("target.txt").read_text().startswith("3 items")


# --- as a process --------------------------------------------------------------------------------


def child(*arguments, given: bytes = b"", **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "ordinate", *arguments],
        input=given,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.parametrize(
    "form",
    ["data.csv", "utf16.csv", "data.jsonl", "data.parquet", "data.csv.gz", "gzip-without-suffix"],
)
def test_standard_input_is_recognised_by_its_content(form):
    asked = ("--gold", "level", "--predicted", "answer", "--format", "json")
    ran = child("evaluate", "-", *asked, given=FORMS[form](COMPLETE))
    assert (ran.returncode, ran.stderr) == (0, b"")
    found = json.loads(ran.stdout)
    assert found["source"]["files"] == ["standard input"]
    assert found["confusion_matrix"] == evaluate_rows(COMPLETE).to_dict()["confusion_matrix"]


def test_gold_may_come_from_standard_input():
    write("run.csv", RUN)
    asked = ("run.csv", "--gold-file", "-", "--id", "id", "--missing", "drop")
    ran = child("evaluate", *asked, "--format", "json", given=GOLD.encode())
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert filled(json.loads(ran.stdout)) == JOINED


def test_a_named_pipe_is_read_like_a_file():
    os.mkfifo("pipe")
    command = [*COMMAND, "evaluate", "pipe", "--format", "json"]
    shell = f"printf '{PAIRS.encode('unicode_escape').decode()}' > pipe & {shlex.join(command)}"
    started = subprocess.Popen(
        ["/bin/bash", "-c", shell],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = started.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        pytest.fail("waits for ever on a pipe that has been read")
    assert (started.returncode, err) == (0, b"")
    assert filled(json.loads(out)) == CELLS


def _wait_for_reader(path: str, started: subprocess.Popen) -> int:
    """Open a named pipe for writing as soon as the child reads from it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and started.poll() is None:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
    return pytest.fail("nobody reads from the pipe")


@pytest.fixture
def heard():
    """Let children hear signals: a shell that starts tests in the background ignores some."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    yield
    for number, earlier in before.items():
        signal.signal(number, earlier)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("source", ["-", "pipe"])
def test_an_interrupt_exits_with_its_number_and_leaves_nothing(here, source, number):
    os.mkfifo("pipe")
    temporary = here.parent / "temporary"
    command = [*COMMAND, "evaluate", source, "-o", "out.txt", "--items", "wrong.csv"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(command, **streams, env=environment) as started:
        try:
            if source == "-":
                lines = b"gold,predicted\n" + b"A1,A1\n" * 100_000  # more than a pipe holds
                started.stdin.write(lines)
                started.stdin.flush()
                assert list(temporary.iterdir())
                started.send_signal(number)
            else:
                writer = _wait_for_reader("pipe", started)
                started.send_signal(number)
                os.close(writer)  # a child that was just about to read would wait for ever
            out, err = started.communicate(timeout=PATIENCE)
        finally:
            started.kill()  # one that hangs; nothing happens to one that has ended
    assert (started.returncode, out) == (128 + number, b"")
    assert err == b"Interrupted.\n"
    assert names(here) == ["pipe"]
    assert not list(temporary.iterdir())


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_the_exit_code_also_while_python_runs_a_text(here, number):
    """As for every dataclass that is imported: Python then ended by SIGINT, not by this code."""
    path = here / "slow.py"
    path.write_text(f"exec('import os; os.kill(os.getpid(), {number:d}); 0')", encoding="utf-8")
    ran = subprocess.run(
        [*COMMAND, "metrics", "--load", path], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + number, "", "Interrupted.\n")


@pytest.mark.parametrize(
    "arguments",
    [("evaluate", "some.csv"), ("evaluate", "some.csv", "--format", "json"), ("metrics",)],
)
def test_a_reader_that_has_seen_enough_gets_no_traceback(arguments):
    write("some.csv", PAIRS)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [*COMMAND, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writer)
    assert ran.stderr == b""
    assert ran.returncode in {0, 141}


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_without_a_letter_gets_a_report_and_no_traceback(encoding):
    write("some.csv", "gold,predicted\nŁ,日本\nŁ,Ł\n")
    asked = ("evaluate", "some.csv", "--scale", "Ł,日本")
    ran = child(*asked, PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.startswith(b"2 items")
    whole = child("metrics", PYTHONIOENCODING=encoding)
    assert (whole.returncode, whole.stderr) == (0, b"")


def test_the_exit_code_of_the_process_is_that_of_the_command():
    write("some.csv", PAIRS)
    assert child("evaluate", "some.csv", "--fail-under", "accuracy=0.9").returncode == 3
    absent = child("evaluate", "absent.csv")
    assert (absent.returncode, absent.stdout) == (2, b"")
    assert absent.stderr.startswith(b"ordinate: ")
