"""Bad input of `ordinate evaluate`: exit code 2, one helpful line, and nothing written."""

import re
from pathlib import Path

from command import run
from evaluate_reports import write

PAIRS = "gold,predicted\nA1,A1\nB1,B2\nC1,C1\n"
INTERNALS = re.compile(
    r"SELECT|LINE \d|\^\^|read_(csv|json|parquet)|struct_pack|sample_size"
    r"|\b__(gold|id|in_|predicted|weight)"
)
LONGEST = 1000  # characters that somebody still reads


def _tree(folder: Path) -> dict[str, bytes | None]:
    """Return every file of a folder with its content; a folder has none."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refused(here: Path, *arguments: str, outputs: bool = True) -> str:
    """Run a command that must fail without a trace, and return its message."""
    before = _tree(here.parent)
    wanted = ("-o", "out.json", "--items", "wrong.csv") if outputs else ()
    ran = run("evaluate", *arguments, *wanted)
    assert (ran.code, ran.out) == (2, "")
    assert _tree(here.parent) == before
    assert re.fullmatch(r"ordinate( evaluate)?: \S.*\n", ran.err), ran.err  # one line
    message = ran.err.rstrip("\n")
    assert message.isprintable()
    assert not INTERNALS.search(message), message
    assert len(message) < LONGEST
    return message


def refuse_join(here: Path, gold: str, answers: str, *more: str) -> str:
    write("gold.csv", gold)
    write("run.csv", answers)
    return refused(here, "run.csv", "--gold-file", "gold.csv", *more)
